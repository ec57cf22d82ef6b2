# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files and directories of ours on the host: with the mode that is asked for, whatever the umask is."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import names_its_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import TextIO

FOR_ALL_TO_ENTER = 0o755
MARK = "Made by nometal.ipi"
UMASK = 0o022  # for programs that make files for others to read


@names_its_path(lambda path, *_: path)
def write_whole(path: Path, text: str, mode: int) -> None:
    """Never half a file: it is made beside its place, where it also gets the label that SELinux gives files there."""
    make_directory(path.parent)
    draft = draft_of(path)
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        os.fchown(file.fileno(), os.geteuid(), os.getegid())  # where the directory hands down a group of its own
        os.fchmod(file.fileno(), mode)
        file.flush()
        os.fsync(file.fileno())  # or a power cut could leave the new name with nothing in it
    draft.replace(path)


def open_kept(path: Path, mode: int) -> TextIO:
    """For reading and appending: made if missing, and the same file for all who lock it."""
    with umask(0o777 & ~mode):
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, mode)
    os.fchmod(descriptor, mode)
    return os.fdopen(descriptor, "a+", encoding="utf-8")


def make_directory(path: Path, mode: int = FOR_ALL_TO_ENTER) -> None:
    """What is there stays as it is. Parents that are missing are for all to enter."""
    for missing in reversed([each for each in (path, *path.parents) if not each.exists()]):
        wanted = mode if missing == path else FOR_ALL_TO_ENTER
        # In one go: a run that is killed leaves no directory with another mode behind.
        with umask(0o777 & ~wanted), suppress(FileExistsError):  # another play has just made it
            missing.mkdir(wanted)


def replace_directory(new: Path, path: Path) -> None:
    """In place of what was ours there, which is gone. What others have in it stays beside the new."""
    if not path.is_dir():
        new.replace(path)
        return
    for entry in sorted(new.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            replace_directory(entry, path / entry.name)
        else:
            entry.replace(path / entry.name)
    new.rmdir()


def own_directory(path: Path, mode: int = FOR_ALL_TO_ENTER) -> None:
    """One that nobody else has anything in: it gets owner and mode also when it is there."""
    make_directory(path, mode)
    if access(path) != (os.geteuid(), mode):
        os.chown(path, os.geteuid(), os.getegid())
        path.chmod(mode)


def access(path: Path) -> tuple[int, int] | None:
    """Owner and mode."""
    with suppress(FileNotFoundError):
        status = path.stat()
        return status.st_uid, status.st_mode & 0o7777
    return None


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def text_of(path: Path) -> str | None:
    with suppress(FileNotFoundError):
        return path.read_text(encoding="utf-8")
    return None


def is_marked(path: Path) -> bool:
    """Whether it says that it is ours, as all do that lie where others have theirs."""
    with suppress(OSError):
        return MARK in path.read_text(encoding="utf-8", errors="replace")
    return False


def remove(path: Path) -> None:
    for file in (path, draft_of(path)):
        with suppress(FileNotFoundError):
            file.unlink()


def remove_empty(directory: Path) -> None:
    with suppress(OSError):  # it is not there, or others have something in it
        directory.rmdir()


def draft_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")
