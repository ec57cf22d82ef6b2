# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boot loaders of the image: GRUB for BIOS, and for UEFI the distribution's signed ones if there are any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image.kernel import is_signed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

KERNEL, INITRAMFS = "/rehearsal/kernel", "/rehearsal/initramfs"
# An archive as well, that a kernel unpacks after the other: guests find in it which rehearsal their medium is of, and
# need no driver for the drive that they were started from.
LETTER = "/letter"  # among the first in the medium, where the bootstrap VM looks for it
# Guests run no foreign code, so that they need no mitigations. What is in capitals is the environment of the first
# process: without a seed, Python would wait a second for the kernel to have random numbers.
# On a busy host without KVM, a timer may not tick in time for the kernel's trial of it, which then halts the guest. And
# its trials of ciphers cost a quarter of a second.
ARGUMENTS = (
    "console=ttyS0 quiet panic=-1 net.ifnames=0 mitigations=off no_timer_check cryptomgr.notests "
    "PYTHONHASHSEED=0 PATH=/usr/sbin:/usr/bin"
)
# $root is what GRUB has been started from: hd0 for a disk; for a CD cd0, or a number above 90 with BIOS.
LOAD = f"{KERNEL} {ARGUMENTS} rehearsal.medium=$root"
# The old way into a kernel: without KVM, it spares a guest more than a second.
BIOS_BOOT = f"""\
linux16 {LOAD} edd=off
initrd16 {INITRAMFS} {LETTER}
boot
"""
# From a disk, UEFI starts what is in a partition; all the rest is on the whole disk.
UEFI_BOOT = f"""\
regexp --set=1:root "^([^,]*)" "$root"
linux {LOAD}
initrd {INITRAMFS} {LETTER}
boot
"""
BIOS_MODULES = ("biosdisk", "iso9660", "linux16", "boot")
UEFI_MODULES = ("part_gpt", "fat", "iso9660", "linux", "boot", "regexp", "normal", "configfile")
NETWORK_MODULES = ("tftp", "normal", "configfile", "test", "linux", "linux16", "boot")
MAKERS = ("usr/bin/grub-mkimage", "usr/bin/grub2-mkimage")
PARTS = {"i386-pc": ("kernel.img", "cdboot.img", "boot_hybrid.img"), "x86_64-efi": ("kernel.img",)}
LIBRARIES = ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "usr/lib64")
UEFI_PROGRAM = "EFI/BOOT/BOOTX64.EFI"  # what UEFI starts on a medium that no boot entry names
BIOS_NETWORK_PROGRAM, UEFI_NETWORK_PROGRAM = "bios.0", "uefi.efi"
VENDOR = "EFI/[!B]*"  # beside EFI/BOOT
SHIMS = (
    *("usr/lib/shim/shimx64.efi.signed.latest", "usr/lib/shim/shimx64.efi.signed"),
    *(f"boot/efi/{VENDOR}/shimx64.efi", f"usr/lib/efi/shim/*/{VENDOR}/shimx64.efi"),
)
GRUBS = (
    "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed",
    *(f"boot/efi/{VENDOR}/grubx64.efi", f"usr/lib/efi/grub2/*/{VENDOR}/grubx64.efi"),
)
NETWORK_GRUBS = ("usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed", *GRUBS[1:])


@dataclass(frozen=True)
class Uefi:
    """What UEFI starts from a medium, and what from the network."""

    files: Mapping[str, bytes]
    network: Mapping[str, bytes]
    is_signed: bool
    vendor: str = "BOOT"


@dataclass(frozen=True)
class Grub:
    """What makes a GRUB, below a directory."""

    root: Path
    maker: Path

    @property
    def bios_sector(self) -> Path:
        return self._modules("i386-pc") / "boot_hybrid.img"

    def bios_program(self, scratch: Path) -> bytes:
        core = self._core("i386-pc", BIOS_MODULES, scratch, config=BIOS_BOOT)
        return (self._modules("i386-pc") / "cdboot.img").read_bytes() + core

    def bios_network_program(self, scratch: Path) -> bytes:
        return self._core("i386-pc-pxe", ("pxe", *NETWORK_MODULES), scratch)

    def uefi(self, scratch: Path) -> Uefi:
        program = self._core("x86_64-efi", UEFI_MODULES, scratch, config=UEFI_BOOT)
        network_program = self._core("x86_64-efi", ("efinet", *NETWORK_MODULES), scratch)
        return Uefi({UEFI_PROGRAM: program}, {UEFI_NETWORK_PROGRAM: network_program}, is_signed=False)

    def _core(self, kind: str, modules: Iterable[str], scratch: Path, *, config: str = "") -> bytes:
        """Without a configuration of its own it reads one below /grub, where the signed ones do."""
        text, made = scratch / f"{kind}.cfg", scratch / f"{kind}.core"
        files.write_whole(text, config, 0o644)
        libraries = ":".join(str(self.root / name) for name in LIBRARIES)
        options = ["-O", kind, "-d", str(self._modules(kind.removesuffix("-pxe"))), "-p", "/grub", "-c", str(text)]
        run("env", f"LD_LIBRARY_PATH={libraries}", str(self.maker), *options, "-o", str(made), *modules)
        return made.read_bytes()

    def _modules(self, platform: str) -> Path:
        return self.root / "usr/lib/grub" / platform


def find_grub(root: Path, platform: str) -> Grub | None:
    maker = next((root / name for name in MAKERS if (root / name).exists()), None)
    parts = (root / "usr/lib/grub" / platform / name for name in PARTS[platform])
    return Grub(root, maker) if maker and all(part.exists() for part in parts) else None


def find_signed(root: Path, system: str) -> Uefi | None:
    shim, grub, network_grub = _first(root, SHIMS), _first(root, GRUBS), _first(root, NETWORK_GRUBS)
    if not (shim and grub and network_grub and all(map(is_signed, (shim, grub, network_grub)))):
        return None
    vendor = grub.parent.name if grub.parent.parent.name == "EFI" else system
    config = UEFI_BOOT.encode()  # each GRUB looks for it where its distribution has told it to
    files = {
        UEFI_PROGRAM: shim.read_bytes(),
        "EFI/BOOT/grubx64.efi": grub.read_bytes(),
        f"EFI/{vendor}/grub.cfg": config,
        "EFI/BOOT/grub.cfg": config,
    }
    network = {UEFI_NETWORK_PROGRAM: shim.read_bytes(), "grubx64.efi": network_grub.read_bytes()}
    return Uefi(files, network, is_signed=True, vendor=vendor)


def _first(root: Path, patterns: Iterable[str]) -> Path | None:
    return next((path for pattern in patterns for path in sorted(root.glob(pattern), reverse=True)), None)
