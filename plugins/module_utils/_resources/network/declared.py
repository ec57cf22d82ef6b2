# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A network as a module is given it. Addresses are text in canonical spelling, as libvirt and dnsmasq are given it."""

# ruff: noqa: RUF009 - key() is how a field is declared; it makes no shared mutable default
from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, replace
from typing import Union

from ansible_collections.nometal.ipi.plugins.module_utils._core import addresses
from ansible_collections.nometal.ipi.plugins.module_utils._core import key_types as types
from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Network as IpNetwork
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import (
    HIGHEST_PORT,
    LARGEST_16_BIT_NUMBER,
    LARGEST_DHCP_RANGE,
    LARGEST_NETWORK_MTU,
    SMALLEST_NETWORK_MTU,
    USUAL_MTU,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import InvalidDataError, must_be
from ansible_collections.nometal.ipi.plugins.module_utils._core.scalars import Choice, Whole, YesNo
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import (
    ListOf,
    Section,
    Text,
    ValueType,
    called,
    key,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import record_name
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Forward

Interface = Union[ipaddress.IPv4Interface, ipaddress.IPv6Interface]

NAME_PATTERN = "[A-Za-z0-9][-A-Za-z0-9_.]{0,99}"
DUID_PATTERN = "[0-9a-f]{2}(:[0-9a-f]{2}){2,129}"
SERVICE_PATTERN = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
PAIRS_OF_MAC = 6


def _name(value: str) -> str:
    if not re.fullmatch(NAME_PATTERN, value):
        raise ValueError(must_be("1 to 100 letters, digits, dots, hyphens and underscores", value))
    return value


def _plain_name(value: str) -> str:
    """As a record's, which may have underscores, but of one name alone."""
    if value.startswith("*"):
        raise ValueError(must_be("a name without asterisk: wildcards have a list of their own", value))
    return record_name(value)


def _duid(value: str) -> str:
    if not re.fullmatch(DUID_PATTERN, value.lower()):
        raise ValueError(must_be("pairs of hex digits, such as 00:03:00:01:52:54:00:12:34:56", value))
    return value.lower()


def _service(value: str) -> str:
    if not re.fullmatch(SERVICE_PATTERN, value):
        raise ValueError(must_be("a word in lower case with no underscore, such as ldap or tcp", value))
    return value


def _or_none(text: Text) -> Text:
    """Templates write a value that is not there as an empty text."""
    return replace(text, convert=lambda value: text.convert(value) if value else None)


def _each(item: ValueType) -> ListOf:
    return ListOf(item, at_most=LARGEST_DHCP_RANGE)


NAME = Text("name", _name, "nometal-demo")
IP = Text("IP address", lambda value: str(addresses.address(value)), "192.168.126.5")
DESTINATION = Text("network", lambda value: str(addresses.network(value)), "10.0.0.0/19")
HOST_NAME = Text("DNS name", _plain_name, "mirror.example.test")
DUID = Text("DUID", _duid, "00:03:00:01:52:54:00:12:34:56")
SERVICE = Text("service", _service, "ldap")
FAMILY = Choice(("ipv4", "ipv6"))
NUMBER = Whole(0, LARGEST_16_BIT_NUMBER)


def _refuse_other_family(family: str | None, address: str) -> None:
    found = f"ipv{ipaddress.ip_address(address).version}"
    if family not in (None, found):
        raise InvalidDataError("family", must_be(f"{found}, as {address} is", family))


def _refuse_no_range(start: str, end: str, family: str | None) -> None:
    first, last = ipaddress.ip_address(start), ipaddress.ip_address(end)
    if first.version != last.version or int(first) > int(last):
        raise InvalidDataError("end", must_be(f"{start} or a higher address of its family", end))
    _refuse_other_family(family, start)


@dataclass(frozen=True)
class Subnet:
    cidr: IpNetwork = key(addresses.LAB_NETWORK, "The subnet.", required=True)
    gateway: str = key(IP, "The host's own address in it.", required=True)
    prefix: int | None = key(Whole(0, ipaddress.IPV6LENGTH), "It follows from the subnet.")
    family: str | None = key(FAMILY, "It follows from the subnet.")

    def __post_init__(self) -> None:
        own = ipaddress.ip_address(self.gateway)
        if own not in self.cidr or own in (self.cidr.network_address, self.cidr.broadcast_address):
            raise InvalidDataError("gateway", must_be(f"the address of a machine in {self.cidr}", self.gateway))
        if self.prefix not in (None, self.cidr.prefixlen):
            raise InvalidDataError("prefix", must_be(f"{self.cidr.prefixlen}, as {self.cidr} has", self.prefix))
        _refuse_other_family(self.family, self.gateway)

    @property
    def interface(self) -> Interface:
        return ipaddress.ip_interface(f"{self.gateway}/{self.cidr.prefixlen}")


@dataclass(frozen=True)
class DhcpRange:
    start: str = key(IP, "First address.", required=True)
    end: str = key(IP, "Last address.", required=True)
    family: str | None = key(FAMILY, "It follows from the addresses.")

    def __post_init__(self) -> None:
        _refuse_no_range(self.start, self.end, self.family)


@dataclass(frozen=True)
class Machine:
    name: str = key(types.DOMAIN, "Its host name.", required=True)
    mac: str = key(types.MAC, "Its MAC address.", required=True)
    ips: tuple[str, ...] = key(ListOf(IP), "Its addresses, one of a family.", required=True)
    duid: str | None = key(_or_none(DUID), "Its DUID, by which DHCPv6 knows it.")
    fqdn: str | None = key(types.TEXT, "Its full name, which DHCP has no use for.")


@dataclass(frozen=True)
class Route:
    to: str = key(DESTINATION, "Destination.", required=True)
    via: str = key(IP, "Next hop.", required=True)


@dataclass(frozen=True)
class Pool:
    """Addresses for machines that are only known by how their MACs begin."""

    mac_prefix: str = key(types.MAC_PREFIX, "How they begin.", required=True)
    start: str = key(IP, "First address.", required=True)
    end: str = key(IP, "Last address.", required=True)
    family: str | None = key(FAMILY, "It follows from the addresses.")
    static_routes: tuple[Route, ...] = key(_each(Section(Route)), "Routes beside the default route.", default=[])

    def __post_init__(self) -> None:
        _refuse_no_range(self.start, self.end, self.family)

    @property
    def tag(self) -> str:
        return f"pool-{self.mac_prefix.replace(':', '')}"

    @property
    def mac_pattern(self) -> str:
        pairs = self.mac_prefix.split(":")
        return ":".join([*pairs, *["*"] * (PAIRS_OF_MAC - len(pairs))])


@dataclass(frozen=True)
class Dhcp:
    ranges: tuple[DhcpRange, ...] = key(_each(Section(DhcpRange)), "Addresses for any machine.", default=[])
    reservations: tuple[Machine, ...] = key(_each(Section(Machine)), "Machines with fixed addresses.", default=[])
    known_only: bool = key(YesNo(), "Whether only machines with a reservation are served.", default=False)
    pools: tuple[Pool, ...] = key(_each(Section(Pool)), "Addresses by how MAC addresses begin.", default=[])


@dataclass(frozen=True)
class Host:
    ip: str = key(IP, "The address.", required=True)
    names: tuple[str, ...] = key(_each(HOST_NAME), "All its names.", required=True)


@dataclass(frozen=True)
class Wildcard:
    domain: str = key(types.DOMAIN, "The domain.", required=True)
    ip: str = key(IP, "The address of every name below it.", required=True)


@dataclass(frozen=True)
class Service:
    service: str = key(SERVICE, "The service.", required=True)
    protocol: str = key(SERVICE.like("tcp"), "The protocol.", required=True)
    domain: str = key(HOST_NAME, "The domain that has the service.", required=True)
    target: str = key(types.DOMAIN, "The host that serves.", required=True)
    port: int = key(Whole(1, HIGHEST_PORT), "The port.", required=True)
    priority: int = key(NUMBER, "Lower is asked first.", default=0)
    weight: int = key(NUMBER, "Share among equals.", default=0)


@dataclass(frozen=True)
class NamedText:
    name: str = key(HOST_NAME, "The name that has the text.", required=True)
    value: str = key(types.TXT, "The text.", required=True)


@dataclass(frozen=True)
class Records:
    srv: tuple[Service, ...] = key(_each(Section(Service)), "Where services are.", default=[])
    txt: tuple[NamedText, ...] = key(_each(Section(NamedText)), "Texts.", default=[])


@dataclass(frozen=True)
class Dns:
    hosts: tuple[Host, ...] = key(_each(Section(Host)), "Names of addresses.", default=[])
    wildcards: tuple[Wildcard, ...] = key(_each(Section(Wildcard)), "Domains of one address.", default=[])
    forwarders: tuple[str, ...] = key(ListOf(IP), "Servers asked for all other names.", default=[])
    records: Records = key(Section(Records), "Further records.", default={})


@dataclass(frozen=True)
class Declared:
    name: str = key(NAME, "Its name.", required=True)
    owner: str = called("lab", key(types.CLUSTER_NAME, "Whose it is.", required=True), aliases=("owner",))
    bridge: str = key(types.INTERFACE, "Its bridge.", required=True)
    uuid: str | None = key(_or_none(types.UUID), "Its UUID, when it is made.")
    forward: Forward = key(Choice(tuple(Forward)), "How guests reach the outside.", default="nat")
    mtu: int = key(Whole(SMALLEST_NETWORK_MTU, LARGEST_NETWORK_MTU), "MTU of the bridge.", default=USUAL_MTU)
    domain: str | None = key(_or_none(types.DOMAIN), "Its domain.")
    autostart: bool = key(YesNo(), "Whether it starts with the host.", default=True)
    addresses: tuple[Subnet, ...] = key(ListOf(Section(Subnet)), "Its subnets, one of a family.", default=[])
    dhcp: Dhcp = key(Section(Dhcp), "Who gets which address.", default={})
    dns: Dns = key(Section(Dns), "What its DNS server answers.", default={})
    ntp_servers: tuple[str, ...] = key(ListOf(IP), "Time servers that DHCP hands out.", default=[])

    @property
    def interfaces(self) -> tuple[Interface, ...]:
        return tuple(subnet.interface for subnet in self.addresses)


@dataclass(frozen=True)
class Removed:
    """Networks that are to be gone: one, or all of the owner."""

    owner: str = called("lab", key(types.CLUSTER_NAME, "Whose they are.", required=True), aliases=("owner",))
    name: str | None = key(NAME, "The one.")
