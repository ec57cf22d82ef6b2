# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What libvirt has no words for, in dnsmasq's; and what libvirt tells dnsmasq wrongly."""

from __future__ import annotations

import ipaddress
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from ansible_collections.nometal.ipi.plugins.module_utils._core.zones import reverse_zones
from ansible_collections.nometal.ipi.plugins.module_utils._lab.network import Range

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.declared import (
        Interface,
        Pool,
        Wildcard,
    )

    class Span(Protocol):
        @property
        def start(self) -> str: ...

        @property
        def end(self) -> str: ...


NO_PING = "no-ping"
"""dnsmasq would ping each address before it gives it out, for three seconds, one machine after the other. Here no
machine takes an address without asking."""
KNOWN_ONLY = "dhcp-ignore=tag:!known"
"""Machines without a reservation get no answer at all: no address, and no "no" to one that they have from elsewhere."""
LONG_ROUTER_LIFETIME = 9000
"""The most that IPv6 has. Where advertisements answer the lab's own solicitations alone, none renews the route."""
STEP_OF_ROOM = 32
"""Ranges are not to change with every single reservation: dnsmasq is started anew for that."""


def reverse_lines(hosts_own: Iterable[Interface]) -> Iterator[str]:
    """Like its domain, its addresses are known here or nowhere. libvirt's localPtr takes few prefix lengths."""
    for interface in hosts_own:
        yield from (f"local=/{zone}/" for zone in reverse_zones(str(interface.network)))


def wildcard_lines(wildcards: Iterable[Wildcard]) -> Iterator[str]:
    """Every name below a domain. What it has no address for, such as IPv6, it does not have: others are not asked."""
    addresses: dict[str, list[str]] = {}
    for wildcard in wildcards:
        addresses.setdefault(wildcard.domain, []).append(wildcard.ip)
    for domain, ips in addresses.items():
        yield from (f"address=/{domain}/{ip}" for ip in ips)
        yield f"local=/{domain}/"


def ntp_lines(servers: Sequence[str]) -> Iterator[str]:
    v4 = [server for server in servers if ":" not in server]
    v6 = [f"[{server}]" for server in servers if ":" in server]
    if v4:
        yield f"dhcp-option=option:ntp-server,{','.join(v4)}"
    if v6:
        yield f"dhcp-option=option6:ntp-server,{','.join(v6)}"


def known_only_lines(bridge: str, hosts_own: Iterable[Interface]) -> Iterator[str]:
    yield KNOWN_ONLY
    if any(interface.version == 6 for interface in hosts_own):  # noqa: PLR2004 - the family's own number
        yield f"ra-param={bridge},{LONG_ROUTER_LIFETIME // 5},{LONG_ROUTER_LIFETIME}"


def pool_lines(pools: Sequence[Pool], hosts_own: Sequence[Interface], *, isolated: bool) -> Iterator[str]:
    yield from dict.fromkeys(f"dhcp-host={pool.mac_pattern},set:{pool.tag}" for pool in pools)
    for pool in pools:
        own = _around(pool, hosts_own)
        size = own.netmask if own.version == 4 else own.network.prefixlen  # noqa: PLR2004 - the family's own number
        yield f"dhcp-range=tag:{pool.tag},{pool.start},{pool.end},{size}"
        if pool.static_routes:
            # A client that takes these routes takes no other: the default route has to be one of them.
            routes = [
                *((route.to, route.via) for route in pool.static_routes),
                *([] if isolated else [("0.0.0.0/0", str(own.ip))]),
            ]
            yield f"dhcp-option=tag:{pool.tag},option:classless-static-route,{','.join(chain(*routes))}"


def _around(pool: Pool, hosts_own: Sequence[Interface]) -> Interface:
    return next(interface for interface in hosts_own if ipaddress.ip_address(pool.start) in interface.network)


def with_room(ranges: Sequence[Range], leases: int) -> list[Range]:
    """The ranges, parts of them repeated until libvirt counts enough.

    libvirt allows dnsmasq as many leases as the ranges have addresses, and forgets reservations and pools: with a
    range of 20, the 21st machine gets nothing, reserved or not. A part that is repeated counts again, that is all.
    """
    if not ranges:
        return []  # then libvirt sets no limit
    room = [*ranges]
    missing = -(-leases // STEP_OF_ROOM) * STEP_OF_ROOM
    for part in chain.from_iterable(map(_parts, sorted(ranges, key=size_of, reverse=True))):
        if missing <= 0:
            break
        room.append(part)
        missing -= size_of(part)
    return room


def room_in(ranges: Sequence[Span]) -> int:
    """How many leases `with_room` can make room for, beside those of the ranges themselves."""
    sizes = list(map(size_of, ranges))
    return sum(size * (size + 1) * (size + 2) // 6 - size for size in sizes)


def size_of(span: Span) -> int:
    return int(ipaddress.ip_address(span.end)) - int(ipaddress.ip_address(span.start)) + 1


def _parts(span: Range) -> Iterator[Range]:
    """The largest first."""
    first = ipaddress.ip_address(span.start)
    size = size_of(span)
    for length in range(size - 1, 0, -1):
        yield from (Range(str(first + at), str(first + at + length - 1)) for at in range(size - length + 1))
