# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong between values that are each right: outside their network, given twice, in each other's way."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import SMALLEST_IPV6_MTU
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network import dnsmasq

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.network import Range
    from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.declared import Declared

MOST_OF_ROOM = 1000
"""What dnsmasq allows at most when nobody says how many leases there may be."""


def problems(declared: Declared) -> Iterator[str]:
    yield from _addresses(declared)
    yield from _ranges(declared)
    yield from _reservations(declared)
    yield from _pools(declared)
    yield from _known_only(declared)
    yield from _dns(declared)
    yield from _time(declared)
    yield from _room(declared)


def _addresses(declared: Declared) -> Iterator[str]:
    if not declared.interfaces:
        yield "addresses is empty; one network of IPv4, of IPv6, or one of each is right"
    for family, count in Counter(own.version for own in declared.interfaces).items():
        if count > 1:
            yield f"addresses has {count} networks of IPv{family}; one of each family is right"
    speaks_v6 = any(str(own).count(":") for own in declared.interfaces)
    if speaks_v6 and declared.mtu < SMALLEST_IPV6_MTU:
        yield f"mtu is {declared.mtu}; IPv6 needs {SMALLEST_IPV6_MTU} at least"


def _ranges(declared: Declared) -> Iterator[str]:
    for index, span in enumerate(declared.ranges):
        yield from _outside(declared, f"dhcp.ranges[{index}]", (span.start, span.end))
        for other, earlier in enumerate(declared.ranges[:index]):
            if _overlap(span, earlier):
                yield f"dhcp.ranges[{index}] overlaps dhcp.ranges[{other}]"


def _reservations(declared: Declared) -> Iterator[str]:
    machines = declared.machines
    for index, machine in enumerate(machines):
        at = f"dhcp.reservations[{index}] ({machine.name})"
        yield from _outside(declared, at, machine.ips)
        if not machine.ips:
            yield f"{at} has no address"
        if len({":" in ip for ip in machine.ips}) < len(machine.ips):
            yield f"{at} has two addresses of one family"
        if any(":" in ip for ip in machine.ips) and not machine.duid:
            yield f"{at} has an IPv6 address but no duid, by which DHCPv6 knows a machine"
    yield from _twice("dhcp.reservations", "name", (machine.name for machine in machines))
    yield from _twice("dhcp.reservations", "mac", (machine.mac for machine in machines))
    yield from _twice("dhcp.reservations", "duid", (machine.duid for machine in machines if machine.duid))
    yield from _twice("dhcp.reservations", "ip", (ip for machine in machines for ip in machine.ips))


def _pools(declared: Declared) -> Iterator[str]:
    spans = [(f"dhcp.ranges[{index}]", span) for index, span in enumerate(declared.ranges)]
    for index, pool in enumerate(declared.pools):
        at = f"dhcp.pools[{index}]"
        yield from _outside(declared, at, (pool.span.start, pool.span.end))
        yield from (f"{at} overlaps {name}" for name, span in spans if _overlap(pool.span, span))
        for to, via in pool.routes:
            if ":" in pool.span.start or ":" in to or ":" in via:
                yield f"{at}.static_routes has {to}; DHCP hands out routes for IPv4 only"
            else:
                yield from _outside(declared, f"{at}.static_routes", [via], may_be_own=True)
        spans.append((at, pool.span))


def _known_only(declared: Declared) -> Iterator[str]:
    for name, given in (("ranges", declared.ranges), ("pools", declared.pools)):
        if declared.known_only and given:
            yield f"dhcp.{name} would serve machines without a reservation; with dhcp.known_only, none is right"


def _dns(declared: Declared) -> Iterator[str]:
    yield from _twice("dns.hosts", "ip", (host.ip for host in declared.hosts))
    own = {str(interface.ip) for interface in declared.interfaces}
    for index, server in enumerate(declared.forwarders):
        if server in own:
            yield f"dns.forwarders[{index}] is {server}, this network's own DNS server, which would ask itself"
    yield from (f"dns.hosts[{index}] has no names" for index, host in enumerate(declared.hosts) if not host.names)


def _time(declared: Declared) -> Iterator[str]:
    families = {own.version for own in declared.interfaces}
    for index, server in enumerate(declared.ntp_servers):
        version = ipaddress.ip_address(server).version
        if version not in families:
            yield f"ntp_servers[{index}] is {server}, but the network has no IPv{version}"


def _room(declared: Declared) -> Iterator[str]:
    extra = leases_beside_ranges(declared)
    if dnsmasq.room_in(declared.ranges) < extra and declared.ranges:
        yield (
            f"dhcp.ranges is too small for libvirt to allow {extra} further leases of reservations and pools; "
            "a larger range is right, or none"
        )
    if not declared.ranges and extra > MOST_OF_ROOM:
        yield f"dhcp asks for {extra} leases; without a range, {MOST_OF_ROOM} are possible"


def leases_beside_ranges(declared: Declared) -> int:
    reserved = sum(len(machine.ips) for machine in declared.machines)
    return reserved + sum(dnsmasq.size_of(pool.span) for pool in declared.pools)


def _outside(declared: Declared, at: str, ips: Iterable[str], *, may_be_own: bool = False) -> Iterator[str]:
    networks = " and ".join(str(own.network) for own in declared.interfaces)
    for ip in map(ipaddress.ip_address, ips):
        own = next((own for own in declared.interfaces if ip in own.network), None)
        if own is None:
            yield f"{at} has {ip}, which lies outside {networks}"
        elif _is_no_hosts(ip, own):
            yield f"{at} has {ip}, which no machine in {own.network} can have"
        elif ip == own.ip and not may_be_own:
            yield f"{at} has {ip}, which is the host's own"


def _is_no_hosts(ip: Any, own: Any) -> bool:
    return ip == own.network.network_address or (ip.version == 4 and ip == own.network.broadcast_address)  # noqa: PLR2004 - the family's own number


def _twice(at: str, key: str, values: Iterable[str]) -> Iterator[str]:
    return (f"{at} has {key} {value} {count} times" for value, count in Counter(values).items() if count > 1)


def _overlap(one: Range, other: Range) -> bool:
    starts, ends = zip(*((ipaddress.ip_address(it.start), ipaddress.ip_address(it.end)) for it in (one, other)))
    same_family = starts[0].version == starts[1].version
    return same_family and max(map(int, starts)) <= min(map(int, ends))
