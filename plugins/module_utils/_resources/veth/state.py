# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
from ansible_collections.nometal.ipi.plugins.module_utils._observe.wiring import MARK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import Link
    from ansible_collections.nometal.ipi.plugins.module_utils._observe.wiring import Wiring


@dataclass(frozen=True)
class End:
    """One end. Without a peer, its other end is in another network namespace."""

    name: str
    bridge: str | None
    mtu: int
    peer: str | None
    up: bool = True


@dataclass(frozen=True)
class Bridge:
    """A plain bridge of ours: it forwards at once, and the host has no address on it.

    It must not answer there for its addresses elsewhere either: machines would take this for the way to the gateway.
    """

    name: str
    mtu: int
    forward_delay: int | None = 0
    answers: bool = False
    marked: bool = True
    up: bool = True


@dataclass(frozen=True)
class VethPair:
    """The pair, the bridges made for it, and its files: the hook's entry, and what keeps link managers away."""

    name: str
    ends: tuple[End, ...] = ()
    bridges: tuple[Bridge, ...] = ()
    hook: dict[str, list[str]] = field(default_factory=dict)
    unmanaged: dict[str, list[str]] = field(default_factory=dict)


def desired_ends(wiring: Wiring) -> tuple[End, ...]:
    a, b = wiring.plugs
    return End(a.name, a.bridge, wiring.mtu, b.name), End(b.name, b.bridge, wiring.mtu, a.name)


def current_ends(names: Sequence[str], links: Mapping[str, Link]) -> tuple[End, ...]:
    there = [links[name] for name in names]
    return tuple(End(link.name, link.master, link.mtu, link.peer, link.up) for link in there)


def current_bridges(names: Sequence[str], links: Mapping[str, Link]) -> tuple[Bridge, ...]:
    there = [links[name] for name in names if name in links]
    return tuple(
        Bridge(link.name, link.mtu, link.forward_delay, link.answers, link.alias == MARK, link.up) for link in there
    )


def plan(current: VethPair | None, desired: VethPair | None) -> Sequence[Step]:
    if desired is None:
        return [] if current is None else list(_plan_removal(current))
    before = current or VethPair(desired.name)
    return [*_plan_files(before, desired), *_plan_bridges(before, desired), *_plan_ends(before, desired)]


def _plan_files(current: VethPair, desired: VethPair) -> Iterator[Step]:
    """Before all else: link managers keep away from the start, and a reboot completes what was cut short."""
    there = {**current.hook, **current.unmanaged}
    wanted = {**desired.hook, **desired.unmanaged}
    for path, lines in wanted.items():
        if there.get(path) != lines:
            yield Step("write", path, "was changed" if path in there else "")
    for path in there:
        if path not in wanted:
            yield Step("remove", path)


def _plan_bridges(current: VethPair, desired: VethPair) -> Iterator[Step]:
    # With the ends still on them: that tells whose they are, should this be cut short.
    yield from (Step("delete bridge", name, "no longer asked for") for name in _former_bridges(current, desired))
    there = {bridge.name: bridge for bridge in current.bridges}
    for bridge in desired.bridges:
        if bridge.name in there:
            yield from _plan_bridge(there[bridge.name], bridge)
        else:
            yield Step("add bridge", bridge.name)


def _former_bridges(current: VethPair, desired: VethPair) -> set[str]:
    return {bridge.name for bridge in current.bridges} - {bridge.name for bridge in desired.bridges}


def _plan_bridge(found: Bridge, bridge: Bridge) -> Iterator[Step]:
    if not found.marked:
        yield Step("mark", bridge.name, "its making was cut short")
    if found.mtu != bridge.mtu:
        yield Step("set mtu of", bridge.name, f"was {found.mtu}")
    if found.forward_delay != bridge.forward_delay:
        yield Step("set forward delay of", bridge.name, f"was {(found.forward_delay or 0) / 100:g} s")
    if found.answers != bridge.answers:
        yield Step("silence", bridge.name, "the host answered on it")
    if not found.up:
        yield Step("up", bridge.name, "was down")


def _plan_ends(current: VethPair, desired: VethPair) -> Iterator[Step]:
    former = _former_bridges(current, desired)
    there = {end.name: replace(end, bridge=None) if end.bridge in former else end for end in current.ends}
    if [end.peer for end in current.ends] != [end.peer for end in desired.ends]:
        yield from _plan_deletion(current.ends)
        yield Step("add", desired.ends[0].name, f"with {desired.ends[1].name}")
        there = {end.name: replace(end, bridge=None, up=False) for end in desired.ends}
    # Both are let go before either goes anywhere: not even for a moment are both on one bridge.
    for end in desired.ends:
        if there[end.name].bridge not in (None, end.bridge):
            yield Step("release", end.name, f"was on {there[end.name].bridge}")
    for end in desired.ends:
        yield from _plan_end(there[end.name], end)


def _plan_end(found: End, end: End) -> Iterator[Step]:
    if found.mtu != end.mtu:
        yield Step("set mtu of", end.name, f"was {found.mtu}")
    if end.bridge and found.bridge != end.bridge:
        yield Step("join", end.name, f"to {end.bridge}")
    if not found.up:
        yield Step("up", end.name, "was down")


def _plan_deletion(ends: Sequence[End]) -> Iterator[Step]:
    gone: set[str | None] = set()
    for end in ends:
        if end.name not in gone:  # with one end, its peer goes
            yield Step("delete", end.name, f"with its peer {end.peer}" if end.peer else "its peer is elsewhere")
            gone.add(end.peer)


def _plan_removal(current: VethPair) -> Iterator[Step]:
    """First what would bring it back; last what keeps link managers away."""
    yield from (Step("remove", path) for path in current.hook)
    # With the ends still on them: that tells whose they are, should this be cut short.
    yield from (Step("delete bridge", bridge.name) for bridge in current.bridges)
    yield from _plan_deletion(current.ends)
    yield from (Step("remove", path) for path in current.unmanaged)
