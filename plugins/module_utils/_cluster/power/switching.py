# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switching the nodes of a lab by their BMCs, with time limits and an event log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ansible_collections.nometal.ipi.plugins.module_utils._bmc.power import Power, Reset, Said
from ansible_collections.nometal.ipi.plugins.module_utils._core import wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.nodes import Node

    class Bmcs(Protocol):
        def awaited(self) -> list[str]: ...

        def power(self, names: Iterable[str]) -> dict[str, Said]: ...

        def reset(self, kind: Reset, names: Iterable[str]) -> dict[str, str]: ...

    class Log(Protocol):
        def note(self, who: str, state: str, *, trouble: bool = False) -> None: ...


LOOK_SECONDS = 1.0
ASK_AGAIN = 60.0
"""A system that is booting does not hear its power button yet."""
SWITCH_SECONDS = 60.0


class Silence:
    """The log of a run in check mode."""

    def note(self, who: str, state: str, *, trouble: bool = False) -> None: ...


@dataclass
class Switching:
    bmcs: Bmcs
    log: Log
    limit: float
    """Seconds that a system has to shut down."""
    clock: wait.Clock = wait.CLOCK
    forced: list[str] = field(default_factory=list)
    """Names of nodes that did not shut down in time."""

    def power(self, nodes: Sequence[Node]) -> dict[str, str]:
        """By name; all of them have to answer."""
        said = self.bmcs.power([node.vm_name for node in nodes])
        mute = [f"{node.name}: {said[node.vm_name].trouble}" for node in nodes if said[node.vm_name].trouble]
        if mute:
            raise OperatorError(
                f"BMCs give no answer: {'; '.join(mute)}. playbooks/bmc.yml repairs the service of the BMCs."
            )
        return {node.name: said[node.vm_name].power for node in nodes}

    def those_on(self, nodes: Sequence[Node]) -> list[Node]:
        """A VM that is paused is one of them."""
        power = self.power(nodes)
        return [node for node in nodes if power[node.name] != Power.OFF]

    def awaited(self, nodes: Iterable[Node]) -> list[Node]:
        """After a start of the host, their BMCs are about to switch them on."""
        names = self.bmcs.awaited()
        return [node for node in nodes if node.vm_name in names]

    def shut_down(self, nodes: Sequence[Node]) -> None:
        """Those that do not, and those that are paused and cannot, are switched off by force."""
        power = self.power(nodes)
        paused = [node for node in nodes if power[node.name] == Power.PAUSED]
        self._force_off(paused, "is paused, and is switched off by force")
        asked = [node for node in nodes if power[node.name] not in (Power.OFF, Power.PAUSED)]
        self._note(asked, "shuts down")
        left, since = asked, 0.0
        self._ask_to_shut_down(left)
        for look in wait.looks(self.limit, LOOK_SECONDS, self.clock):
            left = self._not_yet(left, Power.OFF)
            if not left:
                return
            if look.seconds - since > ASK_AGAIN:
                since = look.seconds
                self._ask_to_shut_down(left)
        self._force_off(left, f"did not shut down in {self.limit:.0f} s, and is switched off by force")

    def give_up_starts(self, nodes: Sequence[Node]) -> None:
        """Of nodes that are off, and which their BMCs may be about to switch on."""
        if nodes:
            self._ask_to_shut_down(nodes)

    def switch_on(self, nodes: Sequence[Node]) -> None:
        self._note(nodes, "is switched on")
        self._switch(Reset.ON, nodes, Power.ON)

    def _ask_to_shut_down(self, nodes: Sequence[Node]) -> None:
        """What a BMC refuses is seen by its VM, which stays on."""
        self.bmcs.reset(Reset.SHUT_DOWN, [node.vm_name for node in nodes])

    def _force_off(self, nodes: Sequence[Node], why: str) -> None:
        self.forced += [node.name for node in nodes]
        self._note(nodes, why, trouble=True)
        self._switch(Reset.OFF, nodes, Power.OFF)

    def _switch(self, kind: Reset, nodes: Sequence[Node], wanted: Power) -> None:
        left, refused = nodes, self.bmcs.reset(kind, [node.vm_name for node in nodes])
        for _look in wait.looks(SWITCH_SECONDS, LOOK_SECONDS, self.clock):
            left = self._not_yet(left, wanted)
            if not left:
                return
        said = [f"{node.name}: {refused.get(node.vm_name) or f'is not {wanted.lower()} yet'}" for node in left]
        raise OperatorError(f"BMCs did not do {kind} in {SWITCH_SECONDS:.0f} s: {'; '.join(said)}. Run this again.")

    def _not_yet(self, nodes: Sequence[Node], wanted: Power) -> list[Node]:
        """A BMC that is busy for a moment is asked again."""
        said = self.bmcs.power([node.vm_name for node in nodes]) if nodes else {}
        self._note([node for node in nodes if said[node.vm_name].power == wanted], f"is {wanted.lower()}")
        return [node for node in nodes if said[node.vm_name].power != wanted]

    def _note(self, nodes: Iterable[Node], state: str, *, trouble: bool = False) -> None:
        for node in nodes:
            self.log.note(node.name, state, trouble=trouble)
