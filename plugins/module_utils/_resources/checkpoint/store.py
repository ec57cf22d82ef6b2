# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints of a lab as files: a directory for each, whose record is written last and goes first."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core import files, removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import from_dict, to_dict
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import CHECKPOINTS, LABS, RECORD_OF_STOP, lab_name
from ansible_collections.nometal.ipi.plugins.module_utils._resources.checkpoint.state import Checkpoint, Unfinished

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORD, UNFINISHED = "checkpoint.json", "unfinished.json"
ROOT_ALONE = 0o700


class Store:
    def __init__(self, home: str | Path, lab: str) -> None:
        self._directory = Path(home) / LABS / lab_name(lab) / CHECKPOINTS

    def checkpoints(self) -> dict[str, Checkpoint]:
        found = {name: files.text_of(self.directory_of(name) / RECORD) for name in self._names()}
        return {name: self._read(name, text) for name, text in found.items() if text is not None}

    def in_order(self) -> list[Checkpoint]:
        """The oldest first."""
        return sorted(self.checkpoints().values(), key=lambda checkpoint: checkpoint.taken)

    def readable(self) -> tuple[list[Checkpoint], list[str]]:
        """The oldest first, and what is wrong with records that are damaged."""
        read = [self._looked_at(name) for name in self._names()]
        found = sorted((each for each in read if isinstance(each, Checkpoint)), key=lambda each: each.taken)
        return found, [each for each in read if isinstance(each, str)]

    def half(self) -> tuple[str, ...]:
        """Those without a record."""
        return tuple(name for name in self._names() if not (self.directory_of(name) / RECORD).exists())

    def unfinished(self) -> Unfinished:
        text = files.text_of(self._directory / UNFINISHED)
        return from_dict(Unfinished, json.loads(text)) if text else Unfinished()

    def begin(self, waiting: Unfinished) -> None:
        files.make_directory(self._directory, ROOT_ALONE)
        self._write(self._directory / UNFINISHED, to_dict(waiting))
        for directory in (self._directory, self._directory.parent):
            sync_one(directory)

    def make(self, name: str) -> None:
        files.make_directory(self.directory_of(name), ROOT_ALONE)

    def end(self) -> None:
        files.remove(self._directory / UNFINISHED)
        files.remove_empty(self._directory)

    def write(self, checkpoint: Checkpoint) -> None:
        self._write(self.directory_of(checkpoint.name) / RECORD, to_dict(checkpoint))

    def withdraw(self, name: str) -> None:
        files.remove(self.directory_of(name) / RECORD)

    def remove(self, name: str) -> None:
        removal.remove_tree(self.directory_of(name))
        files.remove_empty(self._directory)

    def keep_stop(self, name: str) -> None:
        """Which VMs `make start` is to switch on, if they were stopped by `make stop`."""
        if self._stop.exists():
            copy(self._stop, self.directory_of(name) / self._stop.name)

    def restore_stop(self, name: str) -> None:
        replace_by(self.directory_of(name) / self._stop.name, self._stop)

    @property
    def _stop(self) -> Path:
        return self._directory.with_name(RECORD_OF_STOP)

    def directory_of(self, name: str) -> Path:
        return self._directory / name

    def _names(self) -> Iterator[str]:
        return (path.name for path in removal.entries(self._directory) if path.is_dir())

    def _looked_at(self, name: str) -> Checkpoint | str | None:
        """Itself, or what is wrong with it."""
        try:
            text = files.text_of(self.directory_of(name) / RECORD)
            return None if text is None else self._read(name, text)
        except (OperatorError, ValueError) as error:
            return str(error).rstrip(".")

    def _read(self, name: str, text: str) -> Checkpoint:
        try:
            return from_dict(Checkpoint, json.loads(text))
        except (ValueError, OperatorError) as error:
            path = self.directory_of(name) / RECORD
            raise OperatorError(
                f"{path} has been damaged: {error}. Remove the checkpoint by removing this file."
            ) from error

    @staticmethod
    def _write(path: Path, data: object) -> None:
        files.write_whole(path, json.dumps(data, indent=2, sort_keys=True) + "\n", files.OWNER_ALONE)


def copy(source: Path, target: Path) -> None:
    """A file, or a directory with all that is in it, with owner and mode. No file is there by half."""
    if source.is_dir():
        files.make_directory(target, ROOT_ALONE)
        for entry in removal.entries(source):
            copy(entry, target / entry.name)
        status = source.stat()
        os.chown(target, status.st_uid, status.st_gid)
        target.chmod(status.st_mode & 0o7777)
    else:
        files.make_directory(target.parent, ROOT_ALONE)
        files.write_whole(target, source.read_bytes(), files.access_of(source) or files.OWNER_ALONE)


def link(source: Path, target: Path) -> None:
    """A large file that is never changed: the same one, where both are in one file system."""
    files.make_directory(target.parent, ROOT_ALONE)
    draft = files.draft_of(target)
    draft.unlink(missing_ok=True)
    try:
        os.link(source, draft)
    except OSError:
        run("cp", "--preserve=all", "--reflink=auto", "--sparse=auto", str(source), str(draft))
        sync_one(draft)
    draft.replace(target)
    draft.unlink(missing_ok=True)  # one link does not replace another one of the same file
    sync_one(target.parent)


def sync(directory: Path) -> None:
    """So that a power cut leaves a record only with all that it stands for."""
    for path in (directory, *directory.rglob("*")):
        sync_one(path)


def sync_one(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_by(source: Path, target: Path) -> None:
    """As it was kept; what was not there then goes. Also after a power cut."""
    if target.is_dir():
        shutil.rmtree(target)
    if source.exists():
        copy(source, target)
    else:
        target.unlink(missing_ok=True)
    if target.is_dir():
        sync(target)
    if target.parent.is_dir():
        sync_one(target.parent)
