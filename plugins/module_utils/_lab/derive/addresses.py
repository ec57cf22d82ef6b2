# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Assign addresses: declared ones as they are, all others by role and number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansible_collections.nometal.ipi.plugins.module_utils._core.addresses import (
    Span,
    capacity,
    first_host,
    key_of,
    last_host,
    of_family,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Address, Network
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import got, must_be
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive import declared
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.node_list import (
    Node,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.lab import LabSpec
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BootstrapAddress, Role


class NoFreeAddressError(Exception):
    """All addresses of the network are used."""


class FreeAddresses:
    def __init__(self, net: Network) -> None:
        self._base = net.network_address
        self._first = int(first_host(net)) - int(net.network_address)
        self._last = int(last_host(net)) - int(net.network_address)
        self._taken: set[int] = set()
        self._spans: list[tuple[int, int]] = []

    def take(self, item: Address) -> None:
        if item.version == self._base.version:
            self._taken.add(int(item) - int(self._base))

    def take_span(self, span: Span) -> None:
        if span.start.version == self._base.version:
            self._spans.append((int(span.start) - int(self._base), int(span.end) - int(self._base)))

    def next(self, offset: int) -> Address:
        """Take the first free address from an offset on, starting over at the end."""
        found = self._search(offset, 1)
        self._taken.add(found)
        return self._base + found

    def next_span(self, offset: int, length: int) -> Span:
        """The same for several in a row; a negative offset counts from the end."""
        start = self._last + 1 + offset if offset < 0 else offset
        found = self._search(start, length)
        span = Span(self._base + found, self._base + (found + length - 1))
        self.take_span(span)
        return span

    def _search(self, offset: int, length: int) -> int:
        found = self._search_up(max(offset, self._first), length)
        if found is None:
            found = self._search_up(self._first, length)
        if found is None:
            raise NoFreeAddressError(f"{length} addresses in a row" if length > 1 else "free address")
        return found

    def _search_up(self, start: int, length: int) -> int | None:
        while start + length - 1 <= self._last:
            used = self._last_used(start, start + length - 1)
            if used is None:
                return start
            start = used + 1
        return None

    def _last_used(self, start: int, end: int) -> int | None:
        """The last offset of a range or address in use."""
        for low, high in self._spans:
            if low <= end and start <= high:
                return high
        return next((offset for offset in range(end, start - 1, -1) if offset in self._taken), None)


GATEWAY_AND_VIPS = 3


@dataclass(frozen=True)
class Layout:
    """Offsets of addresses in a network; negative ones count from its end."""

    hosts: int
    """The least size of a network with this layout."""
    api: int
    ingress: int
    bootstrap: int
    bootstrap_pool: int
    bootstrap_pool_size: int
    dhcp_pool: int
    dhcp_pool_size: int
    nodes: dict[str, int]


LAYOUTS = (
    Layout(254, 5, 6, 9, 10, 8, 220, 20, {Role.CONTROL_PLANE: 20, Role.ARBITER: 27, Role.WORKER: 30, Role.SPARE: 200}),
    Layout(62, 2, 3, 4, -4, 4, -12, 8, {Role.CONTROL_PLANE: 5, Role.ARBITER: 5, Role.WORKER: 5, Role.SPARE: 5}),
    Layout(0, 2, 3, 4, -2, 2, -4, 2, {Role.CONTROL_PLANE: 5, Role.ARBITER: 5, Role.WORKER: 5, Role.SPARE: 5}),
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


def plan_family(spec: LabSpec, nodes: Sequence[Node], net: Network) -> FamilyPlan | Finding:
    """A Finding when the network is too small."""
    try:
        return _planned(spec, nodes, net)
    except NoFreeAddressError as error:
        return Finding("network.too-small", key_of(net), _advice(spec, nodes, net, str(error)))


def layout_of(net: Network) -> Layout:
    return next(layout for layout in LAYOUTS if capacity(net) >= layout.hosts)


def _planned(spec: LabSpec, nodes: Sequence[Node], net: Network) -> FamilyPlan:
    layout, free, family = layout_of(net), _free_addresses(spec, net), net.version
    vips, with_vips = spec.machine_network.vips, family in declared.vip_families(spec)
    # The order decides which addresses change when a lab grows: the first ones do not.
    api = _declared_or_free(free, of_family(vips.api or (), family), layout.api) if with_vips else None
    ingress = _declared_or_free(free, of_family(vips.ingress or (), family), layout.ingress) if with_vips else None
    bootstrap = _bootstrap(spec, free, layout, net)
    bootstrap_pool = _bootstrap_pool(spec, free, layout, net)
    pool = declared.span_of(spec.machine_network.dhcp_pool, family)
    return FamilyPlan(
        network=net,
        gateway=declared.gateway_of(spec, net),
        api=api,
        ingress=ingress,
        bootstrap=bootstrap,
        bootstrap_pool=bootstrap_pool,
        dhcp_pool=pool or free.next_span(layout.dhcp_pool, layout.dhcp_pool_size),
        nodes={node.name: _node_address(free, node, layout, family) for node in nodes},
    )


def _free_addresses(spec: LabSpec, net: Network) -> FreeAddresses:
    free = FreeAddresses(net)
    free.take(declared.gateway_of(spec, net))
    for claim in declared.claims(spec):
        free.take(claim.address)
    for item in declared.ranges(spec):
        if item.span:
            free.take_span(item.span)
    return free


def _declared_or_free(free: FreeAddresses, address: Address | None, offset: int) -> Address:
    return address or free.next(offset)


def _bootstrap(spec: LabSpec, free: FreeAddresses, layout: Layout, net: Network) -> Address | None:
    """Declared addresses have their own families; that of a derived one depends on the mode."""
    wanted = spec.bootstrap
    if wanted.address == BootstrapAddress.POOL:
        return None
    if wanted.ip:
        return of_family(wanted.ip, net.version)
    primary = net == declared.machine_networks(spec)[0]
    return free.next(layout.bootstrap) if primary or wanted.address == BootstrapAddress.RESERVED else None


def _bootstrap_pool(spec: LabSpec, free: FreeAddresses, layout: Layout, net: Network) -> Span | None:
    if spec.bootstrap.address != "pool":
        return None
    own = declared.bootstrap_pool(spec, net.version)
    return own or free.next_span(layout.bootstrap_pool, layout.bootstrap_pool_size)


def _node_address(free: FreeAddresses, node: Node, layout: Layout, family: int) -> Address:
    own = of_family(node.override.ip or (), family)
    return own or free.next(layout.nodes[node.role] + node.index)


def _needed(spec: LabSpec, nodes: Sequence[Node], net: Network) -> int:
    layout, wanted = layout_of(net), spec.machine_network
    pools = [declared.span_of(pool, net.version) for pool in wanted.pools]
    dhcp = declared.span_of(wanted.dhcp_pool, net.version)
    bootstrap = layout.bootstrap_pool_size if spec.bootstrap.address == BootstrapAddress.POOL else 1
    return (
        GATEWAY_AND_VIPS
        + len(nodes)
        + sum(of_family(item.ip, net.version) is not None for item in wanted.reservations)
        + (dhcp.size if dhcp else layout.dhcp_pool_size)
        + (0 if declared.bootstrap_pool(spec, net.version) else bootstrap)
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
