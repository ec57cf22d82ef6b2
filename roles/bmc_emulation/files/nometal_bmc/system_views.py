# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A system as clients see it and change it: its boot, its power and its secure boot."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import flask

from nometal_bmc import boot, firmware, power
from nometal_bmc.answers import Refused, not_found
from nometal_bmc.boot import Override
from nometal_bmc.service_views import CHASSIS_PATH
from nometal_bmc.wishes import Kinds, checked, one_of

if TYPE_CHECKING:
    from lxml import etree

    from nometal_bmc.domains import Domains
    from nometal_bmc.media import Media

TEXT_OR_NULL = (str, type(None))
BOOT: Kinds = {
    "BootSourceOverrideEnabled": (str,),
    "BootSourceOverrideTarget": (str,),
    "BootSourceOverrideMode": (str,),
    "HttpBootUri": TEXT_OR_NULL,
}
FIXED = (
    "Id",
    "Name",
    "UUID",
    "PowerState",
    "Status",
    "Manufacturer",
    "MemorySummary",
    "ProcessorSummary",
    "SystemType",
)
HTTP_URI = re.compile(r"https?://[!-~]{1,2000}")
KIB_IN_GIB = 1024 * 1024


@dataclass(frozen=True)
class BootWish:
    """What a client wants of the boot; None: as it is."""

    mode: str | None
    target: str | None
    enabled: str | None
    http_uri: str | None
    forgets_uri: bool

    def write(self, domains: Domains, root: etree._Element) -> Override:
        """Write it into a definition, or refuse it."""
        if self.mode:
            firmware.set_mode(domains, root, self.mode)
        override = self._override(boot.get(root))
        if override.target == "UefiHttp":
            _check_http(root, override)
        boot.put(root, override)
        return override

    def _override(self, before: Override) -> Override:
        target = self.target or before.target
        uri = self.http_uri or (None if self.forgets_uri else before.http_uri)
        enabled = self.enabled or before.enabled
        if self.target and not self.enabled and before.enabled == "Disabled":
            enabled = "Once"  # it said what, but not for how long
        if target == "None" and enabled != "Disabled" and self.target is None:
            text = f"Boot/BootSourceOverrideEnabled {self.enabled} needs a Boot/BootSourceOverrideTarget."
            raise Refused(400, "PropertyMissing", text, prop="Boot/BootSourceOverrideTarget")
        if target == "None" or enabled == "Disabled":
            return Override(http_uri=uri)
        return Override(target, enabled, uri)


def show(domains: Domains, uuid: str) -> dict[str, Any]:
    """The resource."""
    root, active = domains.read_with_power(uuid)
    path = f"/redfish/v1/Systems/{uuid}"
    parts = ["Processors", "SimpleStorage", "Storage", "EthernetInterfaces", "VirtualMedia"]
    if firmware.mode(root) == "UEFI":
        parts.append("SecureBoot")
    return {
        "@odata.type": "#ComputerSystem.v1_13_0.ComputerSystem",
        "@odata.id": path,
        "Id": uuid,
        "UUID": uuid,
        "Name": root.findtext("name"),
        "SystemType": "Virtual",
        "Manufacturer": "nometal.ipi",
        "Status": {"State": "Enabled", "Health": "OK", "HealthRollup": "OK"},
        "PowerState": "On" if active else "Off",
        "Boot": _boot(root),
        "ProcessorSummary": {
            "Count": 1,
            "CoreCount": int(root.findtext("vcpu", "1")),
            "LogicalProcessorCount": int(root.findtext("vcpu", "1")),
            "Status": {"State": "Enabled", "Health": "OK"},
        },
        "MemorySummary": {
            "TotalSystemMemoryGiB": _gibibytes(root.findtext("memory", "0")),
            "Status": {"State": "Enabled", "Health": "OK"},
        },
        **{name: {"@odata.id": f"{path}/{name}"} for name in parts},
        "Links": {
            "Chassis": [{"@odata.id": CHASSIS_PATH}],
            "ManagedBy": [{"@odata.id": f"/redfish/v1/Managers/{uuid}"}],
        },
        "Actions": {
            "#ComputerSystem.Reset": {
                "target": f"{path}/Actions/ComputerSystem.Reset",
                "ResetType@Redfish.AllowableValues": list(power.RESET_TYPES),
            }
        },
    }


def change(domains: Domains, media: Media, uuid: str, body: dict[str, Any]) -> None:
    """PATCH: all of it or nothing."""
    wish = _boot_wish(checked(body, {"Boot": (dict,)}, read_only=FIXED)["Boot"])
    override = wish.write(domains, domains.read(uuid))  # a rehearsal: what is refused here has changed nothing
    if override.target == "UefiHttp":
        media.insert(uuid, override.http_uri)
    with domains.lock(uuid):
        with domains.edit(uuid) as root:
            wish.write(domains, root)
        boot.follow(domains, uuid)


def reset(domains: Domains, uuid: str, body: dict[str, Any]) -> None:
    """The action ComputerSystem.Reset."""
    kind = body.get("ResetType")
    for name in body:
        if name != "ResetType":
            raise Refused(400, "ActionParameterUnknown", f"{name} is no parameter of this action.", prop=name)
    if kind is None:
        raise Refused(400, "ActionParameterMissing", "ResetType is missing.", prop="ResetType")
    if not isinstance(kind, str) or kind not in power.RESET_TYPES:
        text = f"ResetType cannot be {kind!r}; it can be {', '.join(power.RESET_TYPES)}."
        raise Refused(400, "ActionParameterNotSupported", text, prop="ResetType")
    power.reset(domains, uuid, kind)


def show_secure_boot(domains: Domains, uuid: str) -> dict[str, Any]:
    """What will be enforced from the next boot on, and what is in the present one."""
    root = domains.read(uuid)
    _check_uefi(root)
    wanted = firmware.is_secure(root)
    live = domains.read_live(uuid)
    present = wanted if live is None else firmware.booted_securely(root, live)
    return {
        "@odata.type": "#SecureBoot.v1_1_0.SecureBoot",
        "@odata.id": f"/redfish/v1/Systems/{uuid}/SecureBoot",
        "Id": "SecureBoot",
        "Name": "UEFI Secure Boot",
        "SecureBootEnable": wanted,
        "SecureBootCurrentBoot": "Enabled" if present else "Disabled",
        "SecureBootMode": "UserMode" if wanted else "SetupMode",
        "Actions": {},
    }


def change_secure_boot(domains: Domains, uuid: str, body: dict[str, Any]) -> None:
    fixed = ("SecureBootCurrentBoot", "SecureBootMode", "Id", "Name")
    wanted = checked(body, {"SecureBootEnable": (bool,)}, read_only=fixed)["SecureBootEnable"]
    with domains.edit(uuid) as root:
        _check_uefi(root)
        firmware.set_secure(domains, root, wanted)


def _boot(root: etree._Element) -> dict[str, Any]:
    override = boot.get(root)
    mode = firmware.mode(root)
    return {
        "BootSourceOverrideEnabled": override.enabled,
        "BootSourceOverrideEnabled@Redfish.AllowableValues": boot.ENABLED,
        "BootSourceOverrideTarget": override.target,
        "BootSourceOverrideTarget@Redfish.AllowableValues": boot.TARGETS[: None if mode == "UEFI" else -1],
        "BootSourceOverrideMode": mode,
        "BootSourceOverrideMode@Redfish.AllowableValues": firmware.MODES,
        "HttpBootUri": override.http_uri,
    }


def _boot_wish(found: dict[str, Any]) -> BootWish:
    wishes = checked(found, BOOT, where="Boot/")
    choices = {"Enabled": boot.ENABLED, "Target": boot.TARGETS, "Mode": firmware.MODES}
    chosen = {name: wishes.get(f"BootSourceOverride{name}") for name in choices}
    for name, value in chosen.items():
        if value is not None:
            one_of(value, choices[name], f"Boot/BootSourceOverride{name}")
    uri = wishes.get("HttpBootUri")
    if uri is not None and not HTTP_URI.fullmatch(uri):
        text = "Boot/HttpBootUri has to be a URL with http or https."
        raise Refused(400, "PropertyValueFormatError", text, prop="Boot/HttpBootUri")
    forgets = "HttpBootUri" in wishes and uri is None
    return BootWish(chosen["Mode"], chosen["Target"], chosen["Enabled"], uri, forgets)


def _check_http(root: etree._Element, override: Override) -> None:
    if firmware.mode(root) != "UEFI":
        text = "Boot/BootSourceOverrideTarget UefiHttp needs the boot mode UEFI."
        raise Refused(400, "PropertyValueNotInList", text, prop="Boot/BootSourceOverrideTarget")
    if not override.http_uri:
        text = "Boot/BootSourceOverrideTarget UefiHttp needs Boot/HttpBootUri."
        raise Refused(400, "PropertyMissing", text, prop="Boot/HttpBootUri")


def _check_uefi(root: etree._Element) -> None:
    if firmware.mode(root) != "UEFI":
        raise not_found(f"Secure boot of {root.findtext('name')}, which boots by BIOS,")


def _gibibytes(kib: str) -> float:
    size = round(int(kib) / KIB_IN_GIB, 3)
    return int(size) if size.is_integer() else size


def add_views(app: flask.Flask, domains: Domains, media: Media) -> None:
    """Put ours in place of sushy-tools' views of a system."""

    def system(identity: str) -> flask.Response:
        if flask.request.method == "PATCH":
            change(domains, media, identity, flask.request.json)
            return _done()
        return flask.jsonify(show(domains, identity))

    def reset_action(identity: str) -> flask.Response:
        reset(domains, identity, flask.request.json)
        return _done()

    def secure_boot(identity: str) -> flask.Response:
        if flask.request.method == "PATCH":
            change_secure_boot(domains, identity, flask.request.json)
            return _done()
        return flask.jsonify(show_secure_boot(domains, identity))

    app.view_functions.update(system_resource=system, system_reset_action=reset_action, secure_boot=secure_boot)


def _done() -> flask.Response:
    return flask.Response(status=204)
