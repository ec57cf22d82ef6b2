# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A directory that is ours alone, which a mark in it says: made, shared by labs, and removed with all that is in it."""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._host import files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MARK_TEXT = "Made by nometal.ipi (module {module}), which removes this directory with all that is in it.\n"


@dataclass
class OwnDirectory:
    path: Path
    mark_name: str
    module: str
    usual: str
    _lock: ExitStack = field(default_factory=ExitStack)
    _has_lock: bool = False

    @property
    def mark(self) -> Path:
        return self.path / self.mark_name

    @property
    def is_there(self) -> bool:
        return os.path.lexists(self.path)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Runs for other labs wait, once there is anything."""
        with self._lock:
            if self.mark.exists():
                self._take_lock()
            yield

    def refuse_another(self, instead: str) -> None:
        """What is not ours is neither replaced nor removed."""
        if not self.path.is_absolute():
            raise OperatorError(f"path is {self.path}: an absolute path is right, such as {self.usual}.")
        if self.is_there and not self._may_be_ours():
            raise OperatorError(f"{self.path} is there and {instead}")

    def make(self) -> None:
        """For all to read: those who do are no root."""
        files.own_directory(self.path)
        with files.open_kept(self.mark, 0o644) as mark:
            mark.truncate(0)
            mark.write(MARK_TEXT.format(module=self.module))
        self._take_lock()

    def entries(self) -> Iterator[Path]:
        return (entry for entry in self.path.iterdir() if entry != self.mark)

    def remove(self) -> None:
        """The mark is there as long as anything is."""
        for entry in list(self.entries()):
            remove_tree(entry)
        self.mark.unlink(missing_ok=True)
        self.path.rmdir()
        files.remove_empty(self.path.parent)

    def _may_be_ours(self) -> bool:
        """Empty, too: a run may have been killed at any point."""
        is_directory = self.path.is_dir() and not self.path.is_symlink()
        return is_directory and (self.mark.is_file() or not any(self.path.iterdir()))

    def _take_lock(self) -> None:
        if not self._has_lock:
            fcntl.flock(self._lock.enter_context(self.mark.open(encoding="utf-8")), fcntl.LOCK_EX)
            self._has_lock = True


def remove_tree(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
