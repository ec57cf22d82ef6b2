# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Network as IpNetwork
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import HIGHEST_PORT, LONGEST_INFRA_NAME
from ansible_collections.nometal.ipi.plugins.module_utils._core.sizes import GIB
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import Identity

# The installer's bootstrap VM: fixed in the installer.
BOOTSTRAP_MEMORY_MIB = 6 * 1024
BOOTSTRAP_VCPUS = 4

DNS_PORT = 53  # libvirt serves it on the host's own address in each network
TAKEN_AS_GIVEN = ("name", "domain", "install", "prepared", "memory_mib", "vcpus", "disk_bytes", "qemu", "model")


@dataclass(frozen=True)
class Network:
    name: str
    uuid: str
    bridge: str
    subnets: tuple[IpNetwork, ...]
    gateways: tuple[str, ...] = ()


@dataclass(frozen=True)
class Named:
    """A libvirt object of the lab; others of the same name have another UUID."""

    name: str
    uuid: str


@dataclass(frozen=True)
class Port:
    address: str
    number: int
    protocol: str

    def __str__(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.number}/{self.protocol}"


@dataclass(frozen=True)
class Needs:
    """What the lab needs of its host, and what it already owns there."""

    name: str = ""
    domain: str = ""
    install: bool = False
    prepared: bool = False
    memory_mib: int = 0
    vcpus: int = 0
    disk_bytes: int = 0
    pool: Named = Named("", "")
    pool_path: str = "/var/lib/libvirt/images"
    networks: tuple[Network, ...] = ()
    vms: tuple[Named, ...] = ()
    bridges: tuple[str, ...] = ()
    shared_bridges: tuple[str, ...] = ()
    own_links: tuple[str, ...] = ()
    own_processes: tuple[str, ...] = ()
    ports: tuple[Port, ...] = ()
    qemu: str = ""
    model: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pool_uuids(self) -> tuple[str, str]:
        """Of the lab's disks, and of its virtual media."""
        return self.pool.uuid, Identity(self.name).uuid_of("media-pool")

    @property
    def all_memory_mib(self) -> int:
        return self.memory_mib + (BOOTSTRAP_MEMORY_MIB if self.install else 0)

    @property
    def all_vcpus(self) -> int:
        return self.vcpus + (BOOTSTRAP_VCPUS if self.install else 0)

    def is_bootstrap(self, name: str) -> bool:
        """Whether the installer gave this name to the bootstrap VM, or its storage, of this lab."""
        infra = re.escape(self.name[:LONGEST_INFRA_NAME])
        return bool(self.name) and bool(re.fullmatch(f"{infra}-[a-z0-9]{{5}}-bootstrap", name))

    def is_own_vm(self, name: str) -> bool:
        return self.is_bootstrap(name) or any(vm.name == name for vm in self.vms)


def needs_from(params: Mapping[str, Any]) -> Needs:
    networks = tuple(_network(item, f"networks[{at}]") for at, item in enumerate(params["networks"]))
    ports = [_port(item, f"ports[{at}]") for at, item in enumerate(params["ports"])]
    pool = params["storage_pool"]
    return Needs(
        **{key: params[key] for key in TAKEN_AS_GIVEN},
        bridges=tuple(params["bridges"]),
        shared_bridges=tuple(params["shared_bridges"]),
        own_links=tuple(params["own_links"]),
        own_processes=tuple(params["own_processes"]),
        pool=Named(pool["name"], pool["uuid"]),
        pool_path=pool["path"],
        networks=networks,
        vms=tuple(_vm(item, f"vms[{at}]") for at, item in enumerate(params["vms"])),
        ports=(*ports, *_dns_ports(networks)),
    )


def _network(item: Mapping[str, Any], where: str) -> Network:
    addresses = item.get("addresses") or []
    if not isinstance(addresses, list):
        raise OperatorError(f"{where}: addresses is not a list")
    return Network(
        name=_text(item, "name", where),
        uuid=_text(item, "uuid", where),
        bridge=_text(item, "bridge", where),
        subnets=tuple(_subnet(_text(address, "cidr", where), where) for address in addresses),
        gateways=tuple(_address(address["gateway"], where) for address in addresses if address.get("gateway")),
    )


def _vm(item: Mapping[str, Any], where: str) -> Named:
    return Named(_text(item, "vm_name", where), _text(item, "uuid", where))


def _port(item: Mapping[str, Any], where: str) -> Port:
    if not 0 < item["port"] <= HIGHEST_PORT:
        raise OperatorError(f"{where}: port {item['port']} is not between 1 and {HIGHEST_PORT}")
    return Port(_address(item["address"], where), item["port"], item["protocol"])


def _dns_ports(networks: tuple[Network, ...]) -> list[Port]:
    gateways = [gateway for network in networks for gateway in network.gateways]
    return [Port(gateway, DNS_PORT, protocol) for gateway in gateways for protocol in ("tcp", "udp")]


def _subnet(cidr: str, where: str) -> IpNetwork:
    try:
        return ipaddress.ip_network(cidr, strict=False)
    except ValueError as error:
        raise OperatorError(f"{where}: cidr {cidr!r} is not a network such as 192.168.126.0/24") from error


def _address(text: str, where: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError as error:
        raise OperatorError(f"{where}: address {text!r} is not an IP address") from error


def _text(item: Mapping[str, Any], key: str, where: str) -> str:
    value = item.get(key) if isinstance(item, Mapping) else None
    if not value:
        raise OperatorError(f"{where}: {key} is missing")
    return str(value)


REHEARSAL_LEAST = 1 * GIB
