# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VirtualMedia as clients see it: what they may say, and what they are shown.

sushy-tools' routes stay; its views of one drive are replaced, since they trust any body and describe a fixed drive.
Certificates of a drive are not offered: the CA of image servers is the lab's (media.ca_file).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import flask

from nometal_bmc.answers import Refused, not_found
from nometal_bmc.cancellation import CANCELLATION
from nometal_bmc.events.log import MEDIA
from nometal_bmc.media.drives import DEVICE
from nometal_bmc.media.source import place, split
from nometal_bmc.redfish.wishes import PARAMETER, PROPERTY, Kinds, Words, becomes_event, checked, note, one_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from nometal_bmc.media.drives import Media

__all__ = ["add_views"]

TEXT, YES_OR_NO = (str, type(None)), (bool,)
KINDS: Kinds = {
    **dict.fromkeys(("Image", "UserName", "Password", "TransferMethod", "TransferProtocolType"), TEXT),
    **dict.fromkeys(("Inserted", "WriteProtected", "VerifyCertificate"), YES_OR_NO),
}
METHODS = ("Stream", "Upload")
PROTOCOLS = ("HTTP", "HTTPS")


def add_views(app: flask.Flask, media: Media) -> None:
    """Give sushy-tools' VirtualMedia routes our views."""

    def show(identity: str, device: str) -> flask.Response:
        return flask.jsonify(_drive(media, _system_of(identity, device)))

    def insert(identity: str, device: str) -> flask.Response:
        uuid, wishes = _system_of(identity, device), flask.request.json
        if not wishes.get("Image"):
            raise _image_missing(PARAMETER)
        _insert(media, uuid, checked(wishes, KINDS, words=PARAMETER), PARAMETER)
        return _nothing()

    def eject(identity: str, device: str) -> flask.Response:
        uuid = _system_of(identity, device)
        checked(flask.request.json, {}, words=PARAMETER)
        _eject(media, uuid)
        return _nothing()

    def change(identity: str, device: str) -> flask.Response:
        _change(media, _system_of(identity, device), checked(flask.request.json, KINDS))
        return _nothing()

    views: dict[str, Callable[..., flask.Response]] = {
        "resource": show,
        "insert": insert,
        "eject": eject,
        "patch": change,
    }
    views |= dict.fromkeys(
        ("certificates", "add_certificate", "get_certificate", "delete_certificate"), _without_certificates
    )
    app.view_functions.update({f"VirtualMedia.virtual_media_{name}": view for name, view in views.items()})


def _drive(media: Media, uuid: str) -> dict[str, Any]:
    path = f"/redfish/v1/Systems/{uuid}/VirtualMedia/{DEVICE}"
    disc = media.disc(uuid)
    url = disc.url if disc else None
    return {
        "@odata.type": "#VirtualMedia.v1_4_0.VirtualMedia",
        "@odata.id": path,
        "Id": DEVICE,
        "Name": "Virtual CD",
        "MediaTypes": ["CD", "DVD"],
        "Image": url,
        "ImageName": disc.name if disc else None,
        "Inserted": disc is not None,
        "ConnectedVia": "URI" if disc else "NotConnected",
        "WriteProtected": True,
        "TransferMethod": "Upload" if disc else None,
        "TransferProtocolType": urlsplit(url).scheme.upper() if url else None,
        "UserName": None,
        "Password": None,
        "VerifyCertificate": media.verifies(uuid),
        "Actions": {
            "#VirtualMedia.InsertMedia": {
                "target": f"{path}/Actions/VirtualMedia.InsertMedia",
                "TransferMethod@Redfish.AllowableValues": METHODS,
                "TransferProtocolType@Redfish.AllowableValues": PROTOCOLS,
            },
            "#VirtualMedia.EjectMedia": {"target": f"{path}/Actions/VirtualMedia.EjectMedia"},
        },
    }


def _insert(media: Media, uuid: str, wishes: dict[str, Any], words: Words) -> None:
    source = split(wishes["Image"])
    _check_possible(wishes, source.scheme.upper(), words)
    note(Image=place(source), VerifyCertificate=wishes.get("VerifyCertificate"))
    becomes_event(MEDIA, f"Medium inserted: {place(source)}")
    media.insert(
        uuid,
        wishes["Image"],
        _login(wishes),
        verify=wishes.get("VerifyCertificate"),
        cancellation=flask.request.environ[CANCELLATION],
    )


def _eject(media: Media, uuid: str) -> None:
    becomes_event(MEDIA, "Medium ejected")
    media.eject(uuid)


def _change(media: Media, uuid: str, wishes: dict[str, Any]) -> None:
    note(**{name: wishes[name] for name in ("Inserted", "VerifyCertificate") if name in wishes})
    if wishes.get("Image"):
        _insert(media, uuid, wishes, PROPERTY)
    elif wishes.get("Inserted"):
        raise _image_missing(PROPERTY)
    elif "Image" in wishes or "Inserted" in wishes:
        _eject(media, uuid)
    elif set(wishes) != {"VerifyCertificate"}:
        text = "Only Image, Inserted and VerifyCertificate can be changed."
        raise Refused(400, "PropertyMissing", text, prop="Image")
    if "VerifyCertificate" in wishes:
        media.set_verifies(uuid, wishes["VerifyCertificate"])


def _image_missing(words: Words) -> Refused:
    return Refused(400, words.missing, "Image is missing: the URL of what is to be inserted.", prop="Image")


def _check_possible(wishes: dict[str, Any], scheme: str, words: Words) -> None:
    for name in ("Inserted", "WriteProtected"):
        if not wishes.get(name, True):
            text = f"{name} can only be true: a CD is inserted, which is read-only."
            raise Refused(400, words.not_in_list, text, prop=name)
    for name, allowed in {"TransferMethod": METHODS, "TransferProtocolType": PROTOCOLS}.items():
        if wishes.get(name) is not None:
            one_of(wishes[name], allowed, name, words)
    protocol = wishes.get("TransferProtocolType")
    if protocol not in (None, scheme):
        text = f"TransferProtocolType {protocol} contradicts Image, which is to be fetched by {scheme}."
        raise Refused(400, words.conflict, text, prop="TransferProtocolType")


def _login(wishes: dict[str, Any]) -> tuple[str, str] | None:
    name, password = wishes.get("UserName"), wishes.get("Password")
    if not name and not password:
        return None
    if not name or password is None:
        missing = "Password" if name else "UserName"
        raise Refused(400, "ActionParameterMissing", "A login is a name and a password.", prop=missing)
    return name, password


def _system_of(identity: str, device: str) -> str:
    """The UUID of the drive's VM, if the client may know of it."""
    uuid: str = flask.current_app.systems.uuid(identity)  # type: ignore[attr-defined]
    if device != DEVICE:
        raise not_found(f"Drive {device} (the only one is {DEVICE})")
    return uuid


def _without_certificates(**_: str) -> flask.Response:
    raise not_found("A certificate of one drive")


def _nothing() -> flask.Response:
    return flask.Response(status=204)
