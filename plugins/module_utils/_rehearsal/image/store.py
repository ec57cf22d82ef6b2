# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where images are kept: each in a directory that is whole or not there, below one that is ours."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core import files, removal
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.own_directory import OwnDirectory
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Resource, Step
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import build as image_build
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image import recipe as image_recipe
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.image.recipe import Recipe

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MARK = ".nometal-rehearsal"
ISO, RECORD = "node.iso", "image.json"
UNFINISHED = "building-"
KNOWN = (ISO, RECORD, "scratch", ".*.new")
"""What there is in one."""
OURS = (*(f"{prefix}*/{name}" for prefix in (image_recipe.PREFIX, UNFINISHED) for name in (*KNOWN, "")),)
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
        self._directory = OwnDirectory(recipe.path, MARK, "rehearsal_image", USUAL_PATH, OURS)

    @contextmanager
    def alone(self) -> Iterator[ImagePort]:
        with self._directory.alone():
            yield self

    def refuse_conflicts(self) -> None:
        self._directory.refuse_another(
            f"holds no images of rehearsals, beside which there would be a file {MARK}: name a directory of its own."
        )

    def read(self) -> Image | None:
        if not self._directory.has_ours:
            return None
        return Image(self._recipe.name if self.facts() else None, any(self._leftovers()))

    def stays(self) -> list[str]:
        """What is there and not made here."""
        return self._directory.foreign()

    def facts(self) -> dict[str, Any]:
        """What there is to know of the image; nothing unless it is whole."""
        iso = self._path / self._recipe.name / ISO
        with suppress(OSError, ValueError):
            record = json.loads(iso.with_name(RECORD).read_text(encoding="utf-8"))
            if record["sha256"] == _digest(iso):
                return {"path": str(iso), **record}
        return {}

    def _leftovers(self) -> list[Path]:
        return [entry for entry in self._directory.entries() if entry.name not in self._recipe.names]

    def apply(self, step: Step) -> None:
        try:
            {"build": self._build, "tidy": self._tidy, "remove": self._directory.remove}[step.verb]()
        except OSError as error:
            raise OperatorError(f"The image cannot be kept in {self._path}: {error}.") from error

    def _build(self) -> None:
        os.umask(0o022)  # those who read it are no root
        self._directory.make()
        for killed in self._path.glob(f"{UNFINISHED}*"):
            removal.remove_known(killed, KNOWN)
        if self.facts():  # by another run, while this one waited
            return
        unfinished = self._path / f"{UNFINISHED}{secrets.token_hex(4)}"
        try:
            self._fill(unfinished)
            removal.remove_known(self._path / self._recipe.name, KNOWN)  # damaged
            files.replace_directory(unfinished, self._path / self._recipe.name)
        except BaseException:
            removal.remove_known(unfinished, KNOWN)
            raise
        self._tidy()

    def _fill(self, directory: Path) -> None:
        iso, scratch = directory / ISO, directory / "scratch"
        files.make_directory(scratch)
        secure_boot = image_build.build(self._recipe, iso, scratch)
        removal.remove_tree(scratch)
        record = {"sha256": _digest(iso), "size": iso.stat().st_size, "secure_boot": secure_boot}
        files.write_whole(directory / RECORD, json.dumps(record), 0o644)

    def _tidy(self) -> None:
        for entry in self._leftovers():
            removal.remove_known(entry, KNOWN)


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


class RehearsalImage(Resource["Image | None", ImagePort]):
    def desired(self) -> Image | None:
        params = self.params
        self._recipe = Recipe(
            path=Path(params["path"]),
            sources=params["sources"] or {},
            packages=params["packages"] or {},
            network_boot=params["network_boot"],
            sata_disks=params["sata_disks"],
        )
        self.port = ImagePort(self._recipe)
        return Image(self._recipe.name) if self.is_wanted else None

    @contextmanager
    def open(self) -> Iterator[ImagePort]:
        self.port.refuse_conflicts()  # before there is a lock in a directory that may be somebody else's
        if self.is_wanted:
            self._recipe.refuse_bad_sources()
        with self.port.alone():
            yield self.port

    def plan(self, current: Image | None, desired: Image | None) -> Sequence[Step]:
        return plan(current, desired)

    def result(self) -> dict[str, Any]:
        return {**self.port.facts(), **({} if self.is_wanted else {"kept": self.port.stays()})}

    def warnings(self) -> list[str]:
        return [] if self.is_wanted else removal.warnings(self.port.stays())
