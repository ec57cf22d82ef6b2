# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ISO: a CD for BIOS and UEFI that, written to a disk as it is, is a disk for both as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._agent.letter import LABEL
from ansible_collections.nometal.ipi.plugins.module_utils._core.files import write_tree
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image.loaders import Grub

BIOS = "rehearsal/bios.img"
EFI_PARTITION = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"
SECTOR, MIB = 512, 1024 * 1024
ROOM = 1 * MIB  # for the file system itself


def write_iso(iso: Path, files: Mapping[str, bytes], efi: Mapping[str, bytes], grub: Grub, scratch: Path) -> None:
    tree = scratch / "tree"
    configs = {name: content for name, content in efi.items() if name.endswith(".cfg")}  # a CD's GRUB sees no partition
    contents = {**files, **configs, BIOS: grub.bios_program(scratch)}
    write_tree(tree, {name.lstrip("/"): content for name, content in contents.items()})
    partition = _efi_partition(efi, scratch)
    run(
        *("xorriso", "-as", "mkisofs", "-quiet", "-r", "-V", LABEL.decode(), "-o", str(iso)),
        *("-b", BIOS, "-no-emul-boot", "-boot-load-size", "4", "-boot-info-table", "--grub2-boot-info"),
        *("--grub2-mbr", str(grub.bios_sector), "-append_partition", "2", EFI_PARTITION, str(partition)),
        *("-appended_part_as_gpt", "-eltorito-alt-boot", "-e", "--interval:appended_partition_2:all::"),
        *("-no-emul-boot", str(tree)),
    )


def _efi_partition(files: Mapping[str, bytes], scratch: Path) -> Path:
    image, tree = scratch / "efi.img", scratch / "efi"
    write_tree(tree, files)
    size = (sum(map(len, files.values())) + ROOM) // MIB + 1
    run("mformat", "-C", "-i", str(image), "-T", str(size * MIB // SECTOR), "-h", "2", "-s", "32", "::")
    run("mcopy", "-s", "-i", str(image), str(tree / "EFI"), "::")
    return image
