# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMs of a lab, desired or current in libvirt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


AUTO = "auto"
"""Chosen when the VM is made, and kept from then on."""
POOL_KINDS = ("dir", "fs", "netfs")
"""Storage pools whose volumes are files."""


@dataclass(frozen=True)
class Disk:
    """How a volume of the pool is attached to the VM."""

    name: str
    format: str
    bus: str
    serial: str | None = None
    rotational: bool | None = None


@dataclass(frozen=True)
class Nic:
    mac: str
    network: str | None = None
    bridge: str | None = None
    model: str = "virtio"
    boot_order: int | None = None
    """Initial value. The BMC changes the order later."""


@dataclass(frozen=True)
class Vm:
    """The declared part of a VM, without what the BMC has changed and others have added."""

    uuid: str
    owner: str | None
    pool: str
    vcpus: int
    memory_mib: int
    firmware: str
    """As last declared, whatever the BMC has changed since."""
    machine: str = "q35"
    domain_type: str = AUTO
    cpu_mode: str = AUTO
    tpm: bool = False
    console: str | None = None
    """The file with the output of the serial console."""
    cdrom: bool = True
    persistent: bool = True
    """False for a VM that was undefined while it ran, and is lost with its next power-off."""
    disks: tuple[Disk, ...] = ()
    nics: tuple[Nic, ...] = ()

    @property
    def known_as(self) -> str:
        """The mark on its disks."""
        return f"{self.owner} {self.uuid}"


@dataclass(frozen=True)
class Volume:
    format: str
    size_bytes: int

    @property
    def half_made(self) -> bool:
        """qemu-img writes the size last, so an interrupted volume has none and no content."""
        return self.size_bytes == 0

    def can_become(self, wanted: Volume) -> bool:
        return self.format == wanted.format and self.size_bytes <= wanted.size_bytes


@dataclass(frozen=True)
class Fleet:
    """VMs by name, and the volumes of their disks by name."""

    vms: Mapping[str, Vm] = field(default_factory=dict)
    volumes: Mapping[str, Volume] = field(default_factory=dict)


@dataclass(frozen=True)
class Start:
    """How libvirt started a VM."""

    order: list[str]
    """Device types, `disk`, `cdrom` or `interface`, in boot order."""
    medium: str
    """The file in its drive."""
    unplugged: list[str]
    """MAC addresses of cards with link state down."""
    read_only: list[str]
    """Disks that are read-only."""
