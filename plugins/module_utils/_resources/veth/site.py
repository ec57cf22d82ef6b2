# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import ports_of, read_links
from ansible_collections.nometal.ipi.plugins.module_utils._observe.wiring import MARK, is_ours
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth import kernel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import Link
    from ansible_collections.nometal.ipi.plugins.module_utils._observe.wiring import Wiring


@dataclass(frozen=True)
class Site:
    """A wiring on this host, where it tells what belongs to the pair from what belongs to others."""

    wiring: Wiring
    links: Mapping[str, Link]
    plugged: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    """By pair and end: the bridge, as the pair's hook entry has it."""

    @property
    def ends(self) -> list[str]:
        return [plug.name for plug in self.wiring.plugs if self._is_our_end(plug.name)]

    @property
    def plugged_by_others(self) -> dict[str, Mapping[str, str | None]]:
        return {pair: ends for pair, ends in self.plugged.items() if pair != self.wiring.name}

    def owner_of(self, end: str) -> str | None:
        """The other pair whose end this is, if it is one's."""
        return next((pair for pair, ends in self.plugged_by_others.items() if end in ends), None)

    def former_bridges(self) -> dict[str, list[str]]:
        """Made by us for ends that are to go elsewhere now, with what else is on them."""
        asked_for = {plug.bridge for plug in self.wiring.plugs}
        joined = [self.links[end].master for end in self.ends]
        before = {*joined, *self.plugged.get(self.wiring.name, {}).values()} - asked_for
        return {name: self._other_ports(name) for name in self.links if name in before and self._is_our_bridge(name)}

    def bridges_left_over(self) -> list[str]:
        """Made by us, and with nothing else on them: for this pair, or for one whose removal had to leave them."""
        made = self.wiring.bridges_made(self.links)
        ours = [name for name, link in self.links.items() if name in made or link.alias == MARK]
        return [name for name in ours if self._is_our_bridge(name) and not self._other_ports(name)]

    def _is_our_end(self, name: str) -> bool:
        if name not in self.links or self.links[name].kind != "veth" or self.owner_of(name):
            return False
        peers = {plug.name for plug in self.wiring.plugs} - {name}
        return self.links[name].peer in peers or name in self.plugged.get(self.wiring.name, {})

    def _is_our_bridge(self, name: str) -> bool:
        others = {bridge for ends in self.plugged_by_others.values() for bridge in ends.values()}
        return is_ours(self.links[name], self.links) and name not in others

    def _other_ports(self, bridge: str) -> list[str]:
        peers = {self.links[end].peer for end in self.ends}  # with an end, its peer goes
        return [port for port in ports_of(bridge, self.links) if port not in {*peers, *self.ends}]


def links_found(*, foreseeing: bool, removing: bool = False) -> dict[str, Link]:
    if not kernel.may_change_links():
        raise OperatorError("This process may not change network links: run as root, with `become: true`.")
    # What is in the way is seen before there are packages, and what is ours is removed after they are gone.
    if not (foreseeing or removing):
        kernel.refuse_without_pyroute2()
    return read_links()
