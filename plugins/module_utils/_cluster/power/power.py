# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stopping the nodes of a lab, and starting them again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.nodes import order_of_start, order_of_stop
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.nodes import Node, Record
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.switching import Switching

ROUNDS = 3
"""Whoever controls the nodes may switch one on again while others are still on."""
NOTHING_TO_START = (
    "No node of the lab was switched off by a stop, and no cluster is installed, so none is switched on. "
    "Nodes without a system are switched on by their BMCs."
)


@dataclass
class Result:
    steps: list[Step] = field(default_factory=list)
    switched: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def to_dict(self, forced: Sequence[str]) -> dict[str, Any]:
        return {
            "changed": bool(self.steps),
            "steps": [str(step) for step in self.steps],
            "switched": self.switched,
            "forced": list(forced),
            "left": [],
            "warnings": self.warnings,
        }


@dataclass
class Lab:
    """A lab without a cluster."""

    nodes: Sequence[Node]
    switching: Switching
    record: Record
    check_mode: bool = False

    def has_begun_to_stop(self, on: Collection[Node]) -> bool:
        """Whether a stop of before has switched nodes off, and was interrupted. A record alone may be an old one."""
        recorded = self.record.names()
        return any(node.vm_name in recorded and node not in on for node in self.nodes)

    def stop(self) -> dict[str, Any]:
        result = Result()
        self.shut_down(self.switching.those_on(self.nodes), result)
        return result.to_dict(self.switching.forced)

    def shut_down(self, on: Sequence[Node], result: Result, holders: Collection[str] = ()) -> None:
        """Holders: as `order_of_stop` has them."""
        off = [node for node in self.nodes if node not in on]
        awaited = self.switching.awaited(off)
        if awaited:
            result.steps.append(Step("keep off", names_of(awaited)))
        if not self.check_mode:
            self.record.add([node.vm_name for node in [*on, *awaited]])
            self.switching.give_up_starts(off)
        for batch in order_of_stop(on, holders):
            result.steps.append(Step("shut down", names_of(batch)))
            if not self.check_mode:
                self.switching.shut_down(batch)
        if not self.check_mode:
            self._keep_off(result)
        result.switched = [node.name for node in on]

    def start(self) -> dict[str, Any]:
        result, recorded = Result(), self.record.names()
        wanted = [node for node in self.nodes if node.vm_name in recorded]
        on = self.switching.those_on(wanted) if wanted else []
        off = [node for node in wanted if node not in on]
        for batch in order_of_start(off):
            result.steps.append(Step("switch on", names_of(batch)))
            if not self.check_mode:
                self.switching.switch_on(batch)
        if not self.check_mode:
            self.record.remove()
        if not wanted:
            result.warnings.append(NOTHING_TO_START)
        result.switched = [node.name for node in off]
        return result.to_dict(self.switching.forced)

    def _keep_off(self, result: Result) -> None:
        for _round in range(ROUNDS):
            again = self.switching.those_on(self.nodes)
            if not again:
                return
            result.steps.append(Step("shut down", names_of(again), "on again"))
            self.switching.shut_down(again)
        again = self.switching.those_on(self.nodes)
        if again:
            names = ", ".join(names_of(again))
            raise OperatorError(f"Switched on again each time: {names}. Find out what controls their BMCs and stop it.")


def names_of(nodes: Sequence[Node]) -> tuple[str, ...]:
    return tuple(node.name for node in nodes)
