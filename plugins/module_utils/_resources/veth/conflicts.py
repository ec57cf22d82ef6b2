# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError, noting, refuse_all
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import ports_of
from ansible_collections.nometal.ipi.plugins.module_utils._observe.wiring import (
    MARK,
    is_ours,
    ports_of_others,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import Link
    from ansible_collections.nometal.ipi.plugins.module_utils._observe.wiring import Plug
    from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth.site import Site


def refuse_conflicts(site: Site, *, foreseeing: bool) -> None:
    """What stands in the way on this host. Foreseeing, a bridge that others make may come before the real run does."""
    ends = [partial(_refuse_end_of_others, plug, site) for plug in site.wiring.plugs]
    bridges = [partial(_refuse_no_bridge, plug, site.links) for plug in site.wiring.plugs]
    whole = (_refuse_loop, _refuse_second_network, _refuse_lan_of_others, _refuse_to_leave_machines_behind)
    problems: list[str] = []
    if not foreseeing:
        with noting(problems):
            _refuse_missing(site)
    for refuse in (*ends, *bridges, *(partial(each, site) for each in whole)):
        with noting(problems):
            refuse()
    refuse_all(problems)


def _refuse_no_bridge(plug: Plug, links: Mapping[str, Link]) -> None:
    if plug.bridge:
        _refuse_other_kind(f"{plug.key}.bridge", plug.bridge, "bridge", links)


def _refuse_missing(site: Site) -> None:
    refuse_all(
        [
            f"{plug.key}.bridge: there is no bridge {plug.bridge}, and it is not this module's to make. "
            "If it is a libvirt network's, start that network (virsh net-list --all); "
            f"if nothing else makes it, set {plug.key}.make_bridge: true."
            for plug in site.wiring.bridges_missing(site.links)
        ]
    )


def _refuse_end_of_others(plug: Plug, site: Site) -> None:
    _refuse_other_kind(f"{plug.key}.name", plug.name, "veth", site.links)
    owner = site.owner_of(plug.name)
    if owner:
        raise OperatorError(f"{plug.key}.name: {plug.name} is an end of veth pair {owner}. Choose another name.")
    if plug.name in site.links and plug.name not in site.ends:
        raise OperatorError(
            f"{plug.key}.name: {plug.name} exists and is not this pair's: its peer is "
            f"{site.links[plug.name].peer or 'elsewhere'}. Choose another name, or remove it."
        )


def _refuse_second_network(site: Site) -> None:
    a, b = site.wiring.plugs
    if not a.bridge or not b.bridge:
        return
    for end, network in _networks_on(b.bridge, site):
        if network != a.bridge:
            raise OperatorError(
                f"b.bridge: bridge {b.bridge} is already joined to {network} by {end}: "
                "two networks would be one. Name another bridge."
            )


def _refuse_lan_of_others(site: Site) -> None:
    bridge = site.wiring.b.bridge
    if site.wiring.shared or not bridge:
        return
    others = ports_of_others(bridge, site.links, [plug.name for plug in site.wiring.plugs])
    others += [] if others else _vms_of_others(bridge, site)
    if others:
        raise OperatorError(
            f"b.bridge: bridge {bridge} has ports of others ({', '.join(others)}): the lab's DHCP server would answer "
            "machines there. Name another bridge (lab_spec.machine_network.bridge), or take these ports off it; where "
            "the lab is to share that LAN, set shared: true (lab_spec.machine_network.shared_lan)."
        )


def _vms_of_others(bridge: str, site: Site) -> list[str]:
    """On a bridge of others that the pair has not joined yet. Later, the lab's own VMs are among them."""
    end = site.wiring.b.name
    on_it = end in site.links and site.links[end].master == bridge
    if on_it or site.plugged.get(site.wiring.name, {}).get(end) == bridge or bridge not in site.links:
        return []
    return [] if is_ours(site.links[bridge], site.links) else ports_of(bridge, site.links)


def _networks_on(bridge: str, site: Site) -> Iterator[tuple[str, str]]:
    """By the ends on a plain bridge: the bridges that they lead to, or will when their networks have started."""
    for ends in site.plugged_by_others.values():
        here = [end for end, where in ends.items() if where == bridge]
        yield from ((end, where) for end in here for where in ends.values() if where and where != bridge)
    if bridge in site.links and site.links[bridge].alias == MARK:
        own = {plug.name for plug in site.wiring.plugs}
        for link in site.links.values():
            far = _far_bridge(link, site.links)
            if link.master == bridge and far and not {link.name, link.peer} & own:
                yield link.name, far


def _far_bridge(link: Link, links: Mapping[str, Link]) -> str | None:
    peer = links.get(link.peer or "")
    return peer.master if peer and link.kind == "veth" else None


def _refuse_to_leave_machines_behind(site: Site) -> None:
    for bridge, ports in site.former_bridges().items():
        if ports:
            raise OperatorError(
                f"{', '.join(ports)} {'is' if len(ports) == 1 else 'are'} still on {bridge}, which {site.wiring.name} "
                "is to leave: switch the machines off or move them to the other bridge first."
            )


def _refuse_other_kind(key: str, name: str, kind: str, links: Mapping[str, Link]) -> None:
    if name in links and links[name].kind != kind:
        what = links[name].kind or "a device of another kind"
        raise OperatorError(f"{key}: {name} exists and is not a {kind} but {what}. Choose another name, or remove it.")


def _refuse_loop(site: Site) -> None:
    wiring, links = site.wiring, site.links
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
            far = _far_bridge(link, by_name)
            if link.master == bridge and far and far not in ways:
                ways[far] = [*ways[bridge], f"{link.name}-{link.peer}"]
                front.append(far)
    return ways.get(goal, [])
