# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What else a guest takes to let others boot from the network: a DHCP server, boot loaders and ipmitool.

It lies in the medium as an archive, to be unpacked over the file system of the guest that serves the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import loaders as image_loaders
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image.loaders import (
    ARGUMENTS,
    INITRAMFS,
    KERNEL,
)
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image.tree import Tree

if TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image.loaders import Grub, Uefi

ARCHIVE = "bootstrap.tar.gz"
EXTRAS = "/extras"
SERVED = f"{EXTRAS}/tftp"
MEDIUM = "/mnt"  # where the guest has the medium mounted, of which it serves the kernel
DHCP_SERVER, IPMI_CLIENT = "/usr/sbin/dnsmasq", "/usr/bin/ipmitool"
LETTER = "@LETTER@"  # the guest puts its own words there
TOLD = f"{ARGUMENTS} rehearsal.medium=network rehearsal.letter={LETTER}"
GRUB_CONFIG = f"""\
if [ "$grub_platform" = pc ]; then
  linux16 {KERNEL} {TOLD} edd=off
  initrd16 {INITRAMFS}
else
  linux {KERNEL} {TOLD}
  initrd {INITRAMFS}
fi
boot
"""
IPXE_SCRIPT = f"""\
#!ipxe
kernel {KERNEL.lstrip("/")} {TOLD} edd=off initrd=initramfs
initrd {INITRAMFS.lstrip("/")}
boot
"""


def archive(guest: Tree, packages: Path, grub: Grub, uefi: Uefi, scratch: Path) -> bytes:
    tree = Tree()
    tree.take(DHCP_SERVER)
    tree.take_unpacked(packages, IPMI_CLIENT)
    for program in (DHCP_SERVER, IPMI_CLIENT):
        tree.link(f"{EXTRAS}/{program.rpartition('/')[2]}", program)
    programs = {image_loaders.BIOS_NETWORK_PROGRAM: grub.bios_network_program(scratch), **uefi.network}
    for name, content in programs.items():
        tree.file(f"{SERVED}/{name}", content)
    tree.file(f"{SERVED}/boot.ipxe", IPXE_SCRIPT.encode())
    tree.file(f"{SERVED}/grub/grub.cfg", GRUB_CONFIG.encode())
    tree.link(f"{SERVED}/grub.cfg", "grub/grub.cfg")
    tree.link(f"{SERVED}/EFI/{uefi.vendor}/grub.cfg", "../../grub/grub.cfg")
    tree.link(f"{SERVED}/rehearsal", f"{MEDIUM}/rehearsal")
    return tree.tar(without=guest)
