# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network part of the specification."""

# ruff: noqa: RUF009 - key() is how a field is declared; it makes no shared mutable default
from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.nometal.ipi.plugins.module_utils._core import addresses as net
from ansible_collections.nometal.ipi.plugins.module_utils._core import key_types as types
from ansible_collections.nometal.ipi.plugins.module_utils._core.addresses import Addresses
from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Address, Network
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import (
    HIGHEST_PORT,
    LARGEST_16_BIT_NUMBER,
    LARGEST_LAB_MTU,
    SMALLEST_NETWORK_MTU,
    USUAL_MTU,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.scalars import Choice, Whole, YesNo
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import ListOf, Located, MapOf, Section, key
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import (
    BootstrapAddress,
    Forward,
    ProvisioningMode,
    Topology,
)

DEFAULT_CIDR = "192.168.126.0/24"


@dataclass(frozen=True)
class Vips:
    """The two virtual addresses of the cluster, which OpenShift moves between its nodes. Nothing else may use them."""

    api: Addresses | None = key(net.ADDRESSES, "Where `api.` and `api-int.` point.", derived=".5 in a /24")
    ingress: Addresses | None = key(
        net.ADDRESSES.like("192.168.126.6"), "Where `*.apps.` points.", derived=".6 in a /24"
    )


@dataclass(frozen=True)
class Pool:
    """A range of addresses that DHCP serves."""

    start: Addresses = key(net.ADDRESSES.like("192.168.126.220"), "First address.", required=True)
    end: Addresses = key(net.ADDRESSES.like("192.168.126.239"), "Last address.", required=True)


@dataclass(frozen=True)
class StaticRoute(Located):
    """A route that DHCP serves (option 121)."""

    to: Network = key(net.NETWORK, "Destination.", required=True)
    via: Address = key(net.ADDRESS.like("192.168.126.2"), "Next hop, in the machine network.", required=True)


@dataclass(frozen=True)
class PrefixPool(Located):
    """A range of addresses for MACs with a common prefix only, for VMs that are not known in advance."""

    mac_prefix: str = key(types.MAC_PREFIX, "Prefix of their MACs.", required=True)
    start: Addresses = key(net.ADDRESSES.like("192.168.126.130"), "First address.", required=True)
    end: Addresses = key(net.ADDRESSES.like("192.168.126.135"), "Last address.", required=True)
    static_routes: tuple[StaticRoute, ...] = key(
        ListOf(Section(StaticRoute), at_most=50), "Routes for these VMs alone.", default=[]
    )


@dataclass(frozen=True)
class Reservation(Located):
    """A machine besides the nodes that always gets the same address."""

    name: str = key(types.LABEL, "Its host name in the lab's domain.", required=True)
    mac: str = key(types.MAC, "Its MAC address.", required=True)
    ip: Addresses = key(net.ADDRESSES.like("192.168.126.9"), "Its address.", required=True)


@dataclass(frozen=True)
class Service:
    """Where a service of a `_service._protocol` name is."""

    target: str = key(types.DOMAIN.like("ldap.example.test"), "Host of the service.", required=True)
    port: int = key(Whole(1, HIGHEST_PORT, "port"), "Its port.", required=True)
    priority: int = key(Whole(0, LARGEST_16_BIT_NUMBER), "Lower is used first.", default=0)
    weight: int = key(Whole(0, LARGEST_16_BIT_NUMBER), "Share among equals.", default=0)


@dataclass(frozen=True)
class Record:
    """What the lab's DNS answers for a name. A name without a dot is in the lab's domain."""

    addresses: tuple[Address, ...] = key(
        ListOf(net.ADDRESS, at_most=50), "A and AAAA. `*.name` answers for all below it.", default=[]
    )
    txt: tuple[str, ...] = key(ListOf(types.TXT, at_most=50), "TXT, one per item.", default=[])
    srv: tuple[Service, ...] = key(
        ListOf(Section(Service), at_most=50), "SRV; name it `_ldap._tcp.<domain>`.", default=[]
    )


@dataclass(frozen=True)
class Dns:
    """The lab's DNS server. It has names for api, apps and every node already."""

    forwarders: tuple[Address, ...] = key(
        ListOf(net.ADDRESS.like("192.0.2.53"), at_most=10),
        "Servers asked for all other names.",
        default=[],
        derived="the host's own",
    )
    records: dict[str, Record] = key(
        MapOf(types.RECORD_NAME, Section(Record, may_be_empty=False)), "Further names.", default={}
    )


@dataclass(frozen=True)
class MachineNetwork:
    """The network of the nodes. The host is its gateway, DHCP and DNS server."""

    cidr: Network | None = key(
        net.IPV4_NETWORK, "IPv4 network. Left out beside `cidr_v6`: no IPv4.", derived=DEFAULT_CIDR
    )
    cidr_v6: Network | None = key(net.IPV6_NETWORK, "IPv6 network, alone or for dual stack.", derived="no IPv6")
    gateway: Addresses | None = key(
        net.ADDRESSES.like("192.168.126.1"), "The host's own address in it.", derived="first address"
    )
    forward: Forward = key(
        Choice(tuple(Forward)),
        "How guests reach the outside: behind the host, routed, routed without firewall rules, or not at all.",
        default="nat",
    )
    topology: Topology = key(
        Choice(tuple(Topology)),
        "`veth`: nodes on a plain bridge, which a veth pair joins to the libvirt network. `direct`: on the network.",
        default="veth",
    )
    bridge: str = key(types.INTERFACE, "Bridge that the installer looks for.", default="baremetal")
    shared_lan: bool = key(
        YesNo(),
        "The bridge is the host's own, with a LAN behind it that the lab shares on purpose: DHCP answers the lab's "
        "machines only.",
        default=False,
    )
    vips: Vips = key(Section(Vips), "The cluster's virtual addresses.", default={})
    dhcp_pool: Pool | None = key(Section(Pool), "Range for machines without a reservation.", derived="20 in a /24")
    reservations: tuple[Reservation, ...] = key(
        ListOf(Section(Reservation)), "Machines besides the nodes with fixed addresses.", default=[]
    )
    pools: tuple[PrefixPool, ...] = key(
        ListOf(Section(PrefixPool), at_most=50),
        "Ranges for MACs with a common prefix, with routes of their own.",
        default=[],
    )
    dns: Dns = key(Section(Dns), "Forwarders and further names.", default={})
    ntp_servers: tuple[Address, ...] = key(
        ListOf(net.ADDRESS.like("192.168.126.1"), at_most=10), "Time servers that DHCP serves.", default=[]
    )
    mtu: int = key(Whole(SMALLEST_NETWORK_MTU, LARGEST_LAB_MTU), "MTU of bridges and veth pair.", default=USUAL_MTU)


@dataclass(frozen=True)
class Bootstrap:
    """The VM that the installer makes for the first part of an installation."""

    address: BootstrapAddress = key(
        Choice(tuple(BootstrapAddress)),
        "`pool`: one of a few reserved for its MAC prefix. `reserved`: one address, by a MAC that the installer sets. "
        "`static`: set in the VM, without DHCP.",
        default="pool",
    )
    ip: Addresses | None = key(
        net.ADDRESSES.like("192.168.126.9"), "Its address (not with `pool`).", derived="free address"
    )
    mac: str | None = key(types.MAC, "Its MAC (only with `reserved`).", derived="from the lab's name")
    gateway: Address | None = key(
        net.ADDRESS.like("192.168.126.1"), "Its gateway (only with `static`).", derived="the lab's gateway"
    )
    dns: Address | None = key(
        net.ADDRESS.like("192.168.126.1"), "Its DNS server (only with `static`).", derived="the lab's DNS"
    )


@dataclass(frozen=True)
class ProvisioningNetwork:
    """A second network that nodes boot from by PXE. By default they boot from virtual media."""

    mode: ProvisioningMode = key(
        Choice(tuple(ProvisioningMode)), "Whether OpenShift serves DHCP in it.", default="managed"
    )
    cidr: Network = key(net.LAB_NETWORK, "Its network.", default="172.22.0.0/24")
    bridge: str = key(types.INTERFACE, "Its bridge.", default="provisioning")
    host_ip: Address | None = key(net.ADDRESS.like("172.22.0.1"), "The host's address in it.", derived="first address")
    bootstrap_ip: Address | None = key(
        net.ADDRESS.like("172.22.0.2"), "The bootstrap VM's address in it.", derived="second address"
    )
    cluster_ip: Address | None = key(
        net.ADDRESS.like("172.22.0.3"), "The cluster's address in it.", derived="third address"
    )
    dhcp_range: Pool | None = key(Section(Pool), "Range that OpenShift's DHCP serves (managed).", derived="the rest")
