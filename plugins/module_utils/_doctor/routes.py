# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's routes by netlink: of all tables and both families, on hosts without iproute2 too."""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter

from .needs import Subnet

REQUEST_AND_DUMP = 0x301
GET_ROUTE = 26
MESSAGE_DONE = 3
MESSAGE_ERROR = 2
HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
ROUTE = struct.Struct("=8BI")  # family, dst_len, src_len, tos, table, protocol, scope, type, flags
ATTRIBUTE = struct.Struct("=HH")
DESTINATION, OUT_INTERFACE, GATEWAY = 1, 4, 5
UNICAST, LOCAL, REJECTING = 1, 2, (6, 7, 8)  # blackhole, unreachable, prohibit


@dataclass(frozen=True)
class Route:
    subnet: Subnet
    device: str
    gateway: bool = False

    def __str__(self) -> str:
        return f"{self.subnet} on {self.device}" if self.device else f"{self.subnet} (rejected)"


def routes() -> tuple[Route, ...]:
    """Without default routes, multicast, and what the kernel adds for loopback and link-local addresses."""
    found = [route for family in (socket.AF_INET, socket.AF_INET6) for route in _dump(family)]
    return tuple(dict.fromkeys(route for route in found if _tells(route)))


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
    prefix_length, kind = itemgetter(1, 7)(ROUTE.unpack_from(body))
    if kind not in (UNICAST, LOCAL, *REJECTING):
        return
    attributes = dict(_attributes(body[ROUTE.size :]))
    address = attributes.get(DESTINATION, bytes(4 if family == socket.AF_INET else 16))
    device = "" if kind in REJECTING else _interface(attributes.get(OUT_INTERFACE))
    subnet = ipaddress.ip_network((address, prefix_length), strict=False)
    yield Route(subnet, device, GATEWAY in attributes)


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
