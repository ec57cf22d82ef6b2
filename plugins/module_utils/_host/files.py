# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_whole(path: Path, text: str, mode: int) -> None:
    """Never half a file: it is made beside its place, where it also gets the label that SELinux gives files there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_of(path)
    draft.write_text(text, encoding="utf-8")
    draft.chmod(mode)
    draft.replace(path)


def remove(path: Path) -> None:
    for file in (path, draft_of(path)):
        with suppress(FileNotFoundError):
            file.unlink()


def remove_empty(directory: Path) -> None:
    with suppress(OSError):  # it is not there, or others have something in it
        directory.rmdir()


def draft_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")
