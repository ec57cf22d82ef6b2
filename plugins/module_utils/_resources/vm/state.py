# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMs of a lab as the lab knows them, from a module's arguments, and how some become others. Pure: no libvirt."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any
from uuid import UUID

from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
from ansible_collections.nometal.ipi.plugins.module_utils._lab.vm import Disk, Fleet, Nic, Vm, Volume

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Arguments = Mapping[str, Any]

CONSOLES = "/var/log/libvirt/qemu"


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


def finding(code: str, vm: str, key: str, message: str) -> Finding:
    """In one line that names the VM and its key. Without a VM, it is not one VM's."""
    return Finding(code, ": ".join(part for part in (vm, key) if part), message)


def fleet_from(items: Iterable[Arguments], owner: str, pool: str) -> Fleet:
    """Also of what is wrong, as far as it can be read: so all findings are made in one go."""
    given = list(items)
    return Fleet(
        vms={item["vm_name"]: _vm(item, owner, pool) for item in given},
        volumes={
            disk_name(item, number): Volume(disk["format"], disk["size_bytes"])
            for item in given
            for number, disk in enumerate(item["disks"])
        },
    )


def console_of(name: str) -> str:
    return f"{CONSOLES}/{name}-console.log"


def boot_mac(item: Arguments) -> str | None:
    """Declared, or that of the NIC that boots first."""
    first = next(iter(_nics(item)), None)
    return item["boot_mac"] or (first.mac if first else None)


def root_device_hints(item: Arguments) -> Mapping[str, Any]:
    """Declared, or the serial number of the first disk."""
    serial = item["disks"][0]["serial"] if item["disks"] else None
    return item["root_device_hints"] or ({"serialNumber": serial} if serial else {})


def _vm(item: Arguments, owner: str, pool: str) -> Vm:
    return Vm(
        uuid=plain_uuid(item["uuid"]),
        owner=owner,
        pool=pool,
        vcpus=item["vcpus"] or 0,
        memory_mib=item["memory_mib"] or 0,
        firmware=item["firmware"],
        machine=item["machine"],
        domain_type=item["domain_type"],
        cpu_mode=item["cpu_mode"],
        tpm=item["tpm"],
        console=console_of(item["vm_name"]),
        disks=tuple(_disk(item, number) for number in range(len(item["disks"]))),
        nics=_nics(item),
    )


def _disk(item: Arguments, number: int) -> Disk:
    disk = item["disks"][number]
    taken = {key: disk[key] for key in ("format", "bus", "serial", "rotational")}
    return Disk(name=disk_name(item, number), **taken)


def disk_name(item: Arguments, number: int) -> str:
    disk = item["disks"][number]
    return disk["name"] or f"{item['vm_name']}-{number}.{disk['format']}"


def _nics(item: Arguments) -> tuple[Nic, ...]:
    nics = [
        Nic(nic["mac"].lower(), nic["network"], nic["bridge"], nic["model"], nic["boot_order"]) for nic in item["nics"]
    ]
    return tuple(sorted(nics, key=lambda nic: (nic.boot_order is None, nic.boot_order)))


def plain_uuid(text: str | None) -> str:
    return str(UUID(text)) if text and _is_uuid(text) else text or ""


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
