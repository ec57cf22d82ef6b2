# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any, TypeVar

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import HIGHEST_PORT
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import cluster_name, interface_name
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Forward

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LONGEST_TAG = 20  # with what follows it, this is as long as iptables lets a chain's name be
HASH_LENGTH = 6
Read = TypeVar("Read")


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
    known: tuple[str, ...] | None = None
    """MAC addresses of the only machines that it serves, where others are on its LAN, too."""


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
    def bridges_of_its_own(self) -> tuple[str, ...]:
        return tuple(name for name in self.bridges if not (self.shares_lan and name in self.plain_bridges))

    @property
    def shares_lan(self) -> bool:
        """Its plain bridges are somebody else's, with machines of others on them."""
        return any(network.known is not None for network in self.networks)

    @property
    def families(self) -> list[str]:
        return sorted({address.family for address in self.addresses})

    @property
    def addresses(self) -> tuple[Address, ...]:
        return tuple(address for network in self.networks for address in network.addresses)


def lab_from(params: Mapping[str, Any]) -> Lab:
    """Or everything that is wrong with it, in one message. What is written into scripts and rules is checked here, to
    the letter."""
    reader = Reader()
    lab = reader.read(params)
    if reader.problems:
        listed = "\n".join(f"- {problem}" for problem in reader.problems)
        raise OperatorError(f"lab {params['owner']} cannot be like this:\n{listed}")
    return lab


@dataclass
class Reader:
    """Collects what is wrong, so that all of it is said at once. What could not be read has no place in a result."""

    problems: list[str] = field(default_factory=list)

    def read(self, params: Mapping[str, Any]) -> Lab:
        owner = params["owner"]
        try:
            cluster_name(owner)
        except ValueError as error:
            self.problems.append(f"owner: {error}")
        networks = self._each(params["networks"], "networks", self._network)
        bridges = self._each(params["bridges"], "bridges", self._bridge)
        return Lab(
            owner=owner,
            networks=networks,
            plain_bridges=tuple(name for name in bridges if name not in {network.bridge for network in networks}),
            ports=self._each(params["ports"], "ports", self._port),
        )

    def _each(self, items: Sequence[Any], at: str, read: Callable[[str, Any], Read]) -> tuple[Read, ...]:
        return tuple(read(f"{at}[{index}]", item) for index, item in enumerate(items))

    def _network(self, at: str, given: Mapping[str, Any]) -> Network:
        return Network(
            bridge=self._bridge(f"{at}.bridge", given.get("bridge")),
            forward=self._forward(f"{at}.forward", given.get("forward")),
            addresses=self._each(given.get("addresses") or [], f"{at}.addresses", self._address),
            known=self._known(f"{at}.dhcp", given.get("dhcp") or {}),
        )

    def _known(self, at: str, dhcp: Mapping[str, Any]) -> tuple[str, ...] | None:
        if not dhcp.get("known_only"):
            return None
        macs = [str(item.get("mac")).lower() for item in dhcp.get("reservations") or []]
        for mac in macs:
            if not re.fullmatch("[0-9a-f]{2}(:[0-9a-f]{2}){5}", mac):
                self.problems.append(f"{at}.reservations: {mac} is no MAC address, such as 52:54:00:12:34:56")
        return tuple(sorted(set(macs)))

    def _forward(self, at: str, mode: Any) -> str:
        if mode not in tuple(Forward):
            self.problems.append(f"{at}: {_found(mode)}; one of {', '.join(Forward)} is right")
        return str(mode)

    def _address(self, at: str, given: Mapping[str, Any]) -> Address:
        gateway = self._taken(f"{at}.gateway", given.get("gateway"), ip_address)
        network = self._taken(f"{at}.cidr", given.get("cidr"), partial(ip_network, strict=False))
        if gateway and network and gateway not in network:
            self.problems.append(f"{at}.gateway: {gateway} is not in {network}")
        return Address(family=f"ipv{gateway.version if gateway else 4}", gateway=str(gateway), cidr=str(network))

    def _taken(self, at: str, value: Any, convert: Callable[[str], Any]) -> Any:
        try:
            return convert(str(value))
        except ValueError:
            wanted = "an address" if convert is ip_address else "a network such as 192.168.126.0/24"
            self.problems.append(f"{at}: {_found(value)}; {wanted} is right")
            return None

    def _bridge(self, at: str, name: Any) -> str:
        try:
            return interface_name(name if isinstance(name, str) else "")
        except ValueError as error:
            self.problems.append(f"{at}: {'is missing' if name is None else error}")
            return str(name)

    def _port(self, at: str, given: Mapping[str, Any]) -> tuple[str, int]:
        if not 1 <= given["port"] <= HIGHEST_PORT:
            self.problems.append(f"{at}.port: {given['port']} is no port: 1 to {HIGHEST_PORT} are")
        return given["protocol"], given["port"]


def _found(value: Any) -> str:
    return "is missing" if value is None else f"is {value}"
