# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The faults of a lab's BMC service: the file by which it learns them, also while it runs."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import config
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.layout import directory_of
from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError, OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import must_be
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Resource, Step
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import from_dict, to_dict
from ansible_collections.nometal.ipi.plugins.module_utils._lab.faults import Faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

FILE = "faults.json"
WRITE, REMOVE = Step("write", "faults"), Step("remove", "faults")


@dataclass(frozen=True)
class FaultsFile:
    text: str


def of_lab(directory: Path) -> Faults:
    """What its BMCs do wrong on purpose, which usually is nothing."""
    text = files.text_of(directory / FILE)
    try:
        return Faults() if text is None else from_dict(Faults, json.loads(text))
    except (ValueError, OperatorError) as error:
        raise OperatorError(f"{directory / FILE} cannot be read: {error}. Run playbooks/bmc.yml.") from error


class FaultsPort:
    def __init__(self, directory: Path, wanted: FaultsFile | None) -> None:
        self._file = directory / FILE
        self._wanted = wanted

    def read(self) -> FaultsFile | None:
        text = files.text_of(self._file)
        # The service reads it as another user.
        has_access = text is not None and files.has_access(self._file, files.FOR_ALL_TO_READ)
        return None if text is None else FaultsFile(text if has_access else "")

    def apply(self, step: Step) -> None:
        if step == WRITE and self._wanted:
            files.write_whole(self._file, self._wanted.text, files.FOR_ALL_TO_READ)
        else:
            files.remove(self._file)


class BmcFaults(Resource["FaultsFile | None", FaultsPort]):
    def desired(self) -> FaultsFile | None:
        self._directory = directory_of(self.params["home"], self.params["lab"])
        faults = from_dict(Faults, self.params)
        self._rules: list[dict[str, Any]] = [to_dict(rule) for rule in faults.rules]
        given = [{name: value for name, value in rule.items() if value is not None} for rule in self._rules]
        text = json.dumps({"seed": faults.seed, "rules": given}, indent=2) + "\n"
        self._wanted = FaultsFile(text) if given else None
        return self._wanted

    @contextmanager
    def open(self) -> Iterator[FaultsPort]:
        if self._wanted and not (self._directory / "config.json").exists():
            raise NotThereYetError(f"Lab {self._directory.name} has no BMCs on this host. Run playbooks/bmc.yml.")
        yield FaultsPort(self._directory, self._wanted)

    def conflicts(self) -> Iterator[str]:
        if self.check_mode:  # then the service may not have the lab's newest nodes yet
            return
        known = config.vm_names(config.text_in(self._directory / "config.json"))
        for number, rule in enumerate(self._rules):
            for name in rule["nodes"]:
                if name not in known:
                    wrong = must_be(f"VMs with BMCs of the lab: {', '.join(known)}", name)
                    yield f"rules[{number}].nodes: {wrong}"

    def plan(self, current: FaultsFile | None, desired: FaultsFile | None) -> Sequence[Step]:
        if current == desired:
            return []
        return [WRITE if desired else REMOVE]

    def result(self) -> dict[str, Any]:
        return {"rules": self._rules}
