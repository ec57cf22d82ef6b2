# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A directory that is ours, which a mark in it says: made, shared by labs, and removed with what we have in it."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core import directories, files, removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import locked, nothing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MARK_TEXT = "Made by nometal.ipi (module {module}), which removes what it has made in here.\n"


@dataclass
class OwnDirectory:
    path: Path
    mark_name: str
    module: str
    usual: str
    known: tuple[str, ...]
    """What we have in it, by name or pattern of the shell. What else is in it was put there by others, and stays."""
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
            if self.mark.exists():  # its path may lead through what is no directory, which is refused later
                self._take_lock()
            yield

    def refuse_another(self, instead: str) -> None:
        """What is not ours is neither replaced nor removed."""
        if not self.path.is_absolute():
            raise OperatorError(f"path: must be an absolute path, such as {self.usual} (got {self.path}).")
        if self.is_there and not self._may_be_ours():
            raise OperatorError(f"{self.path} is there and {instead}")

    def make(self) -> None:
        """For all to read: those who do are no root."""
        directories.make_own(self.path)
        with files.open_kept(self.mark, 0o644) as mark:
            mark.truncate(0)
            mark.write(MARK_TEXT.format(module=self.module))
        self._take_lock()

    def entries(self) -> list[Path]:
        """Ours."""
        return removal.found(self.path, self.known)

    def foreign(self) -> list[str]:
        """What is not ours and stays, each with the reason."""
        return removal.foreign(self.path, (*self.known, self.mark_name))

    @property
    def has_ours(self) -> bool:
        return self.is_there and bool(self.mark.is_file() or self.entries() or not self.foreign())

    def remove(self) -> list[str]:
        """The mark is there as long as anything of ours is. Returns what stays."""
        stays = removal.remove_known(self.path, self.known, self.mark_name)
        directories.unmake(self.path.parent)
        return stays

    def _may_be_ours(self) -> bool:
        """Empty, too: a run may have been killed at any point. The usual place may hold something that stayed."""
        if not self.path.is_dir() or self.path.is_symlink():
            return False
        is_usual = str(self.path) == self.usual and not self.entries()
        return self.mark.is_file() or is_usual or not removal.entries(self.path)

    def _take_lock(self) -> None:
        if not self._has_lock:
            self._has_lock = self._lock.enter_context(locked(self.mark, until_free=nothing))
