# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts the image together, of what is on the host and of packages where that is not enough."""

from __future__ import annotations

import gzip
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Callable, NoReturn, TypeVar

from ansible_collections.nometal.ipi.plugins.module_utils._agent.letter import LETTER, LETTER_BYTES, LETTER_MARK
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._observe.system import distribution
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import iso as image_iso
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import kernel as image_kernel
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import loaders as image_loaders
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import network as image_network
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import packages as image_packages
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import python as image_python
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image.packages import NotCarriedError
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image.kernel import Kernel
    from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image.loaders import Uefi
    from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image.recipe import Recipe

HOST = Path("/")
PROGRAMS = ("/sbin/ip",)
DIRECTORIES = ("/dev", "/proc", "/sys", "/run", "/tmp", "/mnt", "/root")  # noqa: S108 - in the guest
# The kernel gives /init its voice by the first, and Python does not start without the last.
DEVICES = {"/dev/console": (5, 1), "/dev/null": (1, 3), "/dev/urandom": (1, 9)}
FILES = {
    "/etc/nsswitch.conf": "hosts: files dns\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "/etc/passwd": "root:x:0:0:root:/root:/bin/false\n",
    "/etc/group": "root:x:0:\n",
}
ORDER = "/modules/order"

Found = TypeVar("Found")


def build(recipe: Recipe, iso: Path, scratch: Path) -> bool:
    """Returns whether it boots where secure boot is enforced."""
    supply = Supply(recipe, scratch)
    kernel = supply.kernel()
    grub = supply.find("bios", lambda root: image_loaders.find_grub(root, "i386-pc"))
    uefi = _uefi(supply, scratch)
    guest = _guest(kernel, recipe, scratch)
    files = {
        image_loaders.KERNEL: kernel.image.read_bytes(),
        # Others would save a guest a tenth of a second; Python has this one, and every kernel unpacks it.
        image_loaders.INITRAMFS: gzip.compress(guest.archive(), mtime=0),
        image_loaders.LETTER: letter().archive(),
    }
    if recipe.network_boot:
        files[image_network.ARCHIVE] = image_network.archive(guest, supply.network(), grub, uefi, scratch)
    image_iso.write_iso(iso, files, uefi.files, grub, scratch)
    return uefi.is_signed and image_kernel.is_signed(kernel.image)


class Supply:
    """What is on the host, or else in packages that are downloaded for it."""

    def __init__(self, recipe: Recipe, scratch: Path) -> None:
        self._packages = recipe.packages
        self._drivers = recipe.drivers
        self._scratch = scratch
        self._manager = image_packages.manager(scratch)

    def kernel(self) -> Kernel:
        """Of the first packages that hold one with all drivers."""
        found = image_kernel.newest(HOST, self._drivers)
        for number, names in enumerate(self._packages["kernel"]):
            with suppress(NotCarriedError):
                found = found or image_kernel.newest(self._unpacked(names.split(), f"kernel-{number}"), self._drivers)
        return found or self._refuse("kernel")

    def find(self, kind: str, look_below: Callable[[Path], Found | None]) -> Found:
        return look_below(HOST) or look_below(self._unpacked(self._packages[kind], kind)) or self._refuse(kind)

    def network(self) -> Path:
        """Where there is ipmitool. It is nothing to be installed: a daemon comes with it."""
        if Path(image_network.IPMI_CLIENT).exists():
            return HOST
        return self._unpacked(self._packages["network"], "network", libraries=True)

    def _unpacked(self, names: Sequence[str], place: str, *, libraries: bool = False) -> Path:
        return image_packages.unpacked(self._manager, names, self._scratch / place, libraries=libraries)

    def _refuse(self, kind: str) -> NoReturn:
        raise OperatorError(f"packages.{kind}: nothing that would do is in {', '.join(self._packages[kind])}.")


def _uefi(supply: Supply, scratch: Path) -> Uefi:
    """Signed, unless the distribution has nothing signed."""
    system = distribution().id  # as in the directory below EFI that its signed GRUB reads
    try:
        return supply.find("signed", lambda root: image_loaders.find_signed(root, system))
    except NotCarriedError:
        return supply.find("unsigned", lambda root: image_loaders.find_grub(root, "x86_64-efi")).uefi(scratch)


def letter() -> Tree:
    """In the ISO it is not compressed, so that the bootstrap VM can fill it in on the way to the nodes."""
    tree = Tree()
    tree.file(LETTER, LETTER_MARK.ljust(LETTER_BYTES, b"\n"))
    return tree


def _guest(kernel: Kernel, recipe: Recipe, scratch: Path) -> Tree:
    tree = Tree()
    for path in DIRECTORIES:
        tree.directory(path)
    for path, text in FILES.items():
        tree.file(path, text.encode())
    for path, numbers in DEVICES.items():
        tree.character_device(path, *numbers)
    tree.take(*PROGRAMS)
    image_python.put_python(tree, recipe.sources, scratch)
    drivers = kernel.drivers(recipe.drivers)
    for name, content in drivers.items():
        tree.file(f"/modules/{name}.ko", content)
    tree.file(ORDER, "".join(f"/modules/{name}.ko\n" for name in drivers).encode())
    return tree
