# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has files open on this host: processes, and block devices that are files (loop)."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

Key = tuple[int, int]
PROCESSES = Path("/proc")
LOOPS = Path("/sys/block")
LIBVIRT = ("libvirtd", "virtqemud", "virtstoraged")
"""They look into images for a moment."""


def key_of(path: str | Path) -> Key | None:
    """The same file has many names, by links and by mounts."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def holders(wanted: Collection[Key | None], vms: Collection[str] = ()) -> Iterator[tuple[Key, str]]:
    """Which of these files are open, each with who has it open. Processes of VMs that are named do not count."""
    own = {f"guest={name}" for name in vms}
    for process in PROCESSES.glob("[0-9]*"):
        found = {key for key in _open_in(process / "fd") if key in wanted}
        if found and process.name != str(os.getpid()) and not _is_apart(process, own):
            yield from ((key, f"process {_name_of(process)} ({process.name})") for key in sorted(found))
    for file in LOOPS.glob("loop*/loop/backing_file"):
        with suppress(OSError):
            key = key_of(file.read_text(encoding="utf-8", errors="surrogateescape").rstrip("\n"))
            if key and key in wanted:
                yield key, f"device /dev/{file.parents[1].name}"


def _open_in(descriptors: Path) -> Iterator[Key]:
    with suppress(OSError):  # it has ended
        yield from (key for entry in os.scandir(descriptors) if (key := key_of(entry.path)))


def _is_apart(process: Path, own: Collection[str]) -> bool:
    with suppress(OSError):
        words = (process / "cmdline").read_bytes().split(b"\0")
        return _name_of(process) in LIBVIRT or any(os.fsdecode(word).partition(",")[0] in own for word in words)
    return True  # it has ended


def _name_of(process: Path) -> str:
    with suppress(OSError):
        return (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
    return ""
