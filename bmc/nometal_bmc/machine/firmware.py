# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""BIOS or UEFI, and secure boot: libvirt chooses the firmware by features, from what the distribution ships.

Whether secure boot is enforced is a matter of the variables (NVRAM) too: these are made afresh from the template that
belongs to the firmware when the VM is started with another one than last time.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from lxml import etree

from nometal_bmc.machine import notes
from nometal_bmc.machine.definition import child, part, remove

if TYPE_CHECKING:
    from collections.abc import Callable

MODES = ("Legacy", "UEFI")


def mode(root: etree._Element) -> str:
    """UEFI or Legacy."""
    manual = root.find("os/loader[@type='pflash']") is not None
    return "UEFI" if manual or part(root, "os").get("firmware") == "efi" else "Legacy"


def is_secure(root: etree._Element) -> bool:
    """Is only signed software meant to boot?"""
    if part(root, "os").get("firmware"):
        return root.find("os/firmware/feature[@name='secure-boot'][@enabled='yes']") is not None
    return root.find("os/loader[@secure='yes']") is not None


def shown(root: etree._Element, live: etree._Element | None) -> etree._Element:
    """The definition whose firmware clients see: what runs, or what one of them has set for the next start."""
    if live is None:
        return root
    wish = notes.read(root).get("firmware", "")
    return root if wish.startswith(f"{state(root)} ") and wish != notes.read(live).get("firmware") else live


def note_wish(
    root: etree._Element, live: etree._Element | None, reads: Callable[[etree._Element], object], wanted: object
) -> None:
    """Have a running machine show what a client has set: a mark that it was not started with says so."""
    if wanted is not None and reads(shown(root, live)) != wanted:
        notes.write(root, firmware=f"{state(root)} {secrets.token_hex(4)}")


def booted_securely(root: etree._Element, live: etree._Element) -> bool:
    """Was the guest that runs booted so? If someone else has started it, its variables may be those of before."""
    return is_secure(live) and notes.read(root).get("nvram", "secure") == "secure"


def state(root: etree._Element) -> str:
    """What the variables have to be made for."""
    if mode(root) == "Legacy":
        return "bios"
    return "secure" if is_secure(root) else "plain"


def choose(root: etree._Element, *, secure: bool) -> None:
    """Let libvirt find a firmware, in the way that bmh_vm does."""
    clear(root)
    system = part(root, "os")
    system.set("firmware", "efi")
    firmware = etree.Element("firmware")
    part(system, "type").addnext(firmware)
    if secure:
        etree.SubElement(firmware, "feature", enabled="yes", name="enrolled-keys")
        child(child(root, "features"), "smm").set("state", "on")
    etree.SubElement(firmware, "feature", enabled="yes" if secure else "no", name="secure-boot")


def clear(root: etree._Element) -> None:
    """No UEFI: then QEMU brings its BIOS, for which not every distribution has a descriptor."""
    system = part(root, "os")
    system.attrib.pop("firmware", "")
    remove(system, "firmware", "loader", "nvram")
