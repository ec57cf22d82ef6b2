# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who gets which address: what is pinned stays, everything else finds its place by role and number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.nometal.ipi.plugins.module_utils._core.addresses import Span, capacity, key_of, of_family
from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Address, Network
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import got, must_be
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import Problem
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive import pinned
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.free_addresses import NoRoomError, Room
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.roster import (
    ARBITER,
    CONTROL_PLANE,
    SPARE,
    WORKER,
    Node,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.lab import LabSpec

GATEWAY_AND_VIPS = 3


@dataclass(frozen=True)
class Layout:
    """Where things go in a network, as offsets; negative ones count from its end."""

    hosts: int
    """The least number of addresses that it is for."""
    api: int
    ingress: int
    bootstrap: int
    bootstrap_pool: int
    bootstrap_pool_size: int
    dhcp_pool: int
    dhcp_pool_size: int
    nodes: dict[str, int]


LAYOUTS = (
    Layout(254, 5, 6, 9, 10, 8, 220, 20, {CONTROL_PLANE: 20, ARBITER: 27, WORKER: 30, SPARE: 200}),
    Layout(62, 2, 3, 4, -4, 4, -12, 8, {CONTROL_PLANE: 5, ARBITER: 5, WORKER: 5, SPARE: 5}),
    Layout(0, 2, 3, 4, -2, 2, -4, 2, {CONTROL_PLANE: 5, ARBITER: 5, WORKER: 5, SPARE: 5}),
)


@dataclass(frozen=True)
class FamilyPlan:
    """The addresses of one family."""

    network: Network
    gateway: Address
    api: Address | None
    ingress: Address | None
    bootstrap: Address | None
    bootstrap_pool: Span | None
    dhcp_pool: Span
    nodes: dict[str, Address]


def plan_family(spec: LabSpec, nodes: Sequence[Node], net: Network) -> FamilyPlan | Problem:
    """A Problem when the network is too small."""
    try:
        return _planned(spec, nodes, net)
    except NoRoomError as error:
        return Problem("network.too-small", key_of(net), _advice(spec, nodes, net, str(error)))


def layout_of(net: Network) -> Layout:
    return next(layout for layout in LAYOUTS if capacity(net) >= layout.hosts)


def _planned(spec: LabSpec, nodes: Sequence[Node], net: Network) -> FamilyPlan:
    layout, room, family = layout_of(net), _room_beside_pinned(spec, net), net.version
    vips, with_vips = spec.machine_network.vips, family in pinned.vip_families(spec)
    # In the order of importance, so that growth moves what matters least.
    api = _pinned_or(room, of_family(vips.api or (), family), layout.api) if with_vips else None
    ingress = _pinned_or(room, of_family(vips.ingress or (), family), layout.ingress) if with_vips else None
    bootstrap = _bootstrap(spec, room, layout, net)
    bootstrap_pool = _bootstrap_pool(spec, room, layout, net)
    pool = pinned.span_of(spec.machine_network.dhcp_pool, family)
    return FamilyPlan(
        network=net,
        gateway=pinned.gateway_of(spec, net),
        api=api,
        ingress=ingress,
        bootstrap=bootstrap,
        bootstrap_pool=bootstrap_pool,
        dhcp_pool=pool or room.next_span(layout.dhcp_pool, layout.dhcp_pool_size),
        nodes={node.name: _node_address(room, node, layout, family) for node in nodes},
    )


def _room_beside_pinned(spec: LabSpec, net: Network) -> Room:
    room = Room(net)
    room.take(pinned.gateway_of(spec, net))
    for claim in pinned.claims(spec):
        room.take(claim.address)
    for item in pinned.ranges(spec):
        if item.span:
            room.take_span(item.span)
    return room


def _pinned_or(room: Room, address: Address | None, offset: int) -> Address:
    return address or room.next(offset)


def _bootstrap(spec: LabSpec, room: Room, layout: Layout, net: Network) -> Address | None:
    """Static and pinned addresses have the families they were given; a derived one fits the mode."""
    wanted = spec.bootstrap
    if wanted.address == "pool":
        return None
    if wanted.ip:
        return of_family(wanted.ip, net.version)
    primary = net == pinned.machine_networks(spec)[0]
    return room.next(layout.bootstrap) if primary or wanted.address == "reserved" else None


def _bootstrap_pool(spec: LabSpec, room: Room, layout: Layout, net: Network) -> Span | None:
    if spec.bootstrap.address != "pool":
        return None
    own = pinned.bootstrap_pool(spec, net.version)
    return own or room.next_span(layout.bootstrap_pool, layout.bootstrap_pool_size)


def _node_address(room: Room, node: Node, layout: Layout, family: int) -> Address:
    own = of_family(node.override.ip or (), family)
    return own or room.next(layout.nodes[node.role] + node.index)


def _needed(spec: LabSpec, nodes: Sequence[Node], net: Network) -> int:
    layout, wanted = layout_of(net), spec.machine_network
    pools = [pinned.span_of(pool, net.version) for pool in wanted.pools]
    dhcp = pinned.span_of(wanted.dhcp_pool, net.version)
    bootstrap = layout.bootstrap_pool_size if spec.bootstrap.address == "pool" else 1
    return (
        GATEWAY_AND_VIPS
        + len(nodes)
        + sum(of_family(item.ip, net.version) is not None for item in wanted.reservations)
        + (dhcp.size if dhcp else layout.dhcp_pool_size)
        + (0 if pinned.bootstrap_pool(spec, net.version) else bootstrap)
        + sum(span.size for span in pools if span)
    )


def _advice(spec: LabSpec, nodes: Sequence[Node], net: Network, lacking: str) -> str:
    needed = _needed(spec, nodes, net)
    if needed <= capacity(net):
        return f"no {lacking} left beside the pinned addresses: use a larger network or pin fewer {got(net)}"
    larger = net
    while _needed(spec, nodes, larger) > capacity(larger) and larger.prefixlen:
        larger = larger.supernet()
    needs = f"{needed} addresses for gateway, VIPs, {len(nodes)} nodes, reservations and DHCP pools"
    return must_be(f"a /{larger.prefixlen} or larger: the lab needs {needs}", net)
