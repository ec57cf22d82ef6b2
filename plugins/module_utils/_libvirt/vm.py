# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMs of a lab as the lab knows them, and how some become others. Pure: no libvirt, no host."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._reconcile import Step

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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


def plan(current: Fleet | None, desired: Fleet) -> list[Step]:
    """A VM is there, and says that its disks are ours, before the first of them is made."""
    now = current or Fleet()
    return [
        *(Step("remove", name) for name in now.vms if name not in desired.vms),
        *(Step("define", name) for name, vm in desired.vms.items() if now.vms.get(name) != vm),
        *_disk_steps(now.volumes, desired.volumes),
    ]


def destroyed(current: Fleet | None, desired: Fleet) -> list[str]:
    """What that plan destroys of what somebody may need. A disk that is only half made holds nothing."""
    now = current or Fleet()
    of_disk = {disk.name: name for name, vm in desired.vms.items() for disk in vm.disks}
    return [
        *(f"VM {name} with its disks" for name in now.vms if name not in desired.vms),
        *(
            f"disk {name} of VM {of_disk.get(name, 'unknown')}"
            for name, volume in now.volumes.items()
            if name in desired.volumes and not volume.half_made and not volume.can_become(desired.volumes[name])
        ),
    ]


def _disk_steps(now: Mapping[str, Volume], desired: Mapping[str, Volume]) -> Iterator[Step]:
    verbs = {name: _verb(now.get(name), wanted) for name, wanted in desired.items()}
    for verb in ("recreate disk", "create disk", "grow disk"):
        yield from (Step(verb, name) for name, needed in verbs.items() if needed == verb)


def _verb(volume: Volume | None, wanted: Volume) -> str:
    if volume is None:
        return "create disk"
    if volume.half_made or not volume.can_become(wanted):
        return "recreate disk"
    return "" if volume == wanted else "grow disk"


def pending(live: Vm, declared: Vm) -> list[str]:
    """What a running VM has otherwise than it will have after its next power cycle."""
    # A running VM shows the model that host-model has become.
    unseen = {"cpu_mode"} if declared.cpu_mode == "host-model" else set()
    names = (key.name for key in fields(Vm) if key.name not in unseen)
    return [name for name in names if getattr(live, name) != getattr(declared, name)]
