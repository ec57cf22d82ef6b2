# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong between values that are each valid: outside their network, given twice, in each other's way."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import SMALLEST_IPV6_MTU
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import must_be
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network import dnsmasq

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.declared import (
        Declared,
        DhcpRange,
        Pool,
    )

MOST_OF_ROOM = 1000
"""What dnsmasq allows at most unless it is given another number of leases."""


def problems(declared: Declared) -> Iterator[str]:
    """A line each, which names the key."""
    yield from _addresses(declared)
    yield from _ranges(declared)
    yield from _reservations(declared)
    yield from _pools(declared)
    yield from _known_only(declared)
    yield from _dns(declared)
    yield from _time(declared)
    yield from _room(declared)


def _addresses(declared: Declared) -> Iterator[str]:
    if not declared.addresses:
        yield "addresses: must be one network of IPv4, of IPv6, or one of each (got none)"
    for family, count in Counter(own.version for own in declared.interfaces).items():
        if count > 1:
            yield f"addresses: must be one network of each family (got {count} of IPv{family})"
    speaks_v6 = any(own.version == 6 for own in declared.interfaces)  # noqa: PLR2004 - the family's own number
    if speaks_v6 and declared.mtu < SMALLEST_IPV6_MTU:
        yield f"mtu: {must_be(f'at least {SMALLEST_IPV6_MTU} for IPv6', declared.mtu)}"


def _ranges(declared: Declared) -> Iterator[str]:
    ranges = declared.dhcp.ranges
    for index, span in enumerate(ranges):
        yield from _outside(declared, f"dhcp.ranges[{index}]", (span.start, span.end))
        for other, earlier in enumerate(ranges[:index]):
            if _overlap(span, earlier):
                yield f"dhcp.ranges[{index}]: must not overlap dhcp.ranges[{other}]"


def _reservations(declared: Declared) -> Iterator[str]:
    machines = declared.dhcp.reservations
    for index, machine in enumerate(machines):
        at = f"dhcp.reservations[{index}] ({machine.name})"
        yield from _outside(declared, at, machine.ips)
        if not machine.ips:
            yield f"{at}: must have an address"
        if len({":" in ip for ip in machine.ips}) < len(machine.ips):
            yield f"{at}: must have one address of a family (got {', '.join(machine.ips)})"
        if any(":" in ip for ip in machine.ips) and not machine.duid:
            yield f"{at}: must have a duid, by which DHCPv6 knows a machine with an IPv6 address"
    yield from _twice("dhcp.reservations", "name", (machine.name for machine in machines))
    yield from _twice("dhcp.reservations", "mac", (machine.mac for machine in machines))
    yield from _twice("dhcp.reservations", "duid", (machine.duid for machine in machines if machine.duid))
    yield from _twice("dhcp.reservations", "ip", (ip for machine in machines for ip in machine.ips))


def _pools(declared: Declared) -> Iterator[str]:
    spans: list[tuple[str, DhcpRange | Pool]] = [
        (f"dhcp.ranges[{index}]", span) for index, span in enumerate(declared.dhcp.ranges)
    ]
    for index, pool in enumerate(declared.dhcp.pools):
        at = f"dhcp.pools[{index}]"
        yield from _outside(declared, at, (pool.start, pool.end))
        yield from (f"{at}: must not overlap {name}" for name, span in spans if _overlap(pool, span))
        for route in pool.static_routes:
            if ":" in f"{pool.start} {route.to} {route.via}":
                yield f"{at}.static_routes: must be of IPv4, the only routes that DHCP hands out (got {route.to})"
            else:
                yield from _outside(declared, f"{at}.static_routes", [route.via], may_be_own=True)
        spans.append((at, pool))


def _known_only(declared: Declared) -> Iterator[str]:
    for name, given in (("ranges", declared.dhcp.ranges), ("pools", declared.dhcp.pools)):
        if declared.dhcp.known_only and given:
            yield f"dhcp.{name}: must be empty with dhcp.known_only: machines without a reservation would be served"


def _dns(declared: Declared) -> Iterator[str]:
    hosts = declared.dns.hosts
    yield from _twice("dns.hosts", "ip", (host.ip for host in hosts))
    own = {str(interface.ip) for interface in declared.interfaces}
    for index, server in enumerate(declared.dns.forwarders):
        if server in own:
            what = "another server than this network's own DNS server, which would ask itself"
            yield f"dns.forwarders[{index}]: {must_be(what, server)}"
    yield from (f"dns.hosts[{index}]: must have names" for index, host in enumerate(hosts) if not host.names)


def _time(declared: Declared) -> Iterator[str]:
    families = {own.version for own in declared.interfaces}
    for index, server in enumerate(declared.ntp_servers):
        version = ipaddress.ip_address(server).version
        if version not in families:
            yield f"ntp_servers[{index}]: {must_be(f'of another family: the network has no IPv{version}', server)}"


def _room(declared: Declared) -> Iterator[str]:
    extra, ranges = leases_beside_ranges(declared), declared.dhcp.ranges
    if dnsmasq.room_in(ranges) < extra and ranges:
        yield (
            f"dhcp.ranges: must be larger, or empty: too small for libvirt to allow {extra} further leases of "
            "reservations and pools"
        )
    if not ranges and extra > MOST_OF_ROOM:
        yield f"dhcp: must need at most {MOST_OF_ROOM} leases without a range (got {extra})"


def leases_beside_ranges(declared: Declared) -> int:
    reserved = sum(len(machine.ips) for machine in declared.dhcp.reservations)
    return reserved + sum(map(dnsmasq.size_of, declared.dhcp.pools))


def _outside(declared: Declared, at: str, ips: Iterable[str], *, may_be_own: bool = False) -> Iterator[str]:
    networks = " or ".join(str(own.network) for own in declared.interfaces)
    for ip in map(ipaddress.ip_address, ips):
        own = next((own for own in declared.interfaces if ip in own.network), None)
        if own is None:
            yield f"{at}: must lie in {networks} (got {ip})"
        elif _is_no_hosts(ip, own):
            yield f"{at}: must be the address of a machine in {own.network} (got {ip})"
        elif ip == own.ip and not may_be_own:
            yield f"{at}: must be another address than the host's own (got {ip})"


def _is_no_hosts(ip: Any, own: Any) -> bool:
    return ip == own.network.network_address or (ip.version == 4 and ip == own.network.broadcast_address)  # noqa: PLR2004 - the family's own number


def _twice(at: str, key: str, values: Iterable[str]) -> Iterator[str]:
    counts = Counter(values).items()
    return (f"{at}: must have {key} {value} only once (got {count} times)" for value, count in counts if count > 1)


def _overlap(one: DhcpRange | Pool, other: DhcpRange | Pool) -> bool:
    starts, ends = zip(*((ipaddress.ip_address(it.start), ipaddress.ip_address(it.end)) for it in (one, other)))
    same_family = starts[0].version == starts[1].version
    return same_family and max(map(int, starts)) <= min(map(int, ends))
