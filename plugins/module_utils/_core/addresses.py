# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses and networks in a lab_spec, with what the module ipaddress lacks."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Address, Network
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import got, is_list, must_be
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
        raise ValueError(must_be("an IP address, such as 192.168.126.5", value)) from None
    if parsed.is_multicast or parsed.is_unspecified or parsed.is_loopback or "%" in value:
        raise ValueError(must_be("the address of a machine, such as 192.168.126.5", value))
    return parsed


def network(value: str) -> Network:
    try:
        parsed = ipaddress.ip_network(value, strict=False)
    except ValueError:
        raise ValueError(must_be("a network, such as 192.168.126.0/24", value)) from None
    if "/" not in value:
        prefix = f"a network with a prefix length, such as {value}/{parsed.max_prefixlen - 8}"
        raise ValueError(must_be(prefix, value))
    if ipaddress.ip_interface(value).ip != parsed.network_address:
        raise ValueError(must_be(f"a network, not an address in it: {parsed}", value))
    return parsed


def lab_network(value: str) -> Network:
    parsed = network(value)
    if parsed.is_multicast or parsed.is_loopback or parsed.is_link_local or parsed.is_unspecified:
        raise ValueError(must_be("a network for machines, such as 192.168.126.0/24", parsed))
    shortest = SHORTEST_PREFIX[parsed.version]
    if parsed.prefixlen < shortest:
        raise ValueError(must_be(f"a /{shortest} or smaller", parsed))
    if parsed.prefixlen > parsed.max_prefixlen - FEWEST_HOST_BITS:
        raise ValueError(must_be(f"a /{parsed.max_prefixlen - FEWEST_HOST_BITS - 1} or larger", parsed))
    return parsed


def ipv4_network(value: str) -> Network:
    parsed = lab_network(value)
    if parsed.version != V4:
        raise ValueError(must_be("an IPv4 network; the key for IPv6 is cidr_v6", parsed))
    return parsed


def ipv6_network(value: str) -> Network:
    parsed = lab_network(value)
    if parsed.version != V6:
        raise ValueError(must_be("an IPv6 network, such as fd2e:6f44:5dd8::/64", parsed))
    return parsed


@dataclass(frozen=True)
class OneOrTwo:
    """An address, or a list of one per family, so that a lab of one family needs no list."""

    argument: ClassVar[str] = "raw"
    label: str = "address, or [IPv4, IPv6]"
    example: str = "192.168.126.5"

    def like(self, example: str) -> OneOrTwo:
        return replace(self, example=example)

    def parse(self, value: object, at: str, problems: Problems) -> Any:
        if not is_list(value) or not isinstance(value, Sequence):
            single = ADDRESS.parse(value, at, problems)
            return single if single is UNREADABLE else (single,)
        if not 1 <= len(value) <= BOTH_FAMILIES:
            text = f"must be one address, or one of each family {got(len(value))}"
            problems.add_unknown("schema.items", at, text)
            return UNREADABLE
        read = [ADDRESS.parse(item, f"{at}[{index}]", problems) for index, item in enumerate(value)]
        if UNREADABLE in read:
            return UNREADABLE
        if len({item.version for item in read}) < len(read):
            text = must_be("[IPv4, IPv6] or one address, not two of one family", f"{read[0]}, {read[1]}")
            problems.add_unknown("schema.family-twice", at, text)
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
    """The key that gives the family its network."""
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
        """len() would fail for the sizes of IPv6 ranges."""
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
