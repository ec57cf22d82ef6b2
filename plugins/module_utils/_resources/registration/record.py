# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record that registers a lab on a host, with its model: other labs keep clear of what it names."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Resource, Step
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import (
    LABS,
    RECORD_OF_MODEL,
    RECORD_OF_NAME,
    lab_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DIRECTORY = files.Access("root", "root", 0o755)
FILE = files.Access("root", "root", 0o644)


@dataclass(frozen=True)
class Registration:
    record: str
    access: str
    directories: dict[str, str]
    """Owner, group and mode of each."""


class Port:
    def __init__(self, directories: Sequence[Path], record: Path, content: str) -> None:
        self._directories = directories
        self._record = record
        self._content = content

    def read(self) -> Registration:
        return Registration(
            record=files.text_of(self._record) or "",
            access=str(files.access_of(self._record) or ""),
            directories={str(path): str(files.access_of(path) or "") for path in self._directories},
        )

    def apply(self, step: Step) -> None:
        if step.verb == "make":
            files.own_directory(Path(step.target), DIRECTORY)
        else:
            files.write_whole(self._record, self._content, FILE)


class LabRecord(Resource[Registration, Port]):
    def __init__(self, params: dict[str, Any], *, check_mode: bool) -> None:
        super().__init__(params, check_mode=check_mode)
        home, model = Path(params["home"]), params["model"]
        lab = lab_name(params["lab"])
        directory = home / LABS / lab
        self._directories = (home, home / LABS, directory)
        self._record = directory / (RECORD_OF_MODEL if model else RECORD_OF_NAME)
        self._content = json.dumps(model or {"name": lab}, indent=2, sort_keys=True) + "\n"

    def desired(self) -> Registration:
        directories = {str(path): str(DIRECTORY) for path in self._directories}
        return Registration(self._content, str(FILE), directories)

    @contextmanager
    def open(self) -> Iterator[Port]:
        yield Port(self._directories, self._record, self._content)

    def plan(self, current: Registration, desired: Registration) -> Sequence[Step]:
        makes = [Step("make", path) for path in desired.directories if current.directories[path] != str(DIRECTORY)]
        is_written = (current.record, current.access) == (desired.record, desired.access)
        # Before anything else of the lab is made: a run that is killed leaves what the next one and teardown find.
        return makes if is_written else [*makes, Step("write", str(self._record))]

    def result(self) -> dict[str, Any]:
        return {"lab": self.params["lab"], "record": str(self._record)}
