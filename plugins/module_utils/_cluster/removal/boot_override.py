# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boot override that a BMC has noted in its VM, taken back in the definition for a BMC that does not answer."""

from __future__ import annotations

from typing import Any

try:
    from lxml import etree
except ImportError:  # connect() has said so by the time that anything here runs
    etree = None  # type: ignore[assignment]  # mypy takes the name for the module alone

NOTES = "metadata/{urn:nometal:ipi:bmc}state"
OVERRIDE = ("target", "enabled", "http", "boot", "order")
"""What the BMC notes of one. `order` is the boot order from before, by device: `sda=1 sdz=3 52:54:00:00:00:01=-`."""
DEVICES = ("devices/disk", "devices/interface")
LAST = 10**6


def of(root: Any) -> str:
    """What boots first and for how long, such as `Hdd (Continuous)`; empty without one."""
    notes = root.find(NOTES)
    if notes is None or not any(notes.get(name) for name in ("target", "http")):
        return ""
    return f"{notes.get('target', 'None')} ({notes.get('enabled', 'Disabled')})"


def forget(root: Any) -> None:
    notes = root.find(NOTES)
    former = dict(entry.rsplit("=", 1) for entry in notes.get("order", "").split())
    if former:
        _number_again(root, former)
    for name in OVERRIDE:
        notes.attrib.pop(name, None)


def _number_again(root: Any, former: dict[str, str]) -> None:
    """Every device has its place from before; one that was added since stays behind them."""
    placed: list[tuple[int, int, int, Any]] = []
    for device in (device for path in DEVICES for device in root.findall(path)):
        boot, place = device.find("boot"), former.get(_key(device))
        number = None if boot is None else int(boot.get("order"))
        if boot is not None:
            device.remove(boot)
        if place != "-" and (place is not None or number is not None):
            placed.append((LAST if place is None else int(place), number or LAST, len(placed), device))
    for order, (*_rank, device) in enumerate(sorted(placed, key=lambda entry: entry[:3]), 1):
        etree.SubElement(device, "boot", order=str(order))


def _key(device: Any) -> str:
    """What a device is known by."""
    return device.find("target").get("dev") if device.tag == "disk" else device.find("mac").get("address")
