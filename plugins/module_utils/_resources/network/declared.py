# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module's arguments, read: every value is what it should be, or it is said what is wrong with it."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ansible_collections.nometal.ipi.plugins.module_utils._core import addresses
from ansible_collections.nometal.ipi.plugins.module_utils._core import types as kinds
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import (
    LARGEST_16_BIT_NUMBER,
    LARGEST_NETWORK_MTU,
    SMALLEST_NETWORK_MTU,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.network import DnsHost, Range, Srv, Txt
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.dnsmasq import Pool

DUID_PATTERN = "[0-9a-f]{2}(:[0-9a-f]{2}){2,129}"
SERVICE_PATTERN = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
Read = TypeVar("Read")


@dataclass(frozen=True)
class Machine:
    name: str
    mac: str
    duid: str | None
    ips: tuple[str, ...]


@dataclass(frozen=True)
class Declared:
    interfaces: tuple[ipaddress.IPv4Interface | ipaddress.IPv6Interface, ...]
    mtu: int
    domain: str | None
    ranges: tuple[Range, ...]
    machines: tuple[Machine, ...]
    pools: tuple[Pool, ...]
    known_only: bool
    hosts: tuple[DnsHost, ...]
    wildcards: tuple[tuple[str, str], ...]
    forwarders: tuple[str, ...]
    ntp_servers: tuple[str, ...]
    srv: tuple[Srv, ...]
    txt: tuple[Txt, ...]


@dataclass
class Reader:
    """Collects what is wrong, so that all of it is said at once. What cannot be read has no place in a result."""

    problems: list[str] = field(default_factory=list)

    def read(self, params: dict[str, Any]) -> Declared:
        dhcp, dns = params["dhcp"], params["dns"]
        self._names(params)
        return Declared(
            interfaces=self._each(params["addresses"], "addresses", self._interface),
            mtu=self._number(params["mtu"], "mtu", lowest=SMALLEST_NETWORK_MTU, highest=LARGEST_NETWORK_MTU),
            domain=self._take(kinds.domain_name, params["domain"], "domain") if params["domain"] else None,
            ranges=self._each(dhcp["ranges"], "dhcp.ranges", self._range),
            machines=self._each(dhcp["reservations"], "dhcp.reservations", self._machine),
            pools=self._each(dhcp["pools"], "dhcp.pools", self._pool),
            known_only=dhcp["known_only"],
            hosts=self._each(dns["hosts"], "dns.hosts", self._host),
            wildcards=self._each(dns["wildcards"], "dns.wildcards", self._wildcard),
            forwarders=self._each(dns["forwarders"], "dns.forwarders", self._address),
            ntp_servers=self._each(params["ntp_servers"], "ntp_servers", self._address),
            srv=self._each(dns["records"]["srv"], "dns.records.srv", self._srv),
            txt=self._each(dns["records"]["txt"], "dns.records.txt", self._txt),
        )

    def _take(self, convert: Callable[[str], Any], value: str, at: str) -> str:
        try:
            return str(convert(value))
        except ValueError as error:
            self.problems.append(f"{at} {error}")
            return value

    def _each(self, items: list[Any], at: str, read: Callable[[Any, str], Read]) -> tuple[Read, ...]:
        return tuple(
            read(item, f"{at}[{index}]") for index, item in enumerate(items) if self._is_there(item, f"{at}[{index}]")
        )

    def _is_there(self, item: Any, at: str) -> bool:
        if item is None:
            self.problems.append(f"{at} is empty")
        return item is not None

    def _names(self, params: dict[str, Any]) -> None:
        self._take(kinds.cluster_name, params["owner"], "owner")
        self._take(kinds.interface_name, params["bridge"] or "", "bridge")
        if params["uuid"]:
            self._take(kinds.uuid_text, params["uuid"], "uuid")

    def _address(self, value: str, at: str) -> str:
        return self._take(addresses.address, value, at)

    def _number(self, value: int, at: str, *, lowest: int = 0, highest: int = LARGEST_16_BIT_NUMBER) -> int:
        if not lowest <= value <= highest:
            self.problems.append(f"{at} is {value}; {lowest} to {highest} is right")
        return value

    def _interface(self, item: dict[str, Any], at: str) -> Any:
        known = len(self.problems)
        cidr = self._take(addresses.lab_network, item["cidr"], f"{at}.cidr")
        gateway = self._address(item["gateway"], f"{at}.gateway")
        if len(self.problems) > known:
            return None
        network, own = ipaddress.ip_network(cidr), ipaddress.ip_address(gateway)
        if own not in network or own in (network.network_address, network.broadcast_address):
            self.problems.append(f"{at}.gateway is {gateway}, which no machine in {cidr} can have")
        if item["prefix"] not in (None, network.prefixlen):
            self.problems.append(f"{at}.prefix is {item['prefix']}, but {cidr} has {network.prefixlen}")
        self._family(item, gateway, at)
        return ipaddress.ip_interface(f"{gateway}/{network.prefixlen}")

    def _family(self, item: dict[str, Any], address: str, at: str) -> None:
        family = "ipv6" if ":" in address else "ipv4"
        if item["family"] not in (None, family):
            self.problems.append(f"{at}.family is {item['family']}, but {address} is {family}")

    def _range(self, item: dict[str, Any], at: str) -> Range:
        known = len(self.problems)
        span = Range(*(self._address(item[key], f"{at}.{key}") for key in ("start", "end")))
        if len(self.problems) > known:
            return span
        start, end = ipaddress.ip_address(span.start), ipaddress.ip_address(span.end)
        if start.version != end.version or int(start) > int(end):
            self.problems.append(f"{at} goes from {start} to {end}; the lower address comes first")
        self._family(item, span.start, at)
        return span

    def _machine(self, item: dict[str, Any], at: str) -> Machine:
        return Machine(
            name=self._take(kinds.domain_name, item["name"], f"{at}.name"),
            mac=self._take(kinds.mac_address, item["mac"], f"{at}.mac"),
            duid=self._take(duid, item["duid"], f"{at}.duid") if item["duid"] else None,
            ips=self._each(item["ips"], f"{at}.ips", self._address),
        )

    def _pool(self, item: dict[str, Any], at: str) -> Pool:
        return Pool(
            mac_prefix=self._take(kinds.mac_prefix, item["mac_prefix"], f"{at}.mac_prefix"),
            span=self._range(item, at),
            routes=self._each(item["static_routes"], f"{at}.static_routes", self._route),
        )

    def _route(self, item: dict[str, Any], at: str) -> tuple[str, str]:
        return self._take(addresses.network, item["to"], f"{at}.to"), self._address(item["via"], f"{at}.via")

    def _host(self, item: dict[str, Any], at: str) -> DnsHost:
        ip = self._address(item["ip"], f"{at}.ip")
        return DnsHost(ip, self._each(item["names"], f"{at}.names", self._name))

    def _name(self, value: str, at: str) -> str:
        return self._take(plain_name, value, at)

    def _wildcard(self, item: dict[str, Any], at: str) -> tuple[str, str]:
        return self._take(kinds.domain_name, item["domain"], f"{at}.domain"), self._address(item["ip"], f"{at}.ip")

    def _srv(self, item: dict[str, Any], at: str) -> Srv:
        return Srv(
            domain=self._name(item["domain"], f"{at}.domain"),
            service=self._take(service, item["service"], f"{at}.service"),
            protocol=self._take(service, item["protocol"], f"{at}.protocol"),
            target=self._take(kinds.domain_name, item["target"], f"{at}.target"),
            port=self._number(item["port"], f"{at}.port", lowest=1),
            priority=self._number(item["priority"], f"{at}.priority"),
            weight=self._number(item["weight"], f"{at}.weight"),
        )

    def _txt(self, item: dict[str, Any], at: str) -> Txt:
        value = self._take(kinds.txt_record, item["value"], f"{at}.value")
        # In quotes, since libvirt writes it into dnsmasq's file as it is, where commas would cut it in pieces.
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return Txt(self._name(item["name"], f"{at}.name"), f'"{escaped}"')


def plain_name(value: str) -> str:
    """As a record's, which may have underscores, but of one name alone."""
    if value.startswith("*"):
        raise ValueError(f"is {value!r}; a name without asterisk is right, and wildcards have a list of their own")
    return str(kinds.record_name(value))


def duid(value: str) -> str:
    if not re.fullmatch(DUID_PATTERN, value.lower()):
        raise ValueError(f"is {value!r}; pairs of hex digits are right, such as 00:03:00:01:52:54:00:12:34:56")
    return value.lower()


def service(value: str) -> str:
    if not re.fullmatch(SERVICE_PATTERN, value):
        raise ValueError(f"is {value!r}; a word in lower case is right, such as ldap or tcp, with no underscore")
    return value
