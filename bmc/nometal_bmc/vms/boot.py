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
from nometal_bmc.vms import notes
from nometal_bmc.vms.definition import child, part, remove, values
from nometal_bmc.vms.qemu import set_boot_indexes

if TYPE_CHECKING:
    from lxml import etree

    from nometal_bmc.vms.domains import Domains

KINDS = {
    "Pxe": "devices/interface",
    "Cd": "devices/disk[@device='cdrom']",
    "Hdd": "devices/disk[@device='disk']",
    "UefiHttp": "devices/disk[@device='cdrom']",  # the firmware gets the image as a disc, whatever network there is
}
TARGETS = ("None", *KINDS)
ENABLED = ("Disabled", "Once", "Continuous")


@dataclass(frozen=True)
class Override:
    """What is to boot instead of the first device, and for how long."""

    target: str = "None"
    enabled: str = "Disabled"
    http_uri: str | None = None


NONE = Override()


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


def set_override(domains: Domains, uuid: str, override: Override) -> None:
    """For those who have nothing else to change."""
    with domains.lock(uuid):
        with domains.edit(uuid) as root:
            put(root, override)
        follow(domains, uuid, domains.read(uuid))


def follow(domains: Domains, uuid: str, root: etree._Element) -> None:
    """A running guest that is reset, or reboots by itself, boots by the order of this definition as well."""
    live = domains.read_live(uuid)
    if live is None:
        return
    orders = {_key(device): _number(device) for device in _devices(root)}
    names = {part(device, "alias").get("name", ""): _key(device) for device in _devices(live)}
    set_boot_indexes(domains.domain(uuid), {name: orders.get(key) for name, key in names.items()})


def booted(domains: Domains, uuid: str) -> None:
    """The VM was switched on: the boot has used up an override for one boot if the VM was started with it."""
    with domains.lock(uuid):
        live = domains.read_live(uuid)
        if live is not None:
            domains.empty_lost_cd(uuid, live)
            use_up(domains, uuid, _mark_for_once(live))


def pending(domains: Domains, uuid: str) -> str | None:
    """The mark of an override for the next boot, if there is one."""
    return _mark_for_once(domains.read(uuid))


def use_up(domains: Domains, uuid: str, mark: str | None) -> None:
    """A boot has begun with this override for one boot: it is over, unless there is another one by now."""
    with domains.lock(uuid):
        root = domains.read(uuid)
        if mark and mark == _mark_for_once(root):
            ended = Override(http_uri=get(root).http_uri)
            put(root, ended)
            try:
                # First: a client that reads that the override is over may reset the guest at once.
                follow(domains, uuid, root)
            finally:
                with domains.edit(uuid) as definition:
                    put(definition, ended)


def _mark_for_once(root: etree._Element) -> str | None:
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
