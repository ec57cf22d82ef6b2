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

import libvirt
from lxml import etree

from nometal_bmc.answers import Refused
from nometal_bmc.vms import notes
from nometal_bmc.vms.definition import child, parse, part, remove, values

if TYPE_CHECKING:
    from collections.abc import Callable

    from nometal_bmc.vms.domains import Domains

MODES = ("Legacy", "UEFI")
X86 = ("x86_64", "i686")
RESET_NVRAM = getattr(libvirt, "VIR_DOMAIN_START_RESET_NVRAM", None)  # libvirt 8.1


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
    root: etree._Element, live: etree._Element | None, told: Callable[[etree._Element], object], wanted: object
) -> None:
    """Have a running machine show what a client has set: a mark that it was not started with says so."""
    if wanted is not None and told(shown(root, live)) != wanted:
        notes.write(root, firmware=f"{state(root)} {secrets.token_hex(4)}")


def booted_securely(root: etree._Element, live: etree._Element) -> bool:
    """Was the guest that runs booted so? If someone else has started it, its variables may be those of before."""
    return is_secure(live) and notes.read(root).get("nvram", "secure") == "secure"


def set_mode(domains: Domains, root: etree._Element, wanted: str) -> None:
    """Change the boot mode of a definition, if it is another one."""
    if wanted == mode(root):
        return
    if wanted == "UEFI":
        _check(domains, root, "firmware", "efi", "Boot/BootSourceOverrideMode")
        _choose(root, secure=False)
    else:
        _check_legacy(root)
        _clear(root)


def set_secure(domains: Domains, root: etree._Element, wanted: bool) -> None:
    """Switch secure boot of a definition on or off, if it is not so already."""
    if wanted == is_secure(root):
        return
    if RESET_NVRAM is None:
        text = "libvirt on this host is too old (before 8.1) to make the VM's secure boot variables afresh."
        raise Refused(409, "PropertyNotWritable", text, prop="SecureBootEnable")
    if wanted:
        _check(domains, root, "secure", "yes", "SecureBootEnable")
    _choose(root, secure=wanted)


def state(root: etree._Element) -> str:
    """What the variables have to be made for."""
    if mode(root) == "Legacy":
        return "bios"
    return "secure" if is_secure(root) else "plain"


def start_flags(root: etree._Element) -> int:
    """How to start it: with variables made afresh, if those that are there may belong to another firmware."""
    stale = state(root) not in ("bios", notes.read(root).get("nvram"))
    return RESET_NVRAM if stale and RESET_NVRAM is not None else 0


def _choose(root: etree._Element, *, secure: bool) -> None:
    """Let libvirt find a firmware, in the way that bmh_vm does."""
    _clear(root)
    system = part(root, "os")
    system.set("firmware", "efi")
    firmware = etree.Element("firmware")
    part(system, "type").addnext(firmware)
    if secure:
        etree.SubElement(firmware, "feature", enabled="yes", name="enrolled-keys")
        child(child(root, "features"), "smm").set("state", "on")
    etree.SubElement(firmware, "feature", enabled="yes" if secure else "no", name="secure-boot")


def _clear(root: etree._Element) -> None:
    """No UEFI: then QEMU brings its BIOS, for which not every distribution has a descriptor."""
    system = part(root, "os")
    system.attrib.pop("firmware", "")
    remove(system, "firmware", "loader", "nvram")


def _check_legacy(root: etree._Element) -> None:
    if part(root, "os/type").get("arch", "") not in X86:
        text = f"VM {root.findtext('name')} has a processor for which there is no BIOS: it boots by UEFI only."
        raise Refused(400, "PropertyValueNotInList", text, prop="Boot/BootSourceOverrideMode")


def _check(domains: Domains, root: etree._Element, name: str, value: str, prop: str) -> None:
    """Can libvirt do that here, with this machine type? It would say so itself only when the VM is to start."""
    kind = part(root, "os/type")
    where = [root.findtext("devices/emulator"), kind.get("arch"), kind.get("machine"), root.get("type")]
    capabilities = parse(domains.connection().getDomainCapabilities(*where))
    if value not in values(capabilities, f"os//enum[@name='{name}']/value/text()"):
        text = f"This host has no firmware that can do that with the machine type {kind.get('machine')}."
        raise Refused(409, "PropertyNotWritable", text, prop=prop)
