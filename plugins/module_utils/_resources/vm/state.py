# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How VMs of a lab become others. Pure: no libvirt."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
from ansible_collections.nometal.ipi.plugins.module_utils._lab.vm import Fleet, Vm, Volume

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
    """What that plan destroys of what others may need. A disk that is only half made holds nothing."""
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


def console_of(name: str) -> str:
    return f"{CONSOLES}/{name}-console.log"
