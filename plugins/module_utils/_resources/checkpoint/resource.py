# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A checkpoint of a lab, as one thing that is there or not, or to which the lab goes back."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import one_at_a_time
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Resource, Step
from ansible_collections.nometal.ipi.plugins.module_utils._core.sizes import GIB
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import to_dict
from ansible_collections.nometal.ipi.plugins.module_utils._core.wording import counted
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect
from ansible_collections.nometal.ipi.plugins.module_utils._resources.checkpoint import conflicts, state
from ansible_collections.nometal.ipi.plugins.module_utils._resources.checkpoint.port import CheckpointPort, Lab
from ansible_collections.nometal.ipi.plugins.module_utils._resources.checkpoint.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class LabCheckpoint(Resource[None, CheckpointPort]):
    alone = partial(one_at_a_time, "lab_checkpoint")

    def desired(self) -> None:
        self._found = state.Found()  # what check mode foresees on a host without libvirt
        try:
            name = state.NAME.convert(self.params["name"])
        except ValueError as error:
            raise OperatorError(f"name: {error}.") from error
        self._wanted = state.Wanted(
            self.params["state"], name, running=self.params["running"], stop=self.params["stop"]
        )

    @contextmanager
    def open(self) -> Iterator[CheckpointPort]:
        with connect(self.params["libvirt_uri"]) as connection:
            port = CheckpointPort(connection, lab_of(self.params), self._wanted)
            try:
                yield port
            except BaseException:
                port.give_up()
                raise

    def conflicts(self) -> list[str]:
        self._found = self.port.found
        found = conflicts.conflicts(self._found, self._wanted)
        return ["Nothing was changed, because of this:", *(f"- {finding}" for finding in found)] if found else []

    def plan(self, _current: None, _desired: None) -> list[Step]:
        return state.plan(self._found, self._wanted)

    def result(self) -> dict[str, Any]:
        there = self._found.checkpoints.get(self._wanted.name)
        return {"checkpoint": to_dict(there) if there else None}

    def warnings(self) -> list[str]:
        return conflicts.warnings(self._found, self._wanted)


def lab_of(params: dict[str, Any]) -> Lab:
    return Lab(params["lab"], params["home"], params["bmc_home"], params.get("stop_timeout") or 0)


def information(params: dict[str, Any]) -> dict[str, Any]:
    """What module checkpoint_info returns."""
    with connect(params["libvirt_uri"]) as connection:
        found = CheckpointPort(connection, lab_of(params), state.Wanted(state.PRESENT, "")).found
    about = [_about(checkpoint, found) for checkpoint in Store(params["home"], params["lab"]).in_order()]
    unfinished = found.unfinished.restore
    half = f"the restore of {unfinished} was interrupted: make restore NAME={unfinished} repeats it"
    left = [*([half] if unfinished else []), *(finding.text for finding in conflicts.waits(found))]
    return {"checkpoints": about, "table": [*map(_line, about), *left] or ["no checkpoints"]}


def _about(checkpoint: state.Checkpoint, found: state.Found) -> dict[str, Any]:
    return {
        **to_dict(checkpoint),
        "held_bytes": checkpoint.held_bytes,
        "obstacles": [str(finding) for finding in conflicts.obstacles(found, checkpoint)],
    }


def _line(about: dict[str, Any]) -> str:
    how = "while running" if about["while_running"] else "switched off"
    nodes = counted(len(about["nodes"]), "node")
    held = f"{about['held_bytes'] / GIB:.1f} GiB at most"
    cannot = f"; cannot be restored: {'; '.join(about['obstacles'])}" if about["obstacles"] else ""
    return f"{about['name']}: {about['taken']}, {nodes}, {how}, holds {held}{cannot}"
