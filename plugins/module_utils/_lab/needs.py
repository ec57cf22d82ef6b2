# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: RUF009 - key() is how a field is declared; it makes no shared mutable default
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core import key_types as types
from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Network as IpNetwork
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import HIGHEST_PORT, LONGEST_INFRA_NAME
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import LARGEST_INTEGER
from ansible_collections.nometal.ipi.plugins.module_utils._core.scalars import Choice, FreeMapping, Whole, YesNo
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import ListOf, Section, called, key
from ansible_collections.nometal.ipi.plugins.module_utils._core.sizes import GIB
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import from_dict
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import POOL_DIRECTORY, Identity

# The installer's bootstrap VM: fixed in the installer.
BOOTSTRAP_MEMORY_MIB = 6 * 1024
BOOTSTRAP_VCPUS = 4

DNS_PORT = 53  # libvirt serves it on the host's own address in each network


@dataclass(frozen=True)
class NetworkAddress:
    """What the host has in a network of the lab, and where it serves DNS."""

    cidr: IpNetwork = key(types.SUBNET, "The network.", required=True)
    gateway: str | None = key(types.IP, "The host's own address in it.")


@dataclass(frozen=True)
class Network:
    name: str = key(types.WORDS, "Its name in libvirt.", required=True)
    uuid: str = key(
        types.WORDS, "Its UUID. A network of the same name with another one is not the lab's.", required=True
    )
    bridge: str = key(types.WORDS, "Its bridge.", required=True)
    addresses: tuple[NetworkAddress, ...] = key(
        ListOf(Section(NetworkAddress, ignores_others=True)), "One per family.", default=[]
    )

    @property
    def subnets(self) -> tuple[IpNetwork, ...]:
        return tuple(address.cidr for address in self.addresses)

    @property
    def gateways(self) -> tuple[str, ...]:
        return tuple(address.gateway for address in self.addresses if address.gateway)


@dataclass(frozen=True)
class Vm:
    """A VM of the lab; others of the same name have another UUID."""

    name: str = called("vm_name", key(types.WORDS, "Its name in libvirt.", required=True))
    uuid: str = key(types.WORDS, "Its UUID.", required=True)


@dataclass(frozen=True)
class Pool:
    name: str = key(types.TEXT, "Its name.", default="")
    uuid: str = key(types.TEXT, "Its UUID; others of the same name have another.", default="")
    path: str = key(types.TEXT, "Its directory, which need not exist yet.", default=POOL_DIRECTORY)


@dataclass(frozen=True)
class Port:
    address: str = key(types.IP, "The address, which the host need not have yet.", required=True)
    number: int = called("port", key(Whole(1, HIGHEST_PORT, "port"), "The port.", required=True))
    protocol: str = key(Choice(("tcp", "udp")), "The protocol.", default="tcp")

    def __str__(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.number}/{self.protocol}"


COUNT = Whole(0, LARGEST_INTEGER)
NAMES = ListOf(types.TEXT)


@dataclass(frozen=True)
class Needs:
    """What the lab needs of its host, and what it already owns there."""

    name: str = called("lab", key(types.TEXT, "The lab's name.", default=""), aliases=("name",))
    domain: str = key(types.TEXT, "The lab's domain.", default="")
    install: bool = key(YesNo(), "Whether a real installation is configured.", default=False)
    installed: bool = key(YesNo(), "Whether its cluster is there, so that no bootstrap VM comes.", default=False)
    prepared: bool = key(YesNo(), "Whether the host has been prepared.", default=False)
    memory_mib: int = key(COUNT, "Memory of this lab's VMs on this host, in MiB.", default=0)
    vcpus: int = key(COUNT, "Virtual CPUs of this lab's VMs on this host.", default=0)
    disk_bytes: int = key(COUNT, "Full size of the disks of this lab's VMs on this host, in bytes.", default=0)
    pool: Pool = called("storage_pool", key(Section(Pool), "The lab's storage pool.", default={}))
    networks: tuple[Network, ...] = key(
        ListOf(Section(Network, ignores_others=True)), "The lab's libvirt networks.", default=[]
    )
    vms: tuple[Vm, ...] = key(ListOf(Section(Vm, ignores_others=True)), "The lab's VMs on this host.", default=[])
    bridges: tuple[str, ...] = key(NAMES, "Bridges that the lab uses beside those of its networks.", default=[])
    shared_bridges: tuple[str, ...] = key(NAMES, "Bridges that may have other links on them.", default=[])
    own_links: tuple[str, ...] = key(NAMES, "Network links of this lab.", default=[])
    own_processes: tuple[str, ...] = key(NAMES, "What this lab's processes are known by.", default=[])
    ports: tuple[Port, ...] = key(ListOf(Section(Port)), "Ports of this lab's services.", default=[])
    qemu: str = key(replace(types.TEXT, argument="path"), "The qemu program that the KVM check runs.", default="")
    model: Mapping[str, Any] = key(FreeMapping("mapping"), "The lab's model.", default={})

    @property
    def pool_path(self) -> str:
        return self.pool.path

    @property
    def pool_uuids(self) -> tuple[str, str]:
        """Of the lab's disks, and of its virtual media."""
        return self.pool.uuid, Identity(self.name).uuid_of("media-pool")

    @property
    def awaits_bootstrap(self) -> bool:
        """Whether the installer's bootstrap VM is to come."""
        return self.install and not self.installed

    @property
    def all_memory_mib(self) -> int:
        return self.memory_mib + (BOOTSTRAP_MEMORY_MIB if self.awaits_bootstrap else 0)

    @property
    def all_vcpus(self) -> int:
        return self.vcpus + (BOOTSTRAP_VCPUS if self.awaits_bootstrap else 0)

    def is_bootstrap(self, name: str) -> bool:
        """Whether the installer gave this name to the bootstrap VM, or its storage, of this lab."""
        infra = re.escape(self.name[:LONGEST_INFRA_NAME])
        return bool(self.name) and bool(re.fullmatch(f"{infra}-[a-z0-9]{{5}}-bootstrap", name))

    def is_own_vm(self, name: str) -> bool:
        return self.is_bootstrap(name) or any(vm.name == name for vm in self.vms)


def needs_from(params: Mapping[str, Any]) -> Needs:
    needs = from_dict(Needs, params)
    return replace(needs, ports=(*needs.ports, *_dns_ports(needs.networks)))


def _dns_ports(networks: tuple[Network, ...]) -> list[Port]:
    gateways = [gateway for network in networks for gateway in network.gateways]
    return [Port(gateway, DNS_PORT, protocol) for gateway in gateways for protocol in ("tcp", "udp")]


REHEARSAL_LEAST = 1 * GIB
