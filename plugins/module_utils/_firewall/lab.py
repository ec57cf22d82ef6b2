# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping

FORWARD_MODES = ("nat", "route", "open", "isolated")
LONGEST_TAG = 20  # with what follows it, this is as long as iptables lets a chain's name be
HASH_LENGTH = 6


@dataclass(frozen=True)
class Address:
    """What the host has in a network, and the network: all in canonical spelling, as rules are read back."""

    family: str
    gateway: str
    cidr: str


@dataclass(frozen=True)
class Network:
    bridge: str
    forward: str
    addresses: tuple[Address, ...]


@dataclass(frozen=True)
class Lab:
    """What the firewall has to know of a lab. `ports` are ("tcp", 8000): the BMCs'."""

    owner: str
    networks: tuple[Network, ...] = ()
    plain_bridges: tuple[str, ...] = ()
    ports: tuple[tuple[str, int], ...] = ()

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
    def families(self) -> list[str]:
        return sorted({address.family for address in self.addresses})

    @property
    def addresses(self) -> tuple[Address, ...]:
        return tuple(address for network in self.networks for address in network.addresses)


def lab_from(params: Mapping[str, Any]) -> Lab:
    """What is written into scripts and rules is checked here, to the letter."""
    if not re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", params["owner"]):
        raise OperatorError(f"owner: {params['owner']} is no name of a lab: lower case letters, digits, inner hyphens.")
    networks = tuple(_network(f"networks[{at}]", item) for at, item in enumerate(params["networks"]))
    bridges = [_bridge(f"bridges[{at}]", name) for at, name in enumerate(params["bridges"])]
    return Lab(
        owner=params["owner"],
        networks=networks,
        plain_bridges=tuple(name for name in bridges if name not in {network.bridge for network in networks}),
        ports=tuple(_port(f"ports[{at}]", item) for at, item in enumerate(params["ports"])),
    )


def _network(key: str, given: Mapping[str, Any]) -> Network:
    forward = given.get("forward")
    if forward not in FORWARD_MODES:
        raise OperatorError(f"{key}.forward: is {forward}; one of {', '.join(FORWARD_MODES)} is right.")
    addresses = given.get("addresses", [])
    return Network(
        bridge=_bridge(f"{key}.bridge", given.get("bridge")),
        forward=forward,
        addresses=tuple(_address(f"{key}.addresses[{at}]", item) for at, item in enumerate(addresses)),
    )


def _address(key: str, given: Mapping[str, Any]) -> Address:
    try:
        gateway, network = ip_address(str(given.get("gateway"))), ip_network(str(given.get("cidr")), strict=False)
    except ValueError as error:
        raise OperatorError(f"{key}: {error}; a gateway and the cidr of its network are right.") from error
    if gateway.version != network.version or gateway not in network:
        raise OperatorError(f"{key}.gateway: {gateway} is not in {network}.")
    return Address(family=f"ipv{gateway.version}", gateway=str(gateway), cidr=str(network))


def _bridge(key: str, name: object) -> str:
    if not isinstance(name, str) or not re.fullmatch("[A-Za-z0-9][-A-Za-z0-9_.]{0,14}", name):
        raise OperatorError(f"{key}: {name} is no name of a bridge: 15 letters, digits and - _ . at most.")
    return name


def _port(key: str, given: Mapping[str, Any]) -> tuple[str, int]:
    highest = 65535
    if not 1 <= given["port"] <= highest:
        raise OperatorError(f"{key}.port: {given['port']} is no port: 1 to {highest} are.")
    return given["protocol"], given["port"]
