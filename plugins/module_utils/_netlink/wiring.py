# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._netlink.links import Link

LONGEST_NAME = 15
SMALLEST_MTU = 68
LARGEST_MTU = 65535
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
PAIR_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
MARK = "nometal.ipi"


@dataclass(frozen=True)
class Plug:
    """One end of the pair, and the bridge that it goes to."""

    key: str
    name: str
    bridge: str | None = None
    make_bridge: bool = False


@dataclass(frozen=True)
class Wiring:
    """A veth pair as it is asked for."""

    name: str
    a: Plug
    b: Plug
    mtu: int

    @property
    def plugs(self) -> tuple[Plug, Plug]:
        return self.a, self.b

    def bridges_made(self, links: Mapping[str, Link]) -> list[str]:
        """Those that are ours to make, or are made by us. One that somebody else has made stays theirs."""
        wanted = [plug.bridge for plug in self.plugs if plug.bridge and plug.make_bridge]
        return [name for name in wanted if name not in links or is_ours(links[name], links)]

    def former_bridges(self, links: Mapping[str, Link]) -> list[str]:
        """Made by us for ends that are to go elsewhere now, and with nothing else on them."""
        asked_for = {plug.bridge for plug in self.plugs}
        joined = [links[plug.name].master for plug in self.plugs if plug.name in links]
        return [name for name in joined if name and name not in asked_for and self._has_for_itself(name, links)]

    def bridges_left_over(self, links: Mapping[str, Link]) -> list[str]:
        """Made by us, and with nothing else on them."""
        made = [name for name in self.bridges_made(links) if self._has_for_itself(name, links)]
        return [*made, *self.former_bridges(links)]

    def _has_for_itself(self, bridge: str, links: Mapping[str, Link]) -> bool:
        ends = {plug.name for plug in self.plugs}
        return bridge in links and is_ours(links[bridge], links) and ports_of(bridge, links) <= ends


def is_ours(link: Link, links: Mapping[str, Link]) -> bool:
    # What a run leaves that is killed between making and marking it. Nobody else's use looks like that.
    cut_short = not link.alias and not link.up and link.forward_delay == 0 and not ports_of(link.name, links)
    return link.kind == "bridge" and (link.alias == MARK or cut_short)


def ports_of(bridge: str, links: Mapping[str, Link]) -> set[str]:
    return {link.name for link in links.values() if link.master == bridge}


def refuse_nonsense(wiring: Wiring) -> None:
    """What is wrong by itself, on whatever host."""
    if not PAIR_NAME.fullmatch(wiring.name):
        raise OperatorError(
            f"name: {wiring.name!r} is no name for a pair: letters, digits, dot, hyphen and underscore, 64 at most."
        )
    if not SMALLEST_MTU <= wiring.mtu <= LARGEST_MTU:
        raise OperatorError(f"mtu: {wiring.mtu} is not between {SMALLEST_MTU} and {LARGEST_MTU}.")
    named: dict[str, str] = {}
    for key, name in _keys_and_names(wiring):
        _refuse_bad_name(key, name)
        if name in named:
            hint = ": that would be a loop" if key == "b.bridge" and named[name] == "a.bridge" else ""
            raise OperatorError(f"{key}: {name} is the same as {named[name]}{hint}. Each needs a name of its own.")
        named[name] = key


def refuse_conflicts(wiring: Wiring, links: Mapping[str, Link], *, wanted: bool, foreseeing: bool) -> None:
    """What stands in the way on this host. Foreseeing, a bridge that others make may come before the real run does."""
    for plug in wiring.plugs:
        _refuse_other_kind(f"{plug.key}.name", plug.name, "veth", links)
        if plug.bridge and wanted:
            _refuse_other_kind(f"{plug.key}.bridge", plug.bridge, "bridge", links)
            if plug.bridge not in links and not plug.make_bridge and not foreseeing:
                raise OperatorError(
                    f"{plug.key}.bridge: there is no bridge {plug.bridge}, and it is not this module's to make. "
                    "If it is a libvirt network's, start that network (virsh net-list --all); "
                    f"if nobody else makes it, set {plug.key}.make_bridge: true."
                )
    if wanted:
        _refuse_loop(wiring, links)


def _keys_and_names(wiring: Wiring) -> Iterator[tuple[str, str]]:
    for plug in wiring.plugs:
        yield f"{plug.key}.name", plug.name
        if plug.bridge is not None:
            yield f"{plug.key}.bridge", plug.bridge


def _refuse_bad_name(key: str, name: str) -> None:
    if len(name) > LONGEST_NAME:
        raise OperatorError(f"{key}: {name} has {len(name)} characters, and Linux takes {LONGEST_NAME} at most.")
    if not NAME.fullmatch(name) or name in ("lo", "all", "default"):
        raise OperatorError(f"{key}: {name!r} is no interface name: letters, digits, dot, hyphen and underscore.")


def _refuse_other_kind(key: str, name: str, kind: str, links: Mapping[str, Link]) -> None:
    if name in links and links[name].kind != kind:
        what = links[name].kind or "a device of another kind"
        raise OperatorError(f"{key}: {name} exists and is no {kind} but {what}. Choose another name, or remove it.")


def _refuse_loop(wiring: Wiring, links: Mapping[str, Link]) -> None:
    if wiring.a.bridge and wiring.b.bridge:
        ends = {plug.name for plug in wiring.plugs}
        others = [link for link in links.values() if not {link.name, link.peer} & ends]
        way = _way(wiring.a.bridge, wiring.b.bridge, others)
        if way:
            raise OperatorError(
                f"a.bridge and b.bridge: {wiring.a.bridge} and {wiring.b.bridge} are already joined by "
                f"{', '.join(way)}, and a second way between them would be a loop. Remove that one first."
            )


def _way(start: str, goal: str, links: Sequence[Link]) -> list[str]:
    """The veths over which one bridge is joined to another, if it is."""
    by_name = {link.name: link for link in links}
    ways: dict[str, list[str]] = {start: []}
    front = [start]
    while front and goal not in ways:
        bridge = front.pop()
        for link in links:
            far = by_name[link.peer].master if link.kind == "veth" and link.peer in by_name else None
            if link.master == bridge and far and far not in ways:
                ways[far] = [*ways[bridge], f"{link.name}-{link.peer}"]
                front.append(far)
    return ways.get(goal, [])
