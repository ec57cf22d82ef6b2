# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel of the distribution, and those of its modules that a guest needs."""

from __future__ import annotations

import gzip
import lzma
import re
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# First what gives a guest random numbers and networks, last what looks for disks for a while.
DRIVERS = (
    *("virtio_pci", "virtio_rng", "virtio_console", "virtio_net", "af_packet", "isofs", "efivarfs"),
    *("sd_mod", "sr_mod", "virtio_blk", "nvme", "virtio_scsi"),
)
SATA_DRIVERS = (*DRIVERS, "ahci")  # which small kernels have not got
# Old kernels have these in others, and small ones do without.
DISPENSABLE = ("virtio_rng", "virtio_console", "af_packet", "efivarfs")
SIGNATURES = 4  # which of the tables of a PE file holds them
PE32_PLUS = 0x20B


@dataclass(frozen=True)
class Kernel:
    image: Path
    modules: Path

    @property
    def version(self) -> str:
        return self.modules.name

    @cached_property
    def _files(self) -> dict[str, Path]:
        return {_name_of(path): path for path in (self.modules / "kernel").rglob("*.ko*")}

    @cached_property
    def _built_in(self) -> set[str]:
        listed = self.modules / "modules.builtin"
        return {_name_of(Path(line)) for line in listed.read_text().split()} if listed.exists() else set()

    def has_all(self, drivers: Iterable[str]) -> bool:
        return {*self._files, *self._built_in, *DISPENSABLE}.issuperset(drivers)

    def drivers(self, names: Iterable[str]) -> dict[str, bytes]:
        """Each after those that it needs."""
        found: dict[str, bytes] = {}
        for name in names:
            self._collect(name, found)
        return found

    def _collect(self, name: str, found: dict[str, bytes]) -> None:
        if name in self._files and name not in found:
            content = _plain(self._files[name])
            for needed in needs_of(content):
                self._collect(needed, found)
            found[name] = content


def newest(root: Path, drivers: Sequence[str]) -> Kernel | None:
    """Of those below a directory that have all these drivers; signed ones come first."""
    usable = [kernel for kernel in _kernels(root) if kernel.has_all(drivers)]
    return max(usable, key=lambda kernel: (is_signed(kernel.image), _numbers(kernel.version)), default=None)


def _kernels(root: Path) -> Iterator[Kernel]:
    for modules in [*root.glob("lib/modules/*"), *root.glob("usr/lib/modules/*")]:
        for image in (root / "boot" / f"vmlinuz-{modules.name}", modules / "vmlinuz"):
            if image.is_file():
                yield Kernel(image, modules)


def is_signed(program: Path) -> bool:
    """Whether a program for UEFI (a kernel is one, too) bears any signature."""
    content = program.read_bytes()
    header = int.from_bytes(content[0x3C:0x40], "little")
    optional = header + 24
    if content[header : header + 4] != b"PE\0\0" or _number(content, optional, 2) != PE32_PLUS:
        return False
    return _number(content, optional + 112 + SIGNATURES * 8 + 4, 4) > 0


def needs_of(module: bytes) -> list[str]:
    found = re.search(rb"\0depends=([^\0]*)\0", module)
    names = found.group(1).decode().split(",") if found else []
    return [name.replace("-", "_") for name in names if name]


def _number(content: bytes, at: int, size: int) -> int:
    return int.from_bytes(content[at : at + size], "little")


def _name_of(path: Path) -> str:
    """As the kernel itself calls it."""
    return path.name.partition(".")[0].replace("-", "_")


def _numbers(version: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", version)]


def _plain(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".zst":
        return _without_zstd(path)
    return {".xz": lzma.decompress, ".gz": gzip.decompress}.get(path.suffix, bytes)(content)


def _without_zstd(path: Path) -> bytes:
    """By the program, for Python has learnt it only lately."""
    with tempfile.NamedTemporaryFile() as plain:
        run("zstd", "-dfq", str(path), "-o", plain.name)
        return Path(plain.name).read_bytes()
