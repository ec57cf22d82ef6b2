# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of the lab model that an installation depends on, as the rehearsal tests them."""

# ruff: noqa: RUF009 - key() is how a field is declared; it makes no shared mutable default
from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core import key_types as types
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import HIGHEST_PORT, LARGEST_MTU, SMALLEST_MTU
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import LARGEST_INTEGER
from ansible_collections.nometal.ipi.plugins.module_utils._core.scalars import Choice, FreeMapping, Whole, YesNo
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import ListOf, Section, called, key
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Port
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import (
    WAYS_OUT,
    BmcProtocol,
    BootstrapAddress,
    Firmware,
    Forward,
    NetworkRole,
)

PORT = 6180
"""Port on which the installer's bootstrap VM serves images over HTTP."""

IPS = ListOf(types.IP)
COUNT = Whole(0, LARGEST_INTEGER)
MTU = Whole(SMALLEST_MTU, LARGEST_MTU)


def _part(declared: type) -> Section:
    """Of the model, whose other keys do not matter here."""
    return Section(declared, ignores_others=True)


@dataclass(frozen=True)
class Address:
    cidr: str = key(types.WORDS, "The network.", required=True)
    family: str = key(Choice(("ipv4", "ipv6")), "Its family.", required=True)
    prefix: int = key(Whole(0, ipaddress.IPV6LENGTH), "The length of its prefix.", required=True)
    gateway: str | None = key(types.IP, "The host's own address in it.")


@dataclass(frozen=True)
class Route:
    to: str = key(types.WORDS, "Destination.", required=True)
    via: str = key(types.IP, "Next hop.", required=True)


@dataclass(frozen=True)
class Pool:
    mac_prefix: str = key(types.MAC_PREFIX, "How MAC addresses begin.", required=True)
    start: str = key(types.IP, "First address.", required=True)
    end: str = key(types.IP, "Last address.", required=True)
    static_routes: tuple[Route, ...] = key(ListOf(_part(Route)), "Routes beside the default route.", default=[])


@dataclass(frozen=True)
class Dhcp:
    pools: tuple[Pool, ...] = key(ListOf(_part(Pool)), "Addresses by how MAC addresses begin.", default=[])


@dataclass(frozen=True)
class DnsHost:
    ip: str = key(types.IP, "The address.", required=True)
    names: tuple[str, ...] = key(ListOf(types.WORDS, at_least=1), "Its names.", required=True)


@dataclass(frozen=True)
class Wildcard:
    domain: str = key(types.WORDS, "The domain.", required=True)
    ip: str = key(types.IP, "The address of every name below it.", required=True)


@dataclass(frozen=True)
class Dns:
    hosts: tuple[DnsHost, ...] = key(ListOf(_part(DnsHost)), "Names of addresses.", default=[])
    wildcards: tuple[Wildcard, ...] = key(ListOf(_part(Wildcard)), "Domains of one address.", default=[])


@dataclass(frozen=True)
class Network:
    name: str = key(types.WORDS, "Its name in libvirt.", required=True)
    role: str = key(types.WORDS, "What it is for.", required=True)
    bridge: str = key(types.WORDS, "Its bridge.", required=True)
    mtu: int = key(MTU, "Its MTU.", required=True)
    forward: Forward = key(Choice(tuple(Forward)), "How guests reach the outside.", required=True)
    addresses: tuple[Address, ...] = key(ListOf(_part(Address)), "One per family.", default=[])
    dhcp: Dhcp = key(_part(Dhcp), "Who gets which address.", default={})
    dns: Dns = key(_part(Dns), "What its DNS server answers.", default={})


@dataclass(frozen=True)
class VethEnd:
    name: str = key(types.WORDS, "Its name.", required=True)
    bridge: str | None = key(types.WORDS, "The bridge that it goes to.")


@dataclass(frozen=True)
class VethPair:
    name: str = key(types.WORDS, "Its name.", required=True)
    a: VethEnd = key(_part(VethEnd), "The end at a libvirt network's bridge.", required=True)
    b: VethEnd = key(_part(VethEnd), "The end at the bridge of the nodes.", required=True)
    mtu: int | None = key(MTU, "MTU of both ends.")
    state: str = key(Choice(("present", "absent")), "Whether it is to be there.", default="present")

    @property
    def ends(self) -> tuple[VethEnd, VethEnd]:
        return self.a, self.b


@dataclass(frozen=True)
class Vips:
    api: tuple[str, ...] = key(IPS, "Of the API.", default=[])
    ingress: tuple[str, ...] = key(IPS, "Of what runs on the cluster.", default=[])


@dataclass(frozen=True)
class Bootstrap:
    """How the installer's bootstrap VM gets its address."""

    mode: BootstrapAddress = key(Choice(tuple(BootstrapAddress)), "How.", default="pool")
    ips: tuple[str, ...] = key(IPS, "Its fixed addresses.", default=[])
    mac: str | None = key(types.MAC, "MAC address of its card.")
    gateway: str | None = key(types.IP, "Its gateway, if that is not the host.")


@dataclass(frozen=True)
class Span:
    start: str = key(types.IP, "First address.", required=True)
    end: str = key(types.IP, "Last address.", required=True)


@dataclass(frozen=True)
class Provisioning:
    """The installer's part in the network from which nodes boot."""

    cidr: str = key(types.WORDS, "The network.", required=True)
    cluster_ip: str = key(types.IP, "Of the cluster's own provisioning service.", required=True)
    bootstrap_ip: str = key(types.IP, "Of the bootstrap VM.", required=True)
    dhcp_range: Span | None = key(_part(Span), "Addresses for nodes; none if others serve DHCP.")


@dataclass(frozen=True)
class Bmc:
    """How all BMCs are reached."""

    protocol: BmcProtocol = key(Choice(tuple(BmcProtocol)), "Their protocol.", default="redfish-virtualmedia")
    tls: bool = key(YesNo(), "Whether Redfish is by https.", default=True)
    endpoints: tuple[Port, ...] = key(ListOf(_part(Port)), "Their addresses and ports.", default=[])


@dataclass(frozen=True)
class Nic:
    mac: str = key(types.MAC, "Its MAC address.", required=True)
    role: str | None = key(types.WORDS, "The network that it is for.")


@dataclass(frozen=True)
class Disk:
    size_bytes: int = key(COUNT, "Its size.", required=True)
    serial: str | None = key(types.WORDS, "Its serial number.")


@dataclass(frozen=True)
class NodeBmc:
    host: str = key(types.IP, "Its address.", required=True)
    port: int = key(Whole(1, HIGHEST_PORT, "port"), "Its port.", required=True)


@dataclass(frozen=True)
class Node:
    name: str = key(types.WORDS, "Its name.", required=True)
    vm_name: str = key(types.WORDS, "The name of its VM.", required=True)
    uuid: str = key(types.UUID, "The UUID of its VM.", required=True)
    fqdn: str = key(types.WORDS, "Its full name.", required=True)
    firmware: Firmware = key(Choice(tuple(Firmware)), "Its firmware.", required=True)
    vcpus: int = key(COUNT, "Its virtual CPUs.", required=True)
    memory_mib: int = key(COUNT, "Its memory.", required=True)
    boot_mac: str = key(types.MAC, "MAC address that it boots from.", required=True)
    bmc: NodeBmc = key(_part(NodeBmc), "Where its BMC is.", required=True)
    ips: tuple[str, ...] = key(IPS, "Its addresses.", default=[])
    nics: tuple[Nic, ...] = key(ListOf(_part(Nic)), "Its network cards.", default=[])
    disks: tuple[Disk, ...] = key(ListOf(_part(Disk)), "Its disks.", default=[])
    root_device_hints: Mapping[str, Any] | None = key(FreeMapping("mapping"), "How the installer knows its root disk.")


@dataclass(frozen=True)
class Lab:
    name: str = called("lab", key(types.CLUSTER_NAME, "The lab's name.", required=True))
    domain: str = key(types.TEXT, "Its domain.", default="")
    bridge: str = key(types.WORDS, "The bridge that the installer looks for.", default="baremetal")
    networks: tuple[Network, ...] = key(ListOf(_part(Network)), "Its libvirt networks.", default=[])
    given_pairs: tuple[VethPair, ...] = called(
        "veth_pairs", key(ListOf(_part(VethPair)), "What ties them to bridges.", default=[])
    )
    vips: Vips = key(_part(Vips), "The cluster's virtual addresses.", default={})
    bootstrap: Bootstrap = key(_part(Bootstrap), "How the bootstrap VM gets its address.", default={})
    nodes: tuple[Node, ...] = key(ListOf(_part(Node)), "Its nodes on this host.", default=[])
    bmc: Bmc = key(_part(Bmc), "How BMCs are reached.", default={})
    provisioning: Provisioning | None = called(
        "provisioning_network", key(_part(Provisioning), "The installer's part in the provisioning network.")
    )
    ntp_servers: tuple[str, ...] = key(ListOf(types.WORDS), "Its time servers.", default=[])

    @property
    def veth_pairs(self) -> tuple[VethPair, ...]:
        return tuple(pair for pair in self.given_pairs if pair.state == "present")

    @property
    def machine_network(self) -> Network:
        return next(network for network in self.networks if network.role == NetworkRole.MACHINE)

    @property
    def provisioning_network(self) -> Network | None:
        return next((network for network in self.networks if network.role == NetworkRole.PROVISIONING), None)

    @property
    def families(self) -> list[str]:
        return [address.family for address in self.machine_network.addresses]

    @property
    def gateways(self) -> list[str]:
        """The host's addresses in the machine network: name servers and, unless isolated, routers."""
        return [address.gateway for address in self.machine_network.addresses if address.gateway]

    @property
    def bootstrap_gateways(self) -> list[str]:
        """Of the bootstrap VM's families, which a static address determines."""
        if self.bootstrap.mode != BootstrapAddress.STATIC:
            return self.gateways
        is_v6 = {":" in ip for ip in self.bootstrap.ips}
        return [gateway for gateway in self.gateways if (":" in gateway) in is_v6]

    @property
    def bootstrap_families(self) -> list[str]:
        return ["ipv6" if ":" in gateway else "ipv4" for gateway in self.bootstrap_gateways]

    @property
    def has_way_out(self) -> bool:
        return self.machine_network.forward in WAYS_OUT

    @property
    def boots_by_network(self) -> bool:
        return not self.bmc.protocol.has_virtual_media

    @property
    def all_vips(self) -> list[str]:
        return list(dict.fromkeys([*self.vips.api, *self.vips.ingress]))

    @property
    def urls(self) -> list[str]:
        return [url_of(address) for address in self.vips.api]

    @property
    def bootstrap_domain(self) -> str:
        """Like the name of the installer's own, without its five random letters."""
        return f"{self.name}-rehearsal-bootstrap"

    def names(self) -> dict[str, list[str]]:
        """All names that an installation resolves, with their addresses."""
        found: dict[str, list[str]] = {}
        for host in self.machine_network.dns.hosts:
            for name in host.names:
                found.setdefault(name, []).append(host.ip)
        for wildcard in self.machine_network.dns.wildcards:
            found.setdefault(f"rehearsal.{wildcard.domain}", []).append(wildcard.ip)
        return {name: sorted(addresses) for name, addresses in found.items()}

    def reverse_names(self) -> dict[str, str]:
        return {host.ip: host.names[0] for host in self.machine_network.dns.hosts}

    def bootstrap_places(self) -> list[tuple[str, str]]:
        """First and last possible address of the bootstrap VM, one pair per family."""
        if self.bootstrap.mode != BootstrapAddress.POOL:
            return [(address, address) for address in self.bootstrap.ips]
        return [(pool.start, pool.end) for pool in self._bootstrap_pools()]

    def bootstrap_routes(self) -> list[list[str]]:
        """Destination and gateway of the classless static routes of its pool."""
        pools = self._bootstrap_pools() if self.bootstrap.mode == BootstrapAddress.POOL else ()
        return [[route.to, route.via] for pool in pools for route in pool.static_routes]

    def _bootstrap_pools(self) -> Iterator[Pool]:
        return (pool for pool in self.machine_network.dhcp.pools if is_bootstrap_prefix(pool.mac_prefix))

    def node(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)


def is_bootstrap_prefix(prefix: str) -> bool:
    return prefix.lower() == "52:54:00"


def url_of(address: str) -> str:
    return f"http://[{address}]:{PORT}" if ":" in address else f"http://{address}:{PORT}"


def is_between(address: str, start: str, end: str) -> bool:
    here, first, last = (ipaddress.ip_address(each) for each in (address, start, end))
    return here.version == first.version and first.packed <= here.packed <= last.packed
