# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file system of a guest, as the archive that the kernel unpacks into memory."""

from __future__ import annotations

import io
import os
import re
import stat
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run

if TYPE_CHECKING:
    from collections.abc import Iterable

# Where distributions have merged directories, the guest has the same links.
MERGED = ("/bin", "/sbin", "/lib", "/lib64", "/usr/sbin", "/usr/lib64")
HOST = Path("/")
FEATURES_OF_PROCESSOR = r"/glibc-hwcaps/[^/]+"


@dataclass(frozen=True)
class Entry:
    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)


class Tree:
    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        for path in filter(os.path.islink, MERGED):
            self.link(path, str(Path(path).readlink()))

    def directory(self, path: str) -> None:
        if path != "/" and path not in self._entries:
            self._put(path, Entry(stat.S_IFDIR | 0o755))

    def file(self, path: str, content: bytes, mode: int = 0o644) -> None:
        self._put(path, Entry(stat.S_IFREG | mode, content))

    def link(self, path: str, target: str) -> None:
        self._put(path, Entry(stat.S_IFLNK | 0o777, target.encode()))

    def character_device(self, path: str, major: int, minor: int) -> None:
        self._put(path, Entry(stat.S_IFCHR | 0o600, device=(major, minor)))

    def take(self, *paths: str) -> None:
        """Files of the host, with the libraries that they need, all at their own places."""
        for path in (*paths, *libraries_of(paths)):
            self._copy(path, HOST)

    def take_unpacked(self, root: Path, path: str) -> None:
        """A program of packages that are not installed. Libraries that the host lacks are in them, too."""
        self._copy(path, root)
        listed = run("ldd", f"{root}{path}")
        for library in _paths_in(listed):
            self._copy(library, HOST)
        for name in re.findall(r"(\S+) => not found", listed):
            found = None if root == HOST else next(root.rglob(name), None)
            if found is None:
                raise OperatorError(f"{path} needs {name}, which is neither on the host nor in packages that it needs.")
            self.take_unpacked(root, f"/{found.relative_to(root)}")

    def _copy(self, path: str, root: Path) -> None:
        place = Path(path).parent.resolve() / Path(path).name
        self.file(str(place), (root / path.lstrip("/")).read_bytes(), 0o755)

    def _put(self, path: str, entry: Entry) -> None:
        self.directory(os.path.dirname(path))  # noqa: PTH120 - a path in the guest
        self._entries[path] = entry

    def archive(self) -> bytes:
        """In the format newc of cpio."""
        entries = [_packed(path.lstrip("/"), self._entries[path]) for path in sorted(self._entries)]
        return b"".join([*entries, _packed("TRAILER!!!", Entry(0))])

    def tar(self, without: Tree) -> bytes:
        """Compressed, and only what the other one has not."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=6) as tar:
            for path, entry in sorted(self._entries.items()):
                if without._entries.get(path) != entry:
                    tar.addfile(_member(path, entry), io.BytesIO(entry.content))
        return packed.getvalue()


def libraries_of(programs: Iterable[str]) -> list[str]:
    """Shared libraries and their loader. Those for better processors stay behind: the guest's may be a plain one."""
    return _paths_in(run("ldd", *programs))


def _paths_in(listed: str) -> list[str]:
    return sorted({re.sub(FEATURES_OF_PROCESSOR, "", path) for path in re.findall(r"(/\S+) \(0x", listed)})


def _member(path: str, entry: Entry) -> tarfile.TarInfo:
    member = tarfile.TarInfo(path.lstrip("/"))
    member.mode = stat.S_IMODE(entry.mode)
    if stat.S_ISLNK(entry.mode):
        member.type, member.linkname = tarfile.SYMTYPE, entry.content.decode()
    elif stat.S_ISDIR(entry.mode):
        member.type = tarfile.DIRTYPE
    else:
        member.size = len(entry.content)
    return member


def _packed(name: str, entry: Entry) -> bytes:
    path = name.encode() + b"\0"
    size = len(entry.content)
    fields = [0, entry.mode, 0, 0, 1, 0, size, 0, 0, *entry.device, len(path), 0]
    header = b"070701" + b"".join(b"%08x" % field for field in fields) + path
    return _padded(header) + _padded(entry.content)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
