# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The directory of a lab's pool: made and removed in one piece, or put back as it was before the lab came."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._core import files, removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import POOL_DIRECTORY
from ansible_collections.nometal.ipi.plugins.module_utils._observe import volume_marks

try:
    from lxml import etree
except ImportError:  # connect() has said so by the time that anything here asks libvirt
    etree = None  # type: ignore[assignment]  # mypy takes the name for the module alone

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = ".nometal-pool.json"
LABEL = "security.selinux"
POOL_MODE, PARENT_MODE, MARK_MODE = 0o711, 0o755, 0o644
"""As libvirt makes a pool's directory; what the umask is does not matter."""


@dataclass(frozen=True)
class Before:
    """What a directory was like that was there before the lab."""

    owner: int
    group: int
    mode: int
    label: str | None = None


@dataclass(frozen=True)
class Note:
    """What the mark says: whose the directory is, and what is to be done with it in the end."""

    pool: str
    before: Before | None = None
    parents: tuple[str, ...] = ()
    """Directories above it that were made with it, the outermost first."""


class PoolDirectory:
    def __init__(self, path: str, name: str, uuid: str) -> None:
        self.path = Path(path)
        self._name = name
        self._uuid = uuid

    @property
    def mark(self) -> Path:
        return self.path / MARK

    @property
    def note(self) -> Note | None:
        """None: nothing shows that this is the pool's, as where something was mounted here since."""
        note = _note_in(self.path)
        return note if note and note.pool == self._uuid else None

    def contents(self) -> list[Path]:
        """Without what says whose it is."""
        own = {MARK, files.draft_of(self.mark).name} if self.note else {files.draft_of(self.mark).name}
        return [entry for entry in removal.entries(self.path) if entry.name not in own]

    def adopt(self) -> None:
        """It was there before, and stays."""
        if self.path.is_dir() and not self.note:
            self._write(self.path, Note(self._uuid, _state_of(self.path)))

    def make(self) -> None:
        """Complete with its mark, however early this is killed."""
        if self.path.is_dir():
            return
        self.clear_drafts()
        missing = [path for path in [*reversed(self.path.parents), self.path] if not path.exists()]
        outermost = missing[0]
        draft = self._draft_in(outermost.parent)
        inner = draft / self.path.relative_to(outermost)
        try:
            for directory in [path for path in reversed([inner, *inner.parents]) if path.is_relative_to(draft)]:
                files.make_directory(directory, PARENT_MODE)
            self._write(inner, Note(self._uuid, parents=tuple(map(str, missing[:-1]))))
            inner.chmod(POOL_MODE)
            draft.rename(outermost)
        except OSError as error:
            raise OperatorError(f"{self.path} cannot be made: {error.strerror}.") from error

    def stays(self, is_ours: Callable[[Path], bool]) -> list[str]:
        """What is not ours in it, each with the reason; changes nothing."""
        if self.path.is_symlink():
            return removal.foreign(self.path, ())
        mounted, others, _ours = self._sorted(is_ours)
        kept = {entry: removal.kept(entry, mounted=entry in mounted) for entry in (*mounted, *others)}
        return [kept[entry] for entry in sorted(kept)]

    def remove(self, is_ours: Callable[[Path], bool]) -> list[str]:
        """Files of ours, and the directory if it is ours and nothing else is in it. Returns what stays."""
        if self.path.is_symlink():
            return self.stays(is_ours)
        if not self.path.exists():
            return self.clear_drafts()
        note, stays = self.note, self.stays(is_ours)
        _mounted, _others, ours = self._sorted(is_ours)
        for entry in sorted(ours, key=volume_marks.is_beside):
            stays += removal.remove_tree(entry)
        if note is None:
            return stays or self._remove_unmarked()
        if note.before is not None:
            self._put_back(note.before)
        elif not stays and self._retire(note):
            return self.clear_drafts()
        elif stays:
            os.chown(self.path, os.geteuid(), os.getegid())  # the user of a service goes, and its number to another one
        files.remove(self.mark)
        return stays or ([] if note.before else removal.remove_empty(self.path))

    def _sorted(self, is_ours: Callable[[Path], bool]) -> tuple[list[Path], list[Path], list[Path]]:
        """Mount points, files of others, and ours. Of a mount point nothing else is asked: its server may be gone."""
        mounts = removal.mount_points()
        mounted = [entry for entry in self.contents() if removal.is_mounted(entry, mounts)]
        rest = [entry for entry in self.contents() if entry not in mounted]
        ours = [entry for entry in rest if is_ours(entry)]
        return mounted, [entry for entry in rest if entry not in ours], ours

    def clear_drafts(self) -> list[str]:
        """What a run that was killed has left of its making or its removal."""
        for parent in self.path.parents:
            draft = self._draft_in(parent)
            if draft.is_dir() and not draft.is_symlink():
                note = _note_in(draft)
                for above in reversed(note.parents if note else ()):
                    files.remove_empty(Path(above))
                _discard(draft)
        return []

    def inherit(self, parents: list[str]) -> None:
        """Directories above that another pool's removal has left: they go with this one."""
        note = self.note
        if note:
            both = dict.fromkeys([*parents, *note.parents])
            self._write(self.path, Note(note.pool, note.before, tuple(sorted(both, key=len))))

    def _draft_in(self, parent: Path) -> Path:
        return parent / f".{self._name}.new"

    def _retire(self, note: Note) -> bool:
        """Out of the way in one step, so that its mark stays until all else is done."""
        outermost = Path(note.parents[0]) if note.parents else self.path
        with suppress(OSError):  # it is a mount point, or one above it has become one
            self.path.rename(self._draft_in(outermost.parent))
            return True
        return False

    def _remove_unmarked(self) -> list[str]:
        """Earlier versions made the usual directory without a mark."""
        if str(self.path) == f"{POOL_DIRECTORY}/{self._name}":
            return removal.remove_empty(self.path)
        return [removal.kept(self.path)]

    def _write(self, directory: Path, note: Note) -> None:
        files.write_whole(directory / MARK, json.dumps(asdict(note)) + "\n", MARK_MODE)

    def _put_back(self, before: Before) -> None:
        now = _state_of(self.path)
        if (now.owner, now.group) != (before.owner, before.group):
            os.chown(self.path, before.owner, before.group)
        if now.mode != before.mode or (now.owner, now.group) != (before.owner, before.group):
            self.path.chmod(before.mode)
        if before.label and now.label != before.label:
            with suppress(OSError):  # SELinux is off by now
                os.setxattr(self.path, LABEL, before.label.encode())


def remove_directory(connection: Any, directory: PoolDirectory, is_ours: Callable[[Path], bool]) -> list[str]:
    """Returns what stays. Directories above that were made for it and that another pool needs go with that one."""
    parents = list(directory.note.parents) if directory.note else []
    kept = directory.remove(is_ours)
    left = [parent for parent in parents if Path(parent).is_dir()]
    for pool in connection.listAllStoragePools() if left else ():
        other = PoolDirectory(path_of(pool), pool.name(), pool.UUIDString())
        above = [parent for parent in left if Path(parent) in other.path.parents]
        if above:
            other.inherit(above)
    return kept


def path_of(pool: Any) -> str:
    return etree.fromstring(pool.XMLDesc()).findtext("target/path", default="")


def _note_in(directory: Path) -> Note | None:
    """Only root's word counts: the directory of media is a service's."""
    mark = directory / MARK
    with suppress(OSError, ValueError, KeyError, TypeError):
        status = mark.lstat()
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
            told = json.loads(mark.read_text(encoding="utf-8"))
            before = Before(**told["before"]) if told["before"] else None
            return Note(str(told["pool"]), before, tuple(map(str, told["parents"])))
    return None


def _state_of(path: Path) -> Before:
    status = path.stat()
    try:
        label = os.getxattr(path, LABEL).decode()
    except OSError:
        label = None
    return Before(status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode), label)


def _discard(draft: Path) -> None:
    """Directories and a mark are all that a draft can hold."""
    for entry in _directories_in(draft):
        _discard(entry)
    files.remove(draft / MARK)
    files.remove_empty(draft)


def _directories_in(directory: Path) -> Iterator[Path]:
    return (entry for entry in removal.entries(directory) if entry.is_dir() and not entry.is_symlink())
