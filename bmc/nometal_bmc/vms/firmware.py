# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of a VM's firmware: only to what libvirt can do on this host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libvirt

from nometal_bmc.answers import Refused, not_found
from nometal_bmc.machine import notes
from nometal_bmc.machine.definition import parse, part, values
from nometal_bmc.machine.firmware import choose, clear, is_secure, mode, note_wish, state

if TYPE_CHECKING:
    from lxml import etree

    from nometal_bmc.vms.domains import Domains

X86 = ("x86_64", "i686")
RESET_NVRAM = getattr(libvirt, "VIR_DOMAIN_START_RESET_NVRAM", None)  # libvirt 8.1


def set_mode(domains: Domains, root: etree._Element, wanted: str) -> None:
    """Change the boot mode of a definition, if it is another one."""
    if wanted == mode(root):
        return
    if wanted == "UEFI":
        _check(domains, root, "firmware", "efi", "Boot/BootSourceOverrideMode")
        choose(root, secure=False)
    else:
        _check_legacy(root)
        clear(root)


def set_secure(domains: Domains, root: etree._Element, wanted: bool) -> None:
    """Switch secure boot of a definition on or off, if it is not so already."""
    if wanted == is_secure(root):
        return
    if RESET_NVRAM is None:
        text = "libvirt on this host is too old (before 8.1) to make the VM's secure boot variables afresh."
        raise Refused(409, "PropertyNotWritable", text, prop="SecureBootEnable")
    if wanted:
        _check(domains, root, "secure", "yes", "SecureBootEnable")
    choose(root, secure=wanted)


def set_secure_boot(domains: Domains, uuid: str, wanted: bool) -> None:
    """As a client wants it, who reads it back at once."""
    with domains.edit(uuid) as root:
        if mode(root) != "UEFI":
            raise not_found(f"Secure boot of {root.findtext('name')}, which boots by BIOS,")
        set_secure(domains, root, wanted)
        note_wish(root, domains.read_live(uuid), is_secure, wanted)


def start_flags(root: etree._Element) -> int:
    """How to start it: with variables made afresh, if those that are there may belong to another firmware."""
    stale = state(root) not in ("bios", notes.read(root).get("nvram"))
    return RESET_NVRAM if stale and RESET_NVRAM is not None else 0


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
