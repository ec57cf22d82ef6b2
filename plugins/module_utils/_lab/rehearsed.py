# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of the lab model that an installation depends on, as the rehearsal tests them."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import (
    WAYS_OUT,
    BmcProtocol,
    BootstrapAddress,
    NetworkRole,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PORT = 6180
"""Port on which the installer's bootstrap VM serves images over HTTP."""


@dataclass(frozen=True)
class Lab:
    """From the lab model. Dictionaries are the model's own."""

    name: str
    domain: str
    bridge: str
    networks: Sequence[Mapping[str, Any]]
    vips: Mapping[str, Sequence[str]]
    bootstrap: Mapping[str, Any]
    nodes: Sequence[Mapping[str, Any]]
    protocol: str
    tls: bool
    veth_pairs: Sequence[Mapping[str, Any]] = ()
    provisioning: Mapping[str, Any] | None = None
    """The bootstrap VM's settings in the provisioning network."""
    endpoints: Sequence[Mapping[str, Any]] = ()
    """Addresses and ports of the BMCs."""
    ntp_servers: Sequence[str] = ()

    @property
    def machine_network(self) -> Mapping[str, Any]:
        return next(network for network in self.networks if network["role"] == NetworkRole.MACHINE)

    @property
    def provisioning_network(self) -> Mapping[str, Any] | None:
        return next((network for network in self.networks if network["role"] == NetworkRole.PROVISIONING), None)

    @property
    def families(self) -> list[str]:
        return [address["family"] for address in self.machine_network["addresses"]]

    @property
    def gateways(self) -> list[str]:
        """The host's addresses in the machine network: name servers and, unless isolated, routers."""
        return [address["gateway"] for address in self.machine_network["addresses"]]

    @property
    def bootstrap_gateways(self) -> list[str]:
        """Of the bootstrap VM's families, which a static address determines."""
        if self.bootstrap["mode"] != BootstrapAddress.STATIC:
            return self.gateways
        is_v6 = {":" in ip for ip in self.bootstrap["ips"]}
        return [gateway for gateway in self.gateways if (":" in gateway) in is_v6]

    @property
    def bootstrap_families(self) -> list[str]:
        return ["ipv6" if ":" in gateway else "ipv4" for gateway in self.bootstrap_gateways]

    @property
    def has_way_out(self) -> bool:
        return self.machine_network["forward"] in WAYS_OUT

    @property
    def boots_by_network(self) -> bool:
        return self.protocol != BmcProtocol.VIRTUAL_MEDIA

    @property
    def all_vips(self) -> list[str]:
        return list(dict.fromkeys([*self.vips["api"], *self.vips["ingress"]]))

    @property
    def urls(self) -> list[str]:
        return [url_of(address) for address in self.vips["api"]]

    @property
    def bootstrap_domain(self) -> str:
        """Like the name of the installer's own, without its five random letters."""
        return f"{self.name}-rehearsal-bootstrap"

    def names(self) -> dict[str, list[str]]:
        """All names that an installation resolves, with their addresses."""
        found: dict[str, list[str]] = {}
        for host in self.machine_network["dns"]["hosts"]:
            for name in host["names"]:
                found.setdefault(name, []).append(host["ip"])
        for wildcard in self.machine_network["dns"]["wildcards"]:
            found.setdefault(f"rehearsal.{wildcard['domain']}", []).append(wildcard["ip"])
        return {name: sorted(addresses) for name, addresses in found.items()}

    def reverse_names(self) -> dict[str, str]:
        return {host["ip"]: host["names"][0] for host in self.machine_network["dns"]["hosts"]}

    def bootstrap_places(self) -> list[tuple[str, str]]:
        """First and last possible address of the bootstrap VM, one pair per family."""
        if self.bootstrap["mode"] != BootstrapAddress.POOL:
            return [(address, address) for address in self.bootstrap["ips"]]
        return [(pool["start"], pool["end"]) for pool in self._bootstrap_pools()]

    def bootstrap_routes(self) -> list[list[str]]:
        """Destination and gateway of the classless static routes of its pool."""
        pools = self._bootstrap_pools() if self.bootstrap["mode"] == BootstrapAddress.POOL else ()
        return [[route["to"], route["via"]] for pool in pools for route in pool["static_routes"]]

    def _bootstrap_pools(self) -> Iterator[Mapping[str, Any]]:
        return (pool for pool in self.machine_network["dhcp"]["pools"] if is_bootstrap_prefix(pool["mac_prefix"]))

    def node(self, name: str) -> Mapping[str, Any]:
        return next(node for node in self.nodes if node["name"] == name)


def is_bootstrap_prefix(prefix: str) -> bool:
    return prefix.lower() == "52:54:00"


def url_of(address: str) -> str:
    return f"http://[{address}]:{PORT}" if ":" in address else f"http://{address}:{PORT}"


def is_between(address: str, start: str, end: str) -> bool:
    here, first, last = (ipaddress.ip_address(each) for each in (address, start, end))
    return here.version == first.version and first.packed <= here.packed <= last.packed
