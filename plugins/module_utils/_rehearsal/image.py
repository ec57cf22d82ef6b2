# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where images are kept: each in a directory that is whole or not there, below one that is ours."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._host import files
from ansible_collections.nometal.ipi.plugins.module_utils._reconcile import Step
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal import image_build

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image_recipe import Recipe

MARK = ".nometal-rehearsal"
MARK_TEXT = "Made by nometal.ipi (module rehearsal_image), which removes this directory with all that is in it.\n"
ISO, RECORD = "node.iso", "image.json"
UNFINISHED = "building-"
USUAL_PATH = "/var/cache/nometal/rehearsal"


@dataclass(frozen=True)
class Image:
    """Which image is there; none if it is not whole. Leftovers: of killed builds, and images that nothing asks for."""

    name: str | None
    leftovers: bool = False


def plan(current: Image | None, wanted: Image | None) -> Sequence[Step]:
    if wanted is None:
        return [Step("remove", "images")] if current else []
    if current is None or current.name != wanted.name:
        return [Step("build", "image")]
    return [Step("tidy", "images")] if current.leftovers else []


class ImagePort:
    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._path = recipe.path
        self._mark = recipe.path / MARK
        self._lock = ExitStack()
        self._has_lock = False

    @contextmanager
    def alone(self) -> Iterator[ImagePort]:
        """Runs for other labs wait, once there is anything."""
        with self._lock:
            if self._mark.exists():
                self._take_lock()
            yield self

    def refuse_conflicts(self) -> None:
        """What is not ours is neither replaced nor removed."""
        if not self._path.is_absolute():
            raise OperatorError(f"path is {self._path}: an absolute path is right, such as {USUAL_PATH}.")
        if os.path.lexists(self._path) and not self._may_be_ours():
            raise OperatorError(
                f"{self._path} is there and holds no images of rehearsals, beside which there would be a file {MARK}: "
                "name a directory of its own."
            )

    def _may_be_ours(self) -> bool:
        """Empty, too: a run may have been killed at any point."""
        is_directory = self._path.is_dir() and not self._path.is_symlink()
        return is_directory and (self._mark.is_file() or not any(self._path.iterdir()))

    def read(self) -> Image | None:
        if not self._path.exists():
            return None
        return Image(self._recipe.name if self.facts() else None, any(self._leftovers()))

    def facts(self) -> dict[str, Any]:
        """What there is to know of the image; nothing unless it is whole."""
        iso = self._path / self._recipe.name / ISO
        with suppress(OSError, ValueError):
            record = json.loads(iso.with_name(RECORD).read_text(encoding="utf-8"))
            if record["sha256"] == _digest(iso):
                return {"path": str(iso), **record}
        return {}

    def _leftovers(self) -> Iterator[Path]:
        for entry in self._path.iterdir():
            if entry != self._mark and entry.name not in self._recipe.names:
                yield entry

    def apply(self, step: Step) -> None:
        try:
            {"build": self._build, "tidy": self._tidy, "remove": self._remove}[step.verb]()
        except OSError as error:
            raise OperatorError(f"The image cannot be kept in {self._path}: {error}.") from error

    def _build(self) -> None:
        os.umask(0o022)  # those who read it are no root
        self._make_directory()
        for killed in self._path.glob(f"{UNFINISHED}*"):
            _remove_tree(killed)
        if self.facts():  # by another run, while this one waited
            return
        unfinished = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=self._path))
        try:
            self._fill(unfinished)
            _remove_tree(self._path / self._recipe.name)  # damaged
            unfinished.rename(self._path / self._recipe.name)
        except BaseException:
            _remove_tree(unfinished)
            raise
        self._tidy()

    def _fill(self, directory: Path) -> None:
        iso, scratch = directory / ISO, directory / "scratch"
        scratch.mkdir()
        secure_boot = image_build.build(self._recipe, iso, scratch)
        _remove_tree(scratch)
        record = {"sha256": _digest(iso), "size": iso.stat().st_size, "secure_boot": secure_boot}
        (directory / RECORD).write_text(json.dumps(record), encoding="utf-8")
        directory.chmod(0o755)

    def _make_directory(self) -> None:
        self._path.mkdir(parents=True, exist_ok=True)
        if not self._mark.exists():
            self._mark.write_text(MARK_TEXT, encoding="utf-8")
        self._path.chmod(0o755)
        self._take_lock()

    def _take_lock(self) -> None:
        if not self._has_lock:
            fcntl.flock(self._lock.enter_context(self._mark.open(encoding="utf-8")), fcntl.LOCK_EX)
            self._has_lock = True

    def _tidy(self) -> None:
        for entry in self._leftovers():
            _remove_tree(entry)

    def _remove(self) -> None:
        """The mark is there as long as anything is."""
        for entry in self._path.iterdir():
            if entry != self._mark:
                _remove_tree(entry)
        self._mark.unlink(missing_ok=True)
        self._path.rmdir()
        files.remove_empty(self._path.parent)


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _remove_tree(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
