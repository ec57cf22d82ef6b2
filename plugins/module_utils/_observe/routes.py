# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's routes by netlink: of all tables and both families, on hosts without iproute2 too."""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Network as IpNetwork

REQUEST_AND_DUMP = 0x301
GET_ROUTE = 26
MESSAGE_DONE = 3
MESSAGE_ERROR = 2
HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
ROUTE = struct.Struct("=8BI")  # family, dst_len, src_len, tos, table, protocol, scope, type, flags
ATTRIBUTE = struct.Struct("=HH")
DESTINATION, OUT_INTERFACE, GATEWAY = 1, 4, 5
UNICAST, LOCAL, REJECTING = 1, 2, (6, 7, 8)  # blackhole, unreachable, prohibit
FROM_ADVERTISEMENT = 9


@dataclass(frozen=True)
class Route:
    subnet: IpNetwork
    device: str
    gateway: bool = False
    advertised: bool = False

    def __str__(self) -> str:
        return f"{self.subnet} on {self.device}" if self.device else f"{self.subnet} (rejected)"


def routes() -> tuple[Route, ...]:
    """Without default routes, multicast, and what the kernel adds for loopback and link-local addresses."""
    found = [route for family in (socket.AF_INET, socket.AF_INET6) for route in _dump(family)]
    return tuple(dict.fromkeys(route for route in found if _tells(route)))


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
    request = ROUTE.pack(family, *[0] * 8)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.settimeout(2)
        kernel.send(HEADER.pack(HEADER.size + len(request), GET_ROUTE, REQUEST_AND_DUMP, 1, 0) + request)
        while True:
            for kind, body in _messages(kernel.recv(1 << 16)):
                if kind == MESSAGE_DONE:
                    return
                if kind == MESSAGE_ERROR:
                    raise OSError(-struct.unpack_from("=i", body)[0], "the kernel did not list its routes")
                yield from _route(family, body)


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= HEADER.size:
        length, kind = HEADER.unpack_from(data)[:2]
        yield kind, data[HEADER.size : length]
        data = data[_aligned(length) :]


def _route(family: int, body: bytes) -> Iterator[Route]:
    prefix_length, protocol, kind = itemgetter(1, 5, 7)(ROUTE.unpack_from(body))
    if kind not in (UNICAST, LOCAL, *REJECTING):
        return
    attributes = dict(_attributes(body[ROUTE.size :]))
    address = attributes.get(DESTINATION, bytes(4 if family == socket.AF_INET else 16))
    device = "" if kind in REJECTING else _interface(attributes.get(OUT_INTERFACE))
    subnet = ipaddress.ip_network((address, prefix_length), strict=False)
    yield Route(subnet, device, GATEWAY in attributes, protocol == FROM_ADVERTISEMENT)


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= ATTRIBUTE.size:
        length, kind = ATTRIBUTE.unpack_from(data)
        yield kind, data[ATTRIBUTE.size : length]
        data = data[_aligned(length) :]


def _interface(index: bytes | None) -> str:
    if index is None:
        return "several links"
    try:
        return socket.if_indextoname(struct.unpack("=I", index)[0])
    except OSError:
        return "a link that has gone"


def _aligned(length: int) -> int:
    return (length + 3) & ~3
