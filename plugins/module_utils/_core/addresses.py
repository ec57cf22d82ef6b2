# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses and networks as a lab_spec writes them, and the few things that ipaddress does not say about them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Address, Network
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import is_list, show
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import Problems
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import UNREADABLE, Text

Addresses = tuple[Address, ...]
"""One address, or one of each family."""

V4, V6 = 4, 6
SHORTEST_PREFIX = {V4: 8, V6: 64}  # dnsmasq serves no IPv6 network larger than a /64
BOTH_FAMILIES = 2
FEWEST_HOST_BITS = 3


def address(value: str) -> Address:
    try:
        parsed = ipaddress.ip_address(value)
    except ValueError:
        raise ValueError(f"is {show(value)}; an IP address is right, such as 192.168.126.5") from None
    if parsed.is_multicast or parsed.is_unspecified or parsed.is_loopback or "%" in value:
        raise ValueError(f"is {show(value)}; the address of a machine is right, such as 192.168.126.5")
    return parsed


def network(value: str) -> Network:
    try:
        parsed = ipaddress.ip_network(value, strict=False)
    except ValueError:
        raise ValueError(f"is {show(value)}; a network is right, such as 192.168.126.0/24") from None
    if "/" not in value:
        raise ValueError(f"is {show(value)}; a network has a prefix length: {value}/{parsed.max_prefixlen - 8}")
    if ipaddress.ip_interface(value).ip != parsed.network_address:
        raise ValueError(f"is {show(value)}, an address in a network; the network itself is {parsed}")
    return parsed


def lab_network(value: str) -> Network:
    parsed = network(value)
    if parsed.is_multicast or parsed.is_loopback or parsed.is_link_local or parsed.is_unspecified:
        raise ValueError(f"is {value}, which no machines can have; one such as 192.168.126.0/24 is right")
    shortest = SHORTEST_PREFIX[parsed.version]
    if parsed.prefixlen < shortest:
        raise ValueError(f"is {value}, too large to be one network; a /{shortest} or smaller is right")
    if parsed.prefixlen > parsed.max_prefixlen - FEWEST_HOST_BITS:
        raise ValueError(
            f"is {value}, too small for any lab; a /{parsed.max_prefixlen - FEWEST_HOST_BITS - 1} is right"
        )
    return parsed


def ipv4_network(value: str) -> Network:
    parsed = lab_network(value)
    if parsed.version != V4:
        raise ValueError(f"is {value}; an IPv4 network is right here, and cidr_v6 is the key for IPv6")
    return parsed


def ipv6_network(value: str) -> Network:
    parsed = lab_network(value)
    if parsed.version != V6:
        raise ValueError(f"is {value}; an IPv6 network is right here, such as fd2e:6f44:5dd8::/64")
    return parsed


@dataclass(frozen=True)
class OneOrTwo:
    """An address, or a list of one per family: most labs have one family and should not have to write lists."""

    label: str = "address, or [IPv4, IPv6]"
    example: str = "192.168.126.5"

    def like(self, example: str) -> OneOrTwo:
        return replace(self, example=example)

    def parse(self, value: object, at: str, problems: Problems) -> Any:
        if not is_list(value) or not isinstance(value, Sequence):
            single = ADDRESS.parse(value, at, problems)
            return single if single is UNREADABLE else (single,)
        if not 1 <= len(value) <= BOTH_FAMILIES:
            problems.add_unknown(at, f"has {len(value)} items; one address, or one of each family, is right")
            return UNREADABLE
        read = [ADDRESS.parse(item, f"{at}[{index}]", problems) for index, item in enumerate(value)]
        if UNREADABLE in read:
            return UNREADABLE
        if len({item.version for item in read}) < len(read):
            problems.add_unknown(at, f"has two addresses of one family; [IPv4, IPv6] or just {read[0]} is right")
            return UNREADABLE
        return tuple(read)


def of_family(addresses: Iterable[Address], family: int) -> Address | None:
    return next((item for item in addresses if item.version == family), None)


def first_host(net: Network) -> Address:
    return net[1]


def last_host(net: Network) -> Address:
    """IPv6 has no broadcast address."""
    return net[-2] if net.version == V4 else net[-1]


def capacity(net: Network) -> int:
    return max(0, int(last_host(net)) - int(net.network_address))


def key_of(item: Network | Address) -> str:
    """Where the specification gives that family its network."""
    return "machine_network.cidr_v6" if item.version == V6 else "machine_network.cidr"


def family_name(family: int) -> str:
    return f"IPv{family}"


@dataclass(frozen=True)
class Span:
    """A range of addresses of one family, both ends included."""

    start: Address
    end: Address

    def __contains__(self, item: Address) -> bool:
        return item.version == self.start.version and int(self.start) <= int(item) <= int(self.end)

    @property
    def size(self) -> int:
        """Not len(), which ends where IPv6 begins."""
        return int(self.end) - int(self.start) + 1

    def __str__(self) -> str:
        return f"{self.start} to {self.end}"

    def overlaps(self, other: Span) -> bool:
        return other.start in self or self.start in other


ADDRESS = Text("address", address, "192.168.126.5")
ADDRESSES = OneOrTwo()
NETWORK = Text("network", network, "10.0.0.0/19")
LAB_NETWORK = Text("network", lab_network, "172.22.0.0/24")
IPV4_NETWORK = Text("IPv4 network", ipv4_network, "192.168.126.0/24")
IPV6_NETWORK = Text("IPv6 network", ipv6_network, "fd2e:6f44:5dd8::/64")
