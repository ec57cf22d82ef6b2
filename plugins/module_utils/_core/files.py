# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files and directories of ours on the host: with the owner and mode that are asked for, whatever the umask is."""

from __future__ import annotations

import grp
import os
import pwd
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import names_its_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import IO, TextIO

FOR_ALL_TO_ENTER, FOR_ALL_TO_READ, OWNER_ALONE = 0o755, 0o644, 0o600
MARK = "Made by nometal.ipi"
UMASK = 0o022  # for programs that make files for others to read


@dataclass(frozen=True)
class Access:
    owner: str
    group: str
    mode: int

    def __str__(self) -> str:
        return f"{self.owner}:{self.group} {self.mode:04o}"


Wanted = Union[Access, int]
"""A mode alone is for whoever runs this."""


@names_its_path(lambda path, *_: path)
def write_whole(path: Path, content: str | bytes, access: Wanted) -> None:
    with whole(path, access) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole(path: Path, access: Wanted) -> Iterator[IO[bytes]]:
    """Never half a file: it is made beside its place, where it also gets the label that SELinux gives files there.

    Never for a moment readable by others than those who may.
    """
    make_directory(path.parent)
    draft = draft_of(path)
    draft.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ALONE), "wb") as file:
            yield file
            user, group, mode = _numbers(access)
            os.fchown(file.fileno(), user, group)  # also where the directory hands down a group of its own
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())  # or a power cut could leave the new name with nothing in it
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write_tree(directory: Path, contents: Mapping[str, str | bytes]) -> None:
    """For all to read. For what is not read before it is whole: a run that is killed leaves a part of it."""
    for name, content in contents.items():
        path = directory / name
        make_directory(path.parent)
        write_into(path, content)
        path.chmod(FOR_ALL_TO_READ)


def write_into(path: Path, content: str | bytes) -> None:
    """In place: what is there keeps its owner, mode and label."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ALONE), "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)


def open_kept(path: Path, mode: int) -> TextIO:
    """For reading and appending: made if missing, and the same file for all who lock it."""
    with umask(0o777 & ~mode):
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, mode)
    os.fchmod(descriptor, mode)
    return os.fdopen(descriptor, "a+", encoding="utf-8")


def make_directory(path: Path, mode: int = FOR_ALL_TO_ENTER) -> None:
    """What is there stays as it is. Parents that are missing are for all to enter."""
    for missing in reversed([each for each in (path, *path.parents) if not each.exists()]):
        wanted = mode if missing == path else FOR_ALL_TO_ENTER
        # In one go: a run that is killed leaves no directory with another mode behind.
        with umask(0o777 & ~wanted), suppress(FileExistsError):  # another play has just made it
            missing.mkdir(wanted)


def own_directory(path: Path, access: Wanted = FOR_ALL_TO_ENTER) -> None:
    """One in which others have nothing: it gets owner and mode also when it is there."""
    make_directory(path, access if isinstance(access, int) else 0o700)
    if not has_access(path, access):
        give(path, access)


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


def give(path: Path, access: Wanted) -> None:
    user, group, mode = _numbers(access)
    path.chmod(mode & 0o700)
    os.chown(path, user, group)
    path.chmod(mode)


def access_of(path: Path) -> Access | None:
    with suppress(FileNotFoundError):
        status = path.stat()
        return Access(user_name(status.st_uid), group_name(status.st_gid), status.st_mode & 0o7777)
    return None


def has_access(path: Path, access: Wanted) -> bool:
    """Of a mode alone: whether it is so, and the file that of who runs this, whatever its group."""
    if isinstance(access, Access):
        return access_of(path) == access
    with suppress(FileNotFoundError):
        status = path.stat()
        return (status.st_uid, status.st_mode & 0o7777) == (os.geteuid(), access)
    return False


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


def _numbers(access: Wanted) -> tuple[int, int, int]:
    if isinstance(access, int):
        return os.geteuid(), os.getegid(), access
    return _user_number(access.owner), _group_number(access.group), access.mode


def _user_number(name: str) -> int:
    """As `user_name` gives it, which may be the number itself."""
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        if name.isdigit():
            return int(name)
        raise


def _group_number(name: str) -> int:
    """Likewise."""
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        if name.isdigit():
            return int(name)
        raise


def user_name(number: int) -> str:
    """The number itself, where it has no name."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def group_name(number: int) -> str:
    """Likewise."""
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
