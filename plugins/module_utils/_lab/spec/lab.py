# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The declaration of lab_spec, with defaults as an operator writes them.

Validation, docs/lab_spec.md and docs/lab_spec.schema.json are made from it.
"""

# ruff: noqa: RUF009 - key() is how a field is declared; it makes no shared mutable default
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core import addresses as net
from ansible_collections.nometal.ipi.plugins.module_utils._core import key_types as types
from ansible_collections.nometal.ipi.plugins.module_utils._core.addresses import Addresses
from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Network
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import (
    HIGHEST_PORT,
    LEAST_DISK,
    LEAST_MEMORY_MIB,
    LOWEST_UNPRIVILEGED_PORT,
    MOST_DISK,
    MOST_DISKS,
    MOST_MEMORY_MIB,
    MOST_RESTART_SECONDS,
    MOST_VCPUS,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.scalars import Choice, FreeMapping, Whole, YesNo
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import ListOf, Located, MapOf, Section, key
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import MIB
from ansible_collections.nometal.ipi.plugins.module_utils._lab.faults import Faults
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.install import Install
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.network import (
    Bootstrap,
    MachineNetwork,
    ProvisioningNetwork,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.root_device_hints import RootDeviceHints
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import (
    BmcProtocol,
    DiskBus,
    DiskFormat,
    Firmware,
    PowerRestore,
)

LARGEST_GROUP = 250

PORT = Whole(LOWEST_UNPRIVILEGED_PORT, HIGHEST_PORT, "port")
MEMORY = types.size_between(LEAST_MEMORY_MIB * MIB, MOST_MEMORY_MIB * MIB)
DISK_SIZE = types.size_between(LEAST_DISK, MOST_DISK)
VCPUS = Whole(1, MOST_VCPUS)


@dataclass(frozen=True)
class StoragePool:
    """Where the host stores the nodes' disks."""

    path: str | None = key(
        types.DIRECTORY,
        "Directory for them alone, missing or empty at first. It must not be one of the system, such as /home or /srv.",
        derived="`/var/lib/libvirt/images/nometal-<lab>`",
    )


@dataclass(frozen=True)
class Disk(Located):
    """A disk of a node: a file that grows as it is written to."""

    size: int = key(DISK_SIZE, "Size.", required=True)
    bus: DiskBus = key(Choice(tuple(DiskBus)), "How the guest sees it.", default="scsi")
    format: DiskFormat = key(Choice(tuple(DiskFormat)), "How the host stores it.", default="qcow2")
    serial: str | None = key(types.SERIAL, "Serial number.", derived="from the node's name")
    rotational: bool | None = key(YesNo(), "Spinning disk (scsi and sata only).", derived="false")


DISKS = ListOf(Section(Disk), 1, MOST_DISKS)


@dataclass(frozen=True)
class Override:
    """Settings of one node. Every derived value can be pinned here."""

    ip: Addresses | None = key(net.ADDRESSES.like("192.168.126.31"), "Address.", derived="by role and number")
    mac: str | None = key(types.MAC, "MAC in the machine network.", derived="from the node's name")
    provisioning_mac: str | None = key(types.MAC, "MAC in the provisioning network.", derived="from the node's name")
    uuid: str | None = key(types.UUID, "UUID of the VM.", derived="from the node's name")
    hypervisor: str | None = key(types.INVENTORY_NAME, "Host of the VM.", derived="that of `hypervisors`")
    vcpus: int | None = key(VCPUS, "Virtual CPUs.", derived="of its group")
    memory: int | None = key(MEMORY, "Memory.", derived="of its group")
    disks: tuple[Disk, ...] | None = key(DISKS, "Disks, all of them.", derived="of its group")
    firmware: Firmware | None = key(Choice(tuple(Firmware)), "Firmware.", derived="of the lab")
    bmc_port: int | None = key(PORT, "Port of its BMC (ipmi only).", derived="`bmc.port` plus its number")
    root_device_hints: RootDeviceHints | None = key(
        Section(RootDeviceHints, may_be_empty=False), "Disk to install on.", derived="first disk, by serial"
    )
    network_config: dict[str, Any] | None = key(
        FreeMapping("nmstate mapping"), "Network configuration of the installed node."
    )
    remove: bool = key(
        YesNo(),
        "Leave this number out, of a worker or spare: `count` is reached by higher numbers.",
        default=False,
    )


@dataclass(frozen=True)
class Group:
    """Machines with the same role."""

    count: int = key(Whole(0, LARGEST_GROUP), "How many.", default=0)
    vcpus: int = key(VCPUS, "Virtual CPUs of each.", default=2)
    memory: int = key(MEMORY, "Memory of each.", default="8GiB")
    disks: tuple[Disk, ...] = key(DISKS, "Disks of each.", default=[{"size": "120GiB"}])


@dataclass(frozen=True)
class ControlPlane(Group):
    """With `install` three or more; or two, with an arbiter or with fencing. Any number without."""

    count: int = key(Whole(0, LARGEST_GROUP), "How many.", default=3)
    vcpus: int = key(VCPUS, "Virtual CPUs of each.", default=4)
    memory: int = key(MEMORY, "Memory of each.", default="16GiB")
    fencing: bool = key(YesNo(), "Two nodes that fence each other by their BMCs.", default=False)


class Arbiters(Group):
    """A small third member of etcd, beside a control plane of two: one or none with `install`."""


class Workers(Group):
    """Nodes that only carry workloads. With none, the control plane carries them."""


@dataclass(frozen=True)
class Spares(Group):
    """VMs with a BMC that the installer does not know, for scaling out or for failure tests."""

    register: bool = key(
        YesNo(),
        "Whether an installed cluster gets them as available hosts, which no Machine takes. Otherwise their manifests "
        "are in `spares.yaml`, beside the kubeconfig.",
        default=False,
    )


@dataclass(frozen=True)
class Nodes:
    """The machines. Their names are `control-plane-0`, `arbiter-0`, `worker-0`, `spare-0` and so on."""

    control_plane: ControlPlane = key(Section(ControlPlane), "Nodes that run the cluster.", default={})
    arbiters: Arbiters = key(Section(Arbiters), "The arbiter of a two-node control plane.", default={})
    workers: Workers = key(Section(Workers), "Nodes that carry workloads.", default={})
    spares: Spares = key(Section(Spares), "Machines in reserve.", default={})
    overrides: dict[str, Override] = key(
        MapOf(types.LABEL, Section(Override)), "Settings of single nodes, by node name.", default={}
    )


@dataclass(frozen=True)
class Bmc:
    """How to reach the nodes' management controllers."""

    protocol: BmcProtocol = key(
        Choice(tuple(BmcProtocol)),
        "By virtual media no other network is needed; `redfish` and `ipmi` boot by PXE, from a provisioning network.",
        default="redfish-virtualmedia",
    )
    port: int | None = key(PORT, "Port; the first of one per node for ipmi.", derived="8000, or 6230 for ipmi")
    tls: bool | None = key(YesNo(), "Whether to use TLS.", derived="true; false for ipmi, which has none")
    media_networks: tuple[Network, ...] | None = key(
        ListOf(net.NETWORK),
        "Where BMCs fetch images from the hypervisor's own addresses, which are closed to them otherwise.",
        derived="the machine network",
    )
    clients: tuple[Network, ...] = key(
        ListOf(net.NETWORK.like("198.51.100.0/24"), at_most=50),
        "Networks outside the lab from which the BMCs can be reached, too: of an installer that runs elsewhere.",
        default=[],
    )
    restart_timeout: int = key(
        Whole(1, MOST_RESTART_SECONDS),
        "Seconds that a guest has for a graceful restart, by Redfish, before it is reset.",
        default=120,
    )
    power_restore: PowerRestore | None = key(
        Choice(tuple(PowerRestore)),
        "What becomes of a VM when its host has started, after a reboot or a power cut. `LastState` switches it on "
        "again if it was on.",
        derived="`LastState` with `install`, else `AlwaysOff`",
    )
    faults: Faults = key(Section(Faults), "Faults on purpose, for developers of what controls BMCs.", default={})


@dataclass(frozen=True)
class LabSpec:
    """One lab: the VMs of a cluster with their networks, storage and BMCs."""

    name: str = key(
        types.CLUSTER_NAME,
        "Name of the cluster, mark of ownership and prefix of everything made on the host.",
        default="lab",
        required=True,
    )
    base_domain: str = key(types.DOMAIN, "The cluster's domain is `<name>.<base_domain>`.", default="lab.example.test")
    hypervisors: tuple[str, ...] = key(
        ListOf(types.INVENTORY_NAME, 1, 100),
        "Host of the nodes, by inventory name: one, as a lab on more than one hypervisor is not supported yet.",
        derived="the inventory's group `hypervisors`",
        default=["hypervisor"],
    )
    machine_network: MachineNetwork = key(Section(MachineNetwork), "The network of the nodes.", default={})
    bootstrap: Bootstrap = key(Section(Bootstrap), "Address of the installer's bootstrap VM.", default={})
    provisioning_network: ProvisioningNetwork | None = key(
        Section(ProvisioningNetwork), "PXE network.", derived="none: the installer's `Disabled`"
    )
    storage_pool: StoragePool = key(Section(StoragePool), "Where the nodes' disks are stored.", default={})
    nodes: Nodes = key(Section(Nodes), "The machines.", default={})
    firmware: Firmware = key(Choice(tuple(Firmware)), "Firmware of the nodes.", default="uefi")
    bmc: Bmc = key(Section(Bmc), "Management controllers.", default={})
    install: Install | None = key(Section(Install), "The real installation.", derived="none: ends with the rehearsal")


LAB_SPEC = Section(LabSpec)
