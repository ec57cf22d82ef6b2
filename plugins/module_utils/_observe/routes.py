# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's routes by netlink: of all tables and both families, on hosts without iproute2 too."""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Network as IpNetwork
from ansible_collections.nometal.ipi.plugins.module_utils._observe import netlink

GET_ROUTES = 26
ROUTE = struct.Struct("=8BI")  # family, dst_len, src_len, tos, table, protocol, scope, type, flags
HOP = struct.Struct("=HBBi")  # length, flags, weight, index
DESTINATION, OUT_INTERFACE, GATEWAY, METRIC, MULTIPATH, TABLE, VIA = 1, 4, 5, 6, 9, 15, 18
MAIN_TABLE = 254
UNICAST, LOCAL, REJECTING = 1, 2, (6, 7, 8)  # blackhole, unreachable, prohibit
FROM_ADVERTISEMENT = 9


@dataclass(frozen=True)
class Hop:
    device: str
    gateway: str = ""


@dataclass(frozen=True)
class Route:
    subnet: IpNetwork
    device: str
    gateway: bool = False
    advertised: bool = False
    hops: tuple[Hop, ...] = field(default=(), compare=False)
    metric: int = field(default=0, compare=False)
    table: int = field(default=MAIN_TABLE, compare=False)

    def __str__(self) -> str:
        return f"{self.subnet} on {self.device}" if self.device else f"{self.subnet} (rejected)"


def routes() -> tuple[Route, ...]:
    """Without default routes, multicast, and what the kernel adds for loopback and link-local addresses."""
    found = [route for family in (socket.AF_INET, socket.AF_INET6) for route in _dump(family)]
    return tuple(dict.fromkeys(route for route in found if _tells(route)))


def default_routes(family: int) -> list[Route]:
    """Those that the host's own packets take, the first one before others."""
    found = [route for route in _dump(family) if not route.subnet.prefixlen and route.device]
    return sorted((route for route in found if route.table == MAIN_TABLE), key=lambda route: route.metric)


def advertising_devices() -> list[str]:
    """Where the host has routes from that IPv6 routers have advertised, the default route among them."""
    return sorted({route.device for route in _dump(socket.AF_INET6) if route.advertised})


def in_the_way(subnet: IpNetwork, found: Sequence[Route]) -> list[Route]:
    """Networks that the host is connected to, and routes into the subnet's own range: one for each device."""
    return [
        route
        for route in widest_per_device(subnet, found)
        if not route.gateway or route.subnet.prefixlen >= subnet.prefixlen
    ]


def widest_per_device(subnet: IpNetwork, found: Sequence[Route]) -> list[Route]:
    overlapping = sorted(
        (route for route in found if overlap(subnet, route.subnet)),
        key=lambda route: (route.gateway, route.subnet.prefixlen),
    )
    return list({route.device: route for route in reversed(overlapping)}.values())


def overlap(one: IpNetwork, other: IpNetwork) -> bool:
    return one.version == other.version and one.overlaps(other)


def _tells(route: Route) -> bool:
    network = route.subnet.network_address
    return route.subnet.prefixlen > 0 and not (network.is_loopback or network.is_link_local or network.is_multicast)


def _dump(family: int) -> Iterator[Route]:
    for body in netlink.dump(GET_ROUTES, ROUTE.pack(family, *[0] * 8)):
        yield from _route(family, body)


def _route(family: int, body: bytes) -> Iterator[Route]:
    prefix_length, few_tables, protocol, kind = itemgetter(1, 4, 5, 7)(ROUTE.unpack_from(body))
    if kind not in (UNICAST, LOCAL, *REJECTING):
        return
    seen = netlink.attributes(body[ROUTE.size :])
    address = seen.get(DESTINATION, bytes(4 if family == socket.AF_INET else 16))
    hops = tuple(_hops(seen))
    yield Route(
        subnet=ipaddress.ip_network((address, prefix_length), strict=False),
        device="" if kind in REJECTING else hops[0].device if len(hops) == 1 else "several links",
        gateway=GATEWAY in seen,
        advertised=protocol == FROM_ADVERTISEMENT,
        hops=hops,
        metric=netlink.number_in(seen.get(METRIC)),
        table=netlink.number_in(seen[TABLE]) if TABLE in seen else few_tables,
    )


def _hops(seen: dict[int, bytes]) -> Iterator[Hop]:
    if OUT_INTERFACE in seen:
        yield _hop(netlink.number_in(seen[OUT_INTERFACE]), seen)
    several = seen.get(MULTIPATH, b"")
    while len(several) >= HOP.size:
        length, _flags, _weight, index = HOP.unpack_from(several)
        yield _hop(index, netlink.attributes(several[HOP.size : length]))
        several = several[length:]


def _hop(index: int, seen: dict[int, bytes]) -> Hop:
    # An IPv4 route may lead over an IPv6 gateway, whose family comes first then.
    gateway = seen.get(GATEWAY) or seen.get(VIA, b"")[2:]
    return Hop(netlink.link_numbered(index), netlink.address_in(gateway))
