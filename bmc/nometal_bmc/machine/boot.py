# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boot override: devices of one kind come first, for one boot or for all; then the order from before returns.

The order is that of the VM's devices (<boot order='n'/>); the one from before is noted in the VM.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nometal_bmc.answers import Refused
from nometal_bmc.machine import notes
from nometal_bmc.machine.definition import child, part, remove, values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lxml import etree

KINDS = {
    "Pxe": "devices/interface",
    "Cd": "devices/disk[@device='cdrom']",
    "Hdd": "devices/disk[@device='disk']",
    "UefiHttp": "devices/disk[@device='cdrom']",  # the firmware gets the image as a disc, whatever network there is
}
TARGETS = ("None", *KINDS)
OPTIONS = ("Pxe", "Cd", "Hdd")
"""Each device is of one of these kinds."""
ENABLED = ("Disabled", "Once", "Continuous")
MOST_OPTIONS = 64
OPTION = r"(Pxe|Cd|Hdd)-[!-~]{1,64}"
"""As an option is called; a machine has its own."""
HTTP_URI = r"https?://[!-~]{1,2000}"


@dataclass(frozen=True)
class Override:
    """What is to boot instead of the first device, and for how long."""

    target: str = "None"
    enabled: str = "Disabled"
    http_uri: str | None = None


NONE = Override()


@dataclass(frozen=True)
class BootWish:
    """What a client wants of the boot; None: as it is."""

    mode: str | None = None
    target: str | None = None
    enabled: str | None = None
    http_uri: str | None = None
    forgets_uri: bool = False
    order: Sequence[str] | None = None
    """The options from which it boots when no override is in effect."""

    def override(self, before: Override) -> Override:
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


def get(root: etree._Element) -> Override:
    noted = notes.read(root)
    return Override(noted.get("target", "None"), noted.get("enabled", "Disabled"), noted.get("http"))


def put(root: etree._Element, override: Override) -> None:
    """Write an override into a definition."""
    if override == get(root):
        return
    _restore(root)
    notes.write(root, target=None, enabled=None, http=override.http_uri, boot=None, order=None)
    if override.enabled != "Disabled":
        # `boot` tells this override from an equal one before: which of the two has a running guest booted by?
        marks = {"target": override.target, "enabled": override.enabled, "boot": secrets.token_hex(4)}
        notes.write(root, **marks, order=_order(root))
        _put_first(root, override.target)


def put_order(root: etree._Element, order: Sequence[str]) -> None:
    """Have a definition boot from these options, and from no others; an override stays in effect."""
    known = {option.reference: option.device for option in options(root)}
    for number, name in enumerate(order):
        if name not in known:
            text = f"Boot/BootOrder cannot have {name!r}; it can have {', '.join(known)}."
            raise Refused(400, "PropertyValueNotInList", text, prop="Boot/BootOrder")
        if name in order[:number]:
            text = f"Boot/BootOrder has {name} twice."
            raise Refused(400, "PropertyValueConflict", text, prop="Boot/BootOrder")
    places = {known[name]: place for place, name in enumerate(order, 1)}
    for device in _devices(root):
        _set_number(device, places.get(_key(device)))
    override = get(root)
    if override.enabled != "Disabled":
        notes.write(root, order=_order(root))
        _put_first(root, override.target)


@dataclass(frozen=True)
class Option:
    """A device that a machine can boot from; without a place it does not take part."""

    target: str
    device: str
    place: int | None

    @property
    def reference(self) -> str:
        return f"{self.target}-{self.device.replace(':', '')}"


def options(root: etree._Element) -> list[Option]:
    """In the order that there is when no override is in effect; those that do not take part come last."""
    noted = notes.read(root).get("order")
    places = None if noted is None else dict(entry.rsplit("=", 1) for entry in noted.split())
    found = []
    for target in OPTIONS:
        for device in root.findall(KINDS[target]):
            place = _number(device)
            if places is not None and _key(device) in places:
                place = None if places[_key(device)] == "-" else int(places[_key(device)])
            found.append(Option(target, _key(device), place))
    return sorted(found, key=lambda option: (option.place is None, option.place or 0))


def orders(root: etree._Element, live: etree._Element) -> dict[str, int | None]:
    """The order of this definition, for the devices of a running machine, by their aliases."""
    numbers = {_key(device): _number(device) for device in _devices(root)}
    return {part(device, "alias").get("name", ""): numbers.get(_key(device)) for device in _devices(live)}


def mark_for_once(root: etree._Element) -> str | None:
    """What tells an override for one boot from others, if there is one."""
    return notes.read(root).get("boot") if get(root).enabled == "Once" else None


def _put_first(root: etree._Element, target: str) -> None:
    chosen = root.findall(KINDS[target])
    if not chosen:
        text = f"VM {root.findtext('name')} has nothing to boot from that is {target}."
        raise Refused(400, "PropertyValueNotInList", text, prop="Boot/BootSourceOverrideTarget")
    chosen = [device for device in chosen if _number(device)] or chosen  # else none of them takes part in booting
    rest = [device for device in _devices(root) if _number(device) and device not in chosen]
    _number_all(sorted(chosen, key=_rank) + sorted(rest, key=_rank))


def _restore(root: etree._Element) -> None:
    """Give every device its place from before back; one that was added since stays behind them."""
    order = notes.read(root).get("order")
    if order is None:
        return
    places = dict(entry.rsplit("=", 1) for entry in order.split())
    for device in _devices(root):
        if places.get(_key(device)) == "-":
            _set_number(device, None)
    numbered = [device for device in _devices(root) if _number(device)]
    _number_all(sorted(numbered, key=lambda device: (int(places.get(_key(device), 10**6)), _rank(device))))


def _order(root: etree._Element) -> str:
    return " ".join(f"{_key(device)}={_number(device) or '-'}" for device in _devices(root))


def _devices(root: etree._Element) -> list[etree._Element]:
    return [*root.findall("devices/disk"), *root.findall("devices/interface")]


def _key(device: etree._Element) -> str:
    """What a device is known by, in the definition and in what is running of it."""
    return values(device, "target/@dev" if device.tag == "disk" else "mac/@address")[0]


def _number(device: etree._Element) -> int | None:
    boot = device.find("boot")
    return None if boot is None else int(boot.attrib["order"])


def _rank(device: etree._Element) -> int:
    return _number(device) or 0


def _number_all(devices: list[etree._Element]) -> None:
    for number, device in enumerate(devices, 1):
        _set_number(device, number)


def _set_number(device: etree._Element, number: int | None) -> None:
    if number is None:
        remove(device, "boot")
    else:
        child(device, "boot").set("order", str(number))
