# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The removal of directories: never through a symbolic link, never into another file system. What stays is named."""

from __future__ import annotations

import errno
import os
import re
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

FOREIGN, MOUNTED, LINK, BUSY = (
    "not made by nometal.ipi",
    "a mount point, with what lies under it",
    "no directory",
    "written to meanwhile",
)
NO_DIRECTORY = (errno.ENOTDIR, errno.ELOOP)
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
MOUNTS = Path("/proc/self/mountinfo")
MOUNT_POINT = 4  # the field's place in a line
ESCAPED = re.compile(r"\\([0-7]{3})")
LOST_FOUND = "lost+found"
"""In the root of a file system from the start."""


def remove_tree(path: Path) -> list[str]:
    """A file or directory with all that is in it, which is ours. Returns what stays, each with the reason."""
    try:
        with _opened(path.parent) as parent:
            return _removed(parent, path, mount_points())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise OperatorError(f"{error.filename or path} cannot be removed: {error.strerror or error}.") from error


def remove_known(directory: Path, known: Iterable[str], last: str = "") -> list[str]:
    """Entries of these names, `last` as the last of them, then the directory if it is empty.

    A name is a pattern of the shell. `tls/ca.pem` is an entry of a directory that goes when nothing else is in it, and
    `labs/` a directory that goes when nothing is in it; directories may be patterns, too.
    """
    return remove_entries(directory, known, last) or remove_empty(directory)


def remove_entries(directory: Path, known: Iterable[str], last: str = "") -> list[str]:
    """As above, but for the directory itself."""
    patterns = [*known, *([last] if last else [])]
    stays = foreign(directory, patterns)
    ours, shared = _split(directory, patterns)
    for below, names in shared.items():
        stays += remove_known(below, names)
    for entry in sorted(matching(directory, ours), key=lambda path: path.name == last):
        stays += remove_tree(entry)
    return list(dict.fromkeys(stays))


def discard(path: Path) -> None:
    """What is not needed any more; failing to remove it is not an error."""
    with suppress(OperatorError):
        remove_tree(path)


def foreign(directory: Path, known: Iterable[str]) -> list[str]:
    """What is there beside entries of these names; changes nothing."""
    if directory.is_symlink() or (directory.exists() and not directory.is_dir()):
        return [_kept(directory, LINK)]
    own, shared = _split(directory, known)
    others = set(entries(directory)) - set(matching(directory, own)) - set(shared)
    below = [each for path, names in shared.items() for each in foreign(path, names)]
    return [*(_kept(entry, FOREIGN) for entry in sorted(others)), *below]


def has_known(directory: Path, known: Iterable[str]) -> bool:
    """Whether there is anything of these names, or a directory that is still or again empty."""
    if directory.is_symlink() or not directory.is_dir():
        return False
    return not entries(directory) or bool(found(directory, known))


def found(directory: Path, known: Iterable[str]) -> list[Path]:
    """Entries of these names, and directories that have something of these names in them."""
    own, shared = _split(directory, known)
    return [*matching(directory, own), *(path for path, names in shared.items() if has_known(path, names))]


def remove_empty(directory: Path) -> list[str]:
    try:
        directory.rmdir()
    except FileNotFoundError:
        return []
    except OSError as error:
        if error.errno == errno.EBUSY:
            return [_kept(directory, MOUNTED)]
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return [_kept(entry, FOREIGN) for entry in entries(directory)]
        if error.errno in NO_DIRECTORY:
            return [_kept(directory, LINK)]
        raise OperatorError(f"{directory} cannot be removed: {error.strerror}.") from error
    return []


def entries(directory: Path) -> list[Path]:
    """In a fixed order; none if it is not there."""
    if directory.is_symlink() or not directory.is_dir():
        return []
    return sorted(entry for entry in directory.iterdir() if entry.name != LOST_FOUND)


def mount_points() -> frozenset[str]:
    lines = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    return frozenset(ESCAPED.sub(lambda code: chr(int(code[1], 8)), line.split()[MOUNT_POINT]) for line in lines)


def is_mounted(path: Path, mounts: Collection[str]) -> bool:
    """Of mount_points(), which have no symbolic links."""
    return str(path.parent.resolve() / path.name) in mounts


def warnings(stays: Iterable[str]) -> list[str]:
    return [f"Left in place: {each}." for each in stays]


def kept(path: Path, *, mounted: bool = False) -> str:
    return _kept(path, MOUNTED if mounted else FOREIGN)


def _kept(path: Path, reason: str) -> str:
    return f"{path} ({reason})"


def _split(directory: Path, patterns: Iterable[str]) -> tuple[list[str], dict[Path, list[str]]]:
    """Those of entries, and by directory that is there those of what is in it."""
    own: list[str] = []
    shared: dict[Path, list[str]] = {}
    for pattern in patterns:
        name, slash, below = pattern.partition("/")
        for path in matching(directory, [name]) if slash else ():
            shared.setdefault(path, []).extend([below] if below else [])
        own += [] if slash else [pattern]
    return own, shared


def matching(directory: Path, patterns: Iterable[str]) -> list[Path]:
    wanted = list(patterns)
    return [entry for entry in entries(directory) if any(fnmatchcase(entry.name, pattern) for pattern in wanted)]


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _removed(parent: int, path: Path, mounts: Collection[str]) -> list[str]:
    """By descriptors: a directory that becomes a link meanwhile is not followed.

    A mount point is not even opened: its server may be gone.
    """
    if is_mounted(path, mounts):
        return [_kept(path, MOUNTED)]
    try:
        descriptor = os.open(path.name, DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    except FileNotFoundError:
        return []
    except OSError as error:
        if error.errno in NO_DIRECTORY:
            return _gone(os.unlink, parent, path)
        raise
    try:
        if _mount_of(descriptor) != _mount_of(parent):
            return [_kept(path, MOUNTED)]
        names = sorted(entry.name for entry in os.scandir(descriptor))
        stays = [each for name in names for each in _removed(descriptor, path / name, mounts)]
    finally:
        os.close(descriptor)
    return stays or _gone(os.rmdir, parent, path)


def _gone(remove: Callable[..., None], parent: int, path: Path) -> list[str]:
    try:
        remove(path.name, dir_fd=parent)
    except FileNotFoundError:
        return []
    except OSError as error:
        if error.errno == errno.EBUSY:
            return [_kept(path, MOUNTED)]
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return [_kept(path, BUSY)]
        raise OSError(error.errno, error.strerror, str(path)) from error
    return []


def _mount_of(descriptor: int) -> tuple[int, str]:
    """A bind mount has the device of what is mounted, and a btrfs subvolume has the mount of what it is in."""
    lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii").splitlines()
    mount = next((line for line in lines if line.startswith("mnt_id:")), "")
    return os.fstat(descriptor).st_dev, mount
