# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMs of a lab as libvirt has them, or is to have them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


AUTO = "auto"
"""Left to us when the VM is made, and as it is from then on."""
POOL_KINDS = ("dir", "fs", "netfs")
"""Storage pools whose volumes are files."""


@dataclass(frozen=True)
class Disk:
    """How the VM has a volume of its pool; the volume itself is another matter."""

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
    """Where it begins. From then on the order is the BMC's."""


@dataclass(frozen=True)
class Vm:
    """All of a VM that is declared. What the BMC has changed, and what others have added, is not seen here."""

    uuid: str
    owner: str | None
    pool: str
    vcpus: int
    memory_mib: int
    firmware: str
    """As it was declared last; what the BMC has made of it since is not our business."""
    machine: str = "q35"
    domain_type: str = AUTO
    cpu_mode: str = AUTO
    tpm: bool = False
    console: str | None = None
    """The file that holds all that the VM says on its serial console."""
    cdrom: bool = True
    persistent: bool = True
    """Or else it is gone with its next power-off: somebody has undefined it while it ran."""
    disks: tuple[Disk, ...] = ()
    nics: tuple[Nic, ...] = ()

    @property
    def known_as(self) -> str:
        """What its disks are marked with."""
        return f"{self.owner} {self.uuid}"


@dataclass(frozen=True)
class Volume:
    format: str
    size_bytes: int

    @property
    def half_made(self) -> bool:
        """qemu-img writes the size last, so what was interrupted has none, and holds nothing."""
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
    """How libvirt has started a VM."""

    order: list[str]
    """Kinds of devices, `disk`, `cdrom` or `interface`: the first boots first."""
    medium: str
    """The file in its drive."""
    unplugged: list[str]
    """MAC addresses of cards whose cable is not in."""
    read_only: list[str]
    """Disks that it cannot write to."""
