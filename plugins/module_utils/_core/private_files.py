# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that root alone may read. What is in them is compared, and never shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT_ALONE = files.Access("root", "root", 0o600)
ROOT_ALONE_ENTERS = 0o700
AS_WANTED, NOT_WANTED = "as wanted", "not wanted any more"


@dataclass(frozen=True)
class PrivateFiles:
    contents: Mapping[str, str]
    """By path, whether it is as wanted."""


@dataclass(frozen=True)
class PrivateFile:
    path: Path
    text: str = field(repr=False)

    @property
    def is_there(self) -> bool:
        return files.text_of(self.path) == self.text and files.has_access(self.path, ROOT_ALONE)


def desired(paths: Sequence[Path]) -> PrivateFiles:
    return PrivateFiles({str(path): AS_WANTED for path in paths})


def plan(current: PrivateFiles | None, desired: PrivateFiles) -> Sequence[Step]:
    there = current.contents if current else {}
    return [
        *(Step("write", path) for path, content in desired.contents.items() if there.get(path) != content),
        *(Step("remove", path) for path in there if path not in desired.contents),
    ]


class PrivateFilesPort:
    """Directories that are missing are made for root alone, too."""

    def __init__(self, wanted: Sequence[PrivateFile], known: Sequence[Path] = ()) -> None:
        """known: files of ours that are there; those that are not wanted go."""
        self._wanted = wanted
        self._known = known

    def read(self) -> PrivateFiles:
        wanted = {str(each.path): AS_WANTED if each.is_there else "" for each in self._wanted}
        return PrivateFiles({**dict.fromkeys(map(str, self._known), NOT_WANTED), **wanted})

    def apply(self, step: Step) -> None:
        if step.verb == "remove":
            files.remove(Path(step.target))
            return
        [wanted] = [each for each in self._wanted if str(each.path) == step.target]
        files.make_directory(wanted.path.parent, ROOT_ALONE_ENTERS)
        files.write_whole(wanted.path, wanted.text, ROOT_ALONE)
