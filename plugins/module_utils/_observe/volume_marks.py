# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose a volume is: a mark on its file says for which VM it was made, and outlives the VM."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Callable

from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import LONGEST_FILE_NAME

MARK = "trusted.nometal.ipi.vm"  # only root can read or write it
BESIDE = ".{}.nometal-vm"
"""The file that has the mark, on file systems without extended attributes."""


def note_made_for(path: str, vm: str) -> None:
    """VM: its owner and its UUID. The volume's own name is noted too, for copies and links bear the same mark."""
    mark = f"{vm} {Path(path).name}"
    try:
        os.setxattr(path, MARK, mark.encode())
    except OSError:
        files.write_whole(_beside(path), mark, 0o600)


def made_for(path: str) -> str:
    """The VM; empty for what is not ours, as a copy that was made under another name."""
    vm, name = _split(_mark_of(path))
    return vm if name in ("", Path(path).name) else ""


def made_by_whom(path: str) -> tuple[str, str]:
    """The owner and the UUID of the VM; empty for what is not ours."""
    owner, _space, uuid = made_for(path).partition(" ")
    return owner, uuid


def maker_of(path: Path) -> str:
    """The owner of the VM, of a volume or of the file with its mark; empty for what is not ours."""
    if path.is_symlink() or not path.is_file():
        return ""
    return made_by_whom(str(_volume_of(path) or path))[0]


def made_by(owner: str | None) -> Callable[[Path], bool]:
    """Tells the volumes that were made for VMs of an owner; without one, none is known."""
    return lambda path: bool(owner) and maker_of(path) == owner


def forget(path: str) -> None:
    """When the volume is gone; its own mark goes with it."""
    _beside(path).unlink(missing_ok=True)


def is_beside(path: Path) -> bool:
    """Whether it is but the mark of another file."""
    return _volume_of(path) is not None


def _mark_of(path: str) -> str:
    try:
        return os.getxattr(path, MARK).decode()
    except OSError:
        return _beside_of(path)


def _split(mark: str) -> tuple[str, str]:
    """Earlier versions noted no name."""
    owner, _after_owner, rest = mark.partition(" ")
    uuid, _after_uuid, name = rest.partition(" ")
    return f"{owner} {uuid}".strip(), name


def _beside(path: str) -> Path:
    return Path(path).with_name(BESIDE.format(Path(path).name)[:LONGEST_FILE_NAME])


def _beside_of(path: str) -> str:
    beside = _beside(path)
    with suppress(OSError):
        if not beside.is_symlink() and beside.stat().st_uid == os.geteuid():
            return beside.read_text(encoding="utf-8")
    return ""


def _volume_of(path: Path) -> Path | None:
    before, after = BESIDE.split("{}")
    name = path.name
    is_mark = name.startswith(before) and name.endswith(after) and len(name) > len(before + after)
    return path.with_name(name[len(before) : -len(after)]) if is_mark else None
