# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs as module bmh_vm is given them. Pure."""

# ruff: noqa: RUF009 - key() is how a field is declared; it makes no shared mutable default
from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core import key_types as types
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import (
    HIGHEST_PORT,
    LEAST_DISK,
    LEAST_MEMORY_MIB,
    LONGEST_VM_NAME,
    MOST_DISK,
    MOST_DISKS,
    MOST_MEMORY_MIB,
    MOST_NICS,
    MOST_VCPUS,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import must_be
from ansible_collections.nometal.ipi.plugins.module_utils._core.scalars import Choice, FreeMapping, Whole, YesNo
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import (
    ListOf,
    Located,
    Section,
    Text,
    called,
    key,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import to_dict
from ansible_collections.nometal.ipi.plugins.module_utils._lab import vm as lab_vm
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.root_device_hints import RootDeviceHints
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import (
    DiskBus,
    DiskFormat,
    Firmware,
)
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.state import console_of


def _matching(pattern: str, what: str, label: str, example: str) -> Text:
    def convert(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(must_be(what, value))
        return value

    return Text(label, convert, example)


FILE_NAME = _matching(
    rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_VM_NAME - 1}}}",
    f"up to {LONGEST_VM_NAME} letters, digits, dots, hyphens and underscores, the first a letter or digit",
    "name",
    "demo-worker-0",
)
POOL = _matching(
    r"(?!\.)[^/\x00-\x1f]{1,200}", "the name of a storage pool, such as nometal-demo", "name", "nometal-demo"
)
NETWORK = _matching(
    r"[^/\x00-\x1f]{1,200}", "the name of a libvirt network, such as nometal-demo", "name", "nometal-demo"
)
MACHINE = _matching(
    r"q35|pc-q35-[A-Za-z0-9._]+",
    "q35 or a version of it such as pc-q35-7.2, which have a SATA drive for the BMC's media",
    "machine type",
    "q35",
)
URL = _matching(r"[a-z][-+.a-z0-9]*://[!-~]+", "a URL, such as ipmi://192.168.126.1:6230", "URL", "ipmi://192.0.2.1")
PASSED = "It has no meaning here, and may be given as well."


@dataclass(frozen=True)
class Disk(Located):
    # With a default, so that a disk of an invalid size keeps its number, after which it is named.
    size_bytes: int = key(Whole(LEAST_DISK, MOST_DISK), "Its size.", required=True, default=LEAST_DISK)
    name: str | None = key(FILE_NAME, "Name of the volume.")
    format: DiskFormat = key(Choice(tuple(DiskFormat)), "Format of the volume.", default="qcow2")
    bus: DiskBus = key(Choice(tuple(DiskBus)), "How the guest sees it.", default="scsi")
    serial: str | None = key(types.SERIAL, "Its serial number.")
    rotational: bool | None = key(YesNo(), "Whether it says that it rotates.")


@dataclass(frozen=True)
class Nic(Located):
    mac: str = key(types.MAC, "Its MAC address.", required=True)
    network: str | None = key(NETWORK, "libvirt network that it is plugged into.")
    bridge: str | None = key(types.INTERFACE, "Bridge that it is plugged into.")
    model: str = key(Choice(("virtio", "e1000e")), "Its model.", default="virtio")
    boot_order: int | None = key(Whole(1, MOST_NICS), "Its position among the cards to boot from.")
    role: str | None = key(types.TEXT, PASSED)


@dataclass(frozen=True)
class Bmc:
    protocol: str | None = key(types.WORDS, PASSED)
    host: str | None = key(types.WORDS, PASSED)
    port: int | None = key(Whole(1, HIGHEST_PORT), PASSED)
    address: str | None = key(URL, "Its URL.")


@dataclass(frozen=True)
class Vm(Located):
    """To be removed, it needs its name alone."""

    vm_name: str = key(FILE_NAME, "Its name.", required=True)
    name: str | None = key(types.DOMAIN, "Name of the host that it stands for.")
    uuid: str | None = key(types.UUID, "Its UUID.")
    vcpus: int | None = key(Whole(1, MOST_VCPUS), "Virtual CPUs.")
    memory_mib: int | None = key(Whole(LEAST_MEMORY_MIB, MOST_MEMORY_MIB), "Memory in MiB.")
    cpu_mode: str = key(
        Choice(("auto", "host-passthrough", "host-model", "maximum")), "What CPU the guest sees.", default="auto"
    )
    machine: str = key(MACHINE, "Machine type.", default="q35")
    domain_type: str = key(Choice(("auto", "kvm", "qemu")), "How it is virtualised.", default="auto")
    firmware: Firmware = key(Choice(tuple(Firmware)), "Its firmware.", default="uefi")
    tpm: bool = key(YesNo(), "Whether it has a TPM.", default=False)
    disks: tuple[Disk, ...] = key(ListOf(Section(Disk), at_most=MOST_DISKS), "The first is the root disk.", default=[])
    nics: tuple[Nic, ...] = key(ListOf(Section(Nic), at_most=MOST_NICS), "Its network cards.", default=[])
    given_boot_mac: str | None = called("boot_mac", key(types.MAC, "MAC address that the host boots from."))
    given_hints: RootDeviceHints | None = called(
        "root_device_hints", key(Section(RootDeviceHints, has_options=False), "How the installer knows the root disk.")
    )
    bmc: Bmc | None = key(Section(Bmc, has_options=False), "Where its BMC is.")
    role: str | None = key(types.TEXT, PASSED)
    installer: bool | None = key(YesNo(), PASSED)
    hypervisor: str | None = key(types.TEXT, PASSED)
    fqdn: str | None = key(types.TEXT, PASSED)
    ips: tuple[str, ...] | None = key(ListOf(types.TEXT), PASSED)
    network_config: Mapping[str, Any] | None = key(FreeMapping("mapping"), PASSED)

    @property
    def volumes(self) -> tuple[str, ...]:
        """The names of its disks."""
        return tuple(disk.name or f"{self.vm_name}-{at}.{disk.format}" for at, disk in enumerate(self.disks))

    @property
    def nics_in_order(self) -> list[Nic]:
        return sorted(self.nics, key=lambda nic: (nic.boot_order is None, nic.boot_order))

    @property
    def boot_mac(self) -> str | None:
        return self.given_boot_mac or next((nic.mac for nic in self.nics_in_order), None)

    @property
    def root_device_hints(self) -> Mapping[str, Any]:
        """Given, or the serial number of the first disk."""
        hints = {name: hint for name, hint in to_dict(self.given_hints or {}).items() if hint is not None}
        serial = self.disks[0].serial if self.disks else None
        return hints or ({"serialNumber": serial} if serial else {})


@dataclass(frozen=True)
class Declared:
    owner: str = called("lab", key(types.CLUSTER_NAME, "Whose the VMs are.", required=True), aliases=("owner",))
    pool: str | None = key(POOL, "Storage pool of the disks.")
    vms: tuple[Vm, ...] = key(ListOf(Section(Vm)), "The VMs.", default=[])


@dataclass(frozen=True)
class NamedVm:
    vm_name: str = key(FILE_NAME, "Its name.", required=True)


@dataclass(frozen=True)
class Removed:
    """All that matters of VMs that are to be gone."""

    owner: str = called("lab", key(types.CLUSTER_NAME, "Whose the VMs are.", required=True), aliases=("owner",))
    vms: tuple[NamedVm, ...] = key(ListOf(Section(NamedVm, ignores_others=True)), "The VMs.", default=[])


def fleet_from(vms: Iterable[Vm], owner: str, pool: str) -> lab_vm.Fleet:
    given = list(vms)
    return lab_vm.Fleet(
        vms={vm.vm_name: _vm(vm, owner, pool) for vm in given},
        volumes={
            name: lab_vm.Volume(str(disk.format), disk.size_bytes)
            for vm in given
            for name, disk in zip(vm.volumes, vm.disks)
        },
    )


def _vm(vm: Vm, owner: str, pool: str) -> lab_vm.Vm:
    return lab_vm.Vm(
        uuid=vm.uuid or "",
        owner=owner,
        pool=pool,
        vcpus=vm.vcpus or 0,
        memory_mib=vm.memory_mib or 0,
        firmware=str(vm.firmware),
        machine=vm.machine,
        domain_type=vm.domain_type,
        cpu_mode=vm.cpu_mode,
        tpm=vm.tpm,
        console=console_of(vm.vm_name),
        disks=tuple(
            lab_vm.Disk(name, str(disk.format), str(disk.bus), disk.serial, disk.rotational)
            for name, disk in zip(vm.volumes, vm.disks)
        ),
        nics=tuple(lab_vm.Nic(nic.mac, nic.network, nic.bridge, nic.model, nic.boot_order) for nic in vm.nics_in_order),
    )
