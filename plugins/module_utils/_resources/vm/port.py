# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMs of an owner in libvirt: read them, and carry out single steps on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._core import files, removal
from ansible_collections.nometal.ipi.plugins.module_utils._lab.vm import AUTO, Fleet
from ansible_collections.nometal.ipi.plugins.module_utils._observe import disk_users, firmware, vm_host, volume_marks
from ansible_collections.nometal.ipi.plugins.module_utils._observe import domain_xml as xml
from ansible_collections.nometal.ipi.plugins.module_utils._observe.kvm import kvm_failure
from ansible_collections.nometal.ipi.plugins.module_utils._observe.vm_host import Domain, Host, Pool
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm import conflicts as vm_rules
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm import leftovers
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm import xml as edit
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.batch import Batch
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.state import pending

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
    from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.vm import Vm

VOLUME = (
    "<volume><name>{name}</name><capacity>{size}</capacity><allocation>0</allocation>"
    "<target><format type='{format}'/>{compat}</target></volume>"
)
COMPAT = {"qcow2": "<compat>1.1</compat>"}  # or else libvirt makes one for qemu of 2012, which cannot keep zeros thin


@dataclass(frozen=True)
class Request:
    """What is asked for; `removed` names VMs that are to be gone, None: all others of the owner."""

    owner: str
    pool: str | None
    wanted: Fleet
    removed: frozenset[str] | None = frozenset()
    recreate: bool = False


class VmPort:
    """Nothing is done to a VM that is not the owner's."""

    def __init__(self, connection: Any, request: Request) -> None:
        self._connection = connection
        self._request = request
        self._domains = vm_host.domains(connection, request.owner)
        self._host = self._measured()
        self._doomed = self._doomed_pools()
        self._batch = Batch()
        self.kept: list[str] = []
        """Paths of disks that could not be removed, each with the reason."""

    def problems(self) -> Iterator[Finding]:
        request = self._request
        yield from vm_rules.strangers(self._host, request.removed or (), request.owner)
        yield from vm_rules.stopped_pools(self._doomed)
        removed = [name for name in self._concerned() if name not in request.wanted.vms]
        left = {name: domain for name, domain in self._domains.items() if name not in removed}
        yield from self._shared_disks({**self._disks_of(removed), **self._recreated()}, removed)
        yield from vm_rules.problems(replace(self._host, domains=left), request.wanted, recreate=request.recreate)

    def _shared_disks(self, files: dict[str, str], removed: list[str]) -> Iterator[Finding]:
        if files:
            own = {*removed, *files.values()}
            yield from vm_rules.shared_disks(files, *disk_users.dependents(self._connection, files, own))

    def _disks_of(self, names: list[str]) -> dict[str, str]:
        """By path, the VM with which it goes."""
        marks = {name: self._domains[name].mark for name in names}
        pools = {pool.name: pool.directory for pool in self._doomed}
        found = ((name, mark.pool, disk) for name, mark in marks.items() for disk in mark.disks)
        return {f"{pools[pool]}/{disk}": name for name, pool, disk in found if pool in pools}

    def _recreated(self) -> dict[str, str]:
        """Disks with something in them that are to be made anew."""
        pool, wanted = self._host.pool, self._request.wanted
        if pool is None or not self._request.recreate:
            return {}
        there = {name: volume for name, volume in pool.volumes.items() if not volume.half_made}
        lost = {name for name, volume in there.items() if not volume.can_become(wanted.volumes[name])}
        return {
            f"{pool.directory}/{disk.name}": name
            for name, vm in wanted.vms.items()
            for disk in vm.disks
            if disk.name in lost
        }

    def read(self) -> Fleet:
        return Fleet(
            vms={name: self._vm(name) for name in self._concerned()},
            volumes={name: volume for pool in self._pools() for name, volume in pool.volumes.items()},
        )

    def apply(self, step: Step) -> None:
        action: Callable[[str], None] = {
            "remove": self._remove,
            "define": self._define,
            "create disk": self._create_disk,
            "recreate disk": self._recreate_disk,
            "grow disk": self._grow_disk,
        }[step.verb]
        self._batch.add(step, lambda: action(step.target))

    def finish(self) -> None:
        self._batch.finish()

    def former(self) -> list[str]:
        """VMs of the owner that are asked for no longer, and are not to be removed."""
        return sorted(set(self._owned()) - set(self._concerned()))

    def pending(self) -> dict[str, list[str]]:
        """What running VMs have otherwise until their next power cycle."""
        running = {name: domain.live for name, domain in self._domains.items() if domain.live is not None}
        wanted = {name: vm for name, vm in self._request.wanted.vms.items() if name in running}
        return {name: pending(xml.vm_of(running[name], self._host.directory, vm), vm) for name, vm in wanted.items()}

    def _measured(self) -> Host:
        connection, wanted = self._connection, self._request.wanted
        pool = vm_host.pool_named(connection, self._request.pool, set(wanted.volumes))
        host = Host(
            domains=self._domains,
            pool=pool,
            networks=vm_host.networks(connection),
            bridges=vm_host.bridges(),
            memory_mib=vm_host.memory_mib(connection),
        )
        changed = {name: vm for name, vm in wanted.vms.items() if not _is_as(host, name, vm)}
        return self._with_capabilities(host, changed) if changed else host

    def _with_capabilities(self, host: Host, changed: dict[str, Vm]) -> Host:
        """Asked only for what is to be defined: each takes a moment."""
        undecided = any(vm.domain_type == AUTO and name not in host.domains for name, vm in changed.items())
        if undecided or any(vm.domain_type == "kvm" for vm in changed.values()):
            host = replace(host, kvm_failure=kvm_failure())
        machines = {(vm.machine, vm_rules.domain_type(host, name, vm)) for name, vm in changed.items()}
        kinds = {(vm.firmware, vm.machine) for vm in changed.values()}
        return replace(
            host,
            capabilities={machine: vm_host.capabilities(self._connection, *machine) for machine in machines},
            firmware={kind: firmware.find(*kind) for kind in kinds},
        )

    def _doomed_pools(self) -> list[Pool]:
        marks = [self._domains[name].mark for name in self._concerned() if name not in self._request.wanted.vms]
        names = {mark.pool: set[str]() for mark in marks}
        for mark in marks:
            names[mark.pool].update(mark.disks)
        pools = (vm_host.pool_named(self._connection, name, volumes) for name, volumes in names.items())
        return [pool for pool in pools if pool is not None]

    def _concerned(self) -> list[str]:
        """Of the VMs that are there: those that are wanted, and those that are to be gone."""
        removed = self._owned() if self._request.removed is None else self._request.removed
        return [name for name in self._domains if name in self._request.wanted.vms or name in removed]

    def _owned(self) -> list[str]:
        return [name for name, domain in self._domains.items() if domain.mark.owner == self._request.owner]

    def _vm(self, name: str) -> Vm:
        domain = self._domains[name]
        directory = next((pool.directory for pool in self._pools() if pool.name == domain.mark.pool), "")
        return vm_host.vm_of(domain, directory, self._request.wanted.vms.get(name))

    def _pools(self) -> list[Pool]:
        return [*self._doomed, *([self._host.pool] if self._host.pool else [])]

    def _pool(self) -> Pool:
        if self._host.pool is None:
            raise ValueError(f"pool {self._request.pool} has been found missing")
        return self._host.pool

    def _define(self, name: str) -> None:
        vm = self._request.wanted.vms[name]
        choices = edit.Choices(
            directory=self._host.directory,
            domain_type=vm_rules.domain_type(self._host, name, vm),
            firmware=self._host.firmware[vm.firmware, vm.machine] or firmware.Firmware(),
        )
        files.make_directory(Path(vm.console or "").parent)
        if name in self._domains:
            root = xml.parsed(vm_host.saved_xml(self._domain(name)))  # anew: its BMC does not wait for us
        else:
            root = edit.new(name, vm, choices)
        if xml.mark_of(root).firmware != vm.firmware:
            leftovers.forget_nvram(name)
        self._connection.defineXML(edit.edit(root, vm, choices))

    def _create_disk(self, name: str) -> None:
        volume = self._request.wanted.volumes[name]
        compat = COMPAT.get(volume.format, "")
        text = VOLUME.format(name=name, size=volume.size_bytes, format=volume.format, compat=compat)
        self._connection.storagePoolLookupByName(self._pool().name).createXML(text)
        owning = next(vm for vm in self._request.wanted.vms.values() if any(disk.name == name for disk in vm.disks))
        volume_marks.note_made_for(self._path(name), owning.known_as)

    def _recreate_disk(self, name: str) -> None:
        self._connection.storageVolLookupByPath(self._path(name)).delete()
        volume_marks.forget(self._path(name))
        self._create_disk(name)

    def _grow_disk(self, name: str) -> None:
        size, path = self._request.wanted.volumes[name].size_bytes, self._path(name)
        for domain in self._domains.values():
            if domain.live is not None and xml.own_disks(domain.live, self._pool().directory, [name]):
                # qemu has the file to itself, and shows the guest what it gains.
                self._domain(domain.name).blockResize(path, size, libvirt.VIR_DOMAIN_BLOCK_RESIZE_BYTES)
                return
        self._connection.storageVolLookupByPath(path).resize(size)

    def _path(self, name: str) -> str:
        return f"{self._pool().directory}/{name}"

    def _remove(self, name: str) -> None:
        """The definition goes last: as long as it is there, it tells what else is to go."""
        domain, known = self._domain(name), self._domains[name]
        if domain.isActive():
            domain.destroy()
        self._delete_disks(known)
        leftovers.forget_logs(name)
        leftovers.forget_nvram(name)
        leftovers.forget_runs(name, self._connection.listDomainsID)
        if known.persistent:
            domain.undefineFlags(
                libvirt.VIR_DOMAIN_UNDEFINE_NVRAM
                | libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE
                | libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
                | libvirt.VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA
            )

    def _delete_disks(self, domain: Domain) -> None:
        for pool in (pool for pool in self._doomed if pool.name == domain.mark.pool):
            mounts = removal.mount_points()
            for path in (Path(pool.directory).resolve() / name for name in domain.mark.disks):
                if str(path) in mounts:
                    self.kept.append(removal.kept(path, mounted=True))
                elif path.name in pool.volumes:
                    self._connection.storageVolLookupByPath(f"{pool.directory}/{path.name}").delete()
                elif not pool.active:
                    leftovers.unlink([path])
                volume_marks.forget(str(path))

    def _domain(self, name: str) -> Any:
        return self._connection.lookupByName(name)


def _is_as(host: Host, name: str, vm: Vm) -> bool:
    return name in host.domains and vm_host.vm_of(host.domains[name], host.directory, vm) == vm
