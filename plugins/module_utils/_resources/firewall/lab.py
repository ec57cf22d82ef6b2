# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the firewall has to know of a lab."""

# ruff: noqa: RUF009 - key() is how a field is declared; it makes no shared mutable default
from __future__ import annotations

import hashlib
from dataclasses import dataclass
from ipaddress import ip_address, ip_network

from ansible_collections.nometal.ipi.plugins.module_utils._core import key_types as types
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import HIGHEST_PORT
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import InvalidDataError, must_be
from ansible_collections.nometal.ipi.plugins.module_utils._core.scalars import Choice, Whole, YesNo
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import ListOf, Section, Text, called, key
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import subnet
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Forward

LONGEST_TAG = 20  # with what follows it, this is as long as iptables lets a chain's name be
HASH_LENGTH = 6
CIDR = Text("network", lambda value: str(subnet(value)), "192.168.126.0/24")


def family_of(cidr: str) -> str:
    return f"ipv{ip_network(cidr).version}"


@dataclass(frozen=True)
class Address:
    """What the host has in a network, and the network: all in canonical spelling, as rules are read back."""

    gateway: str = key(types.IP, "The host's own address.", required=True)
    cidr: str = key(CIDR, "The network.", required=True)

    def __post_init__(self) -> None:
        if ip_address(self.gateway) not in ip_network(self.cidr):
            raise InvalidDataError("gateway", must_be(f"in {self.cidr}", self.gateway))

    @property
    def family(self) -> str:
        return family_of(self.cidr)


@dataclass(frozen=True)
class Reservation:
    mac: str = key(types.MAC, "The machine's MAC address.", required=True)


@dataclass(frozen=True)
class Dhcp:
    known_only: bool = key(YesNo(), "Whether only machines with a reservation are served.", default=False)
    reservations: tuple[Reservation, ...] = key(
        ListOf(Section(Reservation, ignores_others=True)), "Machines with fixed addresses.", default=[]
    )


@dataclass(frozen=True)
class Network:
    bridge: str = key(types.INTERFACE, "Its bridge.", required=True)
    forward: Forward = key(Choice(tuple(Forward)), "How guests reach the outside.", required=True)
    addresses: tuple[Address, ...] = key(ListOf(Section(Address, ignores_others=True)), "One per family.", default=[])
    dhcp: Dhcp = key(Section(Dhcp, ignores_others=True), "Whom it serves.", default={})

    @property
    def known(self) -> tuple[str, ...] | None:
        """MAC addresses of the only machines that it serves, where others are on its LAN, too."""
        macs = {machine.mac for machine in self.dhcp.reservations}
        return tuple(sorted(macs)) if self.dhcp.known_only else None


@dataclass(frozen=True)
class Service:
    port: int = key(Whole(1, HIGHEST_PORT, "port"), "Its port.", required=True)
    protocol: str = key(Choice(("tcp", "udp")), "Its protocol.", default="tcp")


@dataclass(frozen=True)
class Lab:
    owner: str = called("lab", key(types.CLUSTER_NAME, "The lab.", required=True), aliases=("owner",))
    networks: tuple[Network, ...] = key(
        ListOf(Section(Network, ignores_others=True)), "Its libvirt networks.", default=[]
    )
    given_bridges: tuple[str, ...] = called("bridges", key(ListOf(types.INTERFACE), "Further bridges.", default=[]))
    services: tuple[Service, ...] = called("ports", key(ListOf(Section(Service)), "What BMCs listen on.", default=[]))
    clients: tuple[str, ...] = key(ListOf(CIDR), "Networks outside the lab that reach the BMCs, too.", default=[])

    @property
    def plain_bridges(self) -> tuple[str, ...]:
        """Those that are no libvirt network's."""
        of_networks = {network.bridge for network in self.networks}
        return tuple(name for name in self.given_bridges if name not in of_networks)

    @property
    def ports(self) -> tuple[tuple[str, int], ...]:
        """("tcp", 8000)"""
        return tuple((service.protocol, service.port) for service in self.services)

    def clients_of(self, address: Address) -> tuple[str, ...]:
        return tuple(client for client in self.clients if family_of(client) == address.family)

    @property
    def tag(self) -> str:
        """With it begins the name of each of the lab's chains. No owner has an underscore, so no two labs meet."""
        tag = f"nm-{self.owner}"
        if len(tag) <= LONGEST_TAG:
            return tag
        digest = hashlib.sha256(self.owner.encode()).hexdigest()[:HASH_LENGTH]
        return f"{tag[: LONGEST_TAG - HASH_LENGTH - 1]}_{digest}"

    @property
    def bridges(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*(network.bridge for network in self.networks), *self.plain_bridges]))

    @property
    def bridges_of_its_own(self) -> tuple[str, ...]:
        return tuple(name for name in self.bridges if not (self.shares_lan and name in self.plain_bridges))

    @property
    def shares_lan(self) -> bool:
        """Its plain bridges belong to others, with machines of theirs on them."""
        return any(network.known is not None for network in self.networks)

    @property
    def families(self) -> list[str]:
        return sorted({address.family for address in self.addresses})

    @property
    def addresses(self) -> tuple[Address, ...]:
        return tuple(address for network in self.networks for address in network.addresses)
