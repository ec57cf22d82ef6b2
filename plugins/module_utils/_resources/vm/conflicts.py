# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What on the host stands in the way of VMs, said before anything is changed."""

from __future__ import annotations

from itertools import accumulate
from pathlib import PurePath
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import abbreviated
from ansible_collections.nometal.ipi.plugins.module_utils._core.sizes import gib
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import REHEARSAL_LEAST
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import DiskBus
from ansible_collections.nometal.ipi.plugins.module_utils._lab.vm import AUTO, POOL_KINDS
from ansible_collections.nometal.ipi.plugins.module_utils._observe import domain_xml as xml
from ansible_collections.nometal.ipi.plugins.module_utils._observe.disk_users import OPEN
from ansible_collections.nometal.ipi.plugins.module_utils._observe.image_chain import Image, chain_of
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.state import finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.vm import Fleet, Vm
    from ansible_collections.nometal.ipi.plugins.module_utils._observe.disk_users import Doubt, Use
    from ansible_collections.nometal.ipi.plugins.module_utils._observe.vm_host import Capabilities, Domain, Host, Pool

LISTED = 5
NETWORK_MAKER = "role nometal.ipi.lab_network (playbooks/network.yml)"
POOL_STARTER = "role nometal.ipi.host_prep (playbooks/host.yml) starts the lab's"
RECREATE = "`recreate: true` (of role node_vms: -e node_vms_recreate=true)"


def strangers(host: Host, names: Iterable[str], owner: str | None) -> Iterator[Finding]:
    for name in names:
        domain = host.domains.get(name)
        if domain and domain.mark.owner != owner:
            text = (
                f"is owned by {domain.mark.owner or 'others'}, not by {owner}, so it is neither changed nor removed: "
            )
            yield finding("vm.of-others", name, "vm_name", f"{text}choose another name, or remove it yourself")


def stopped_pools(pools: Iterable[Pool]) -> Iterator[Finding]:
    """The files of a mere directory are there all the same."""
    for pool in (pool for pool in pools if not pool.active and pool.kind != "dir"):
        hint = f"`virsh pool-start {pool.name}` starts it"
        yield finding(
            "disks.unreachable", "", "pool", f"{pool.name} is not started, so the disks in it cannot be removed: {hint}"
        )


def shared_disks(files: Mapping[str, str], uses: Iterable[Use], doubts: Iterable[Doubt]) -> Iterator[Finding]:
    """A disk goes with its VM, so nothing else may depend on it. Files: by path, the VM."""
    for use in uses:
        disk = f"{PurePath(use.file).name} would be destroyed"
        if use.vm:
            text = f"{disk}, and VM {use.vm} uses it: take it out of that VM first"
        elif use.kind == OPEN:
            text = f"{disk}, and it is {use.how}: end that first"
        else:
            text = f"{disk}, and it is the base of {use.by}: remove that first, or give it another base"
        yield finding("disk.in-use", files[use.file], "disks", text)
    if files:
        names = abbreviated(list(dict.fromkeys(files.values())), LISTED)
        yield from (
            finding("disk.maybe-in-use", names, "disks", f"would be destroyed, and {doubt}") for doubt in doubts
        )


def problems(host: Host, wanted: Fleet, *, recreate: bool) -> Iterator[Finding]:
    for name, vm in wanted.vms.items():
        yield from strangers(host, [name], vm.owner)
        yield from _identity(host, name, vm)
        yield from _macs(host, wanted, name)
        yield from _networks(host, name, vm)
        yield from _hardware(host, name, vm)
    yield from _memory(host, wanted)
    yield from _disks(host, wanted, recreate=recreate)


def domain_type(host: Host, name: str, vm: Vm) -> str:
    """A VM that is there keeps what it has: with a trial that fails once, it would go back and forth."""
    if vm.domain_type != AUTO:
        return vm.domain_type
    if name in host.domains:
        return host.domains[name].root.get("type")
    return "qemu" if host.kvm_failure else "kvm"


def _identity(host: Host, name: str, vm: Vm) -> Iterator[Finding]:
    for domain in host.domains.values():
        if domain.name == name:
            if domain.uuid != vm.uuid and domain.mark.owner == vm.owner:
                text = f"is {vm.uuid}, and the VM has {domain.uuid} and keeps it: declare that, or remove the VM first"
                yield finding("vm.other-uuid", name, "uuid", text)
            if domain.mark.owner == vm.owner and domain.mark.disks and domain.mark.pool != vm.pool:
                text = f"is {vm.pool}, and the VM has its disks in {domain.mark.pool}: disks do not move"
                yield finding("vm.other-pool", name, "pool", text)
            continue
        if domain.uuid == vm.uuid:
            yield finding(
                "uuid.taken", name, "uuid", f"{vm.uuid} is VM {domain.name}'s: give it another, or remove that VM"
            )


def _macs(host: Host, wanted: Fleet, name: str) -> Iterator[Finding]:
    """VMs that are wanted get theirs at the same time, and may swap them."""
    for domain in (domain for domain in host.domains.values() if domain.name not in wanted.vms):
        for mac in (nic.mac for nic in wanted.vms[name].nics if nic.mac in domain.macs):
            yield finding(
                "mac.taken", name, "nics", f"MAC {mac} is VM {domain.name}'s: give it another, or remove that VM"
            )


def _networks(host: Host, name: str, vm: Vm) -> Iterator[Finding]:
    for nic in vm.nics:
        if nic.network:
            if nic.network not in host.networks:
                text = f"network {nic.network} is missing: {NETWORK_MAKER} makes it"
                yield finding("network.missing", name, "nics", text)
            elif not host.networks[nic.network]:
                hint = f"{NETWORK_MAKER} starts the lab's, and `virsh net-start {nic.network}` any"
                yield finding("network.stopped", name, "nics", f"network {nic.network} is not started: {hint}")
        if nic.bridge and nic.bridge not in host.bridges:
            yield finding("bridge.missing", name, "nics", f"bridge {nic.bridge} is missing: {NETWORK_MAKER} makes it")


def _hardware(host: Host, name: str, vm: Vm) -> Iterator[Finding]:
    kind = domain_type(host, name, vm)
    if vm.domain_type == "kvm" and host.kvm_failure:
        yield finding("kvm.unavailable", name, "domain_type", f"kvm is not available: {host.kvm_failure}")
        return
    # What is there as declared was measured when it was made, and is not measured again.
    offered = host.capabilities.get((vm.machine, kind))
    if offered and offered.refusal:
        yield finding(
            "machine.unavailable", name, "machine", f"{vm.machine} of type {kind} is not available: {offered.refusal}"
        )
        return
    if offered:
        yield from (finding("hardware.unavailable", name, *lack) for lack in _lacking(offered, vm, kind))
    if (vm.firmware, vm.machine) in host.firmware and not host.firmware[vm.firmware, vm.machine]:
        text = f"no descriptor in /usr/share/qemu/firmware offers {vm.firmware} for {vm.machine}"
        yield finding(
            "firmware.unavailable",
            name,
            "firmware",
            f"{text}; install OVMF (package ovmf or edk2-ovmf), or take another firmware",
        )


def _lacking(offered: Capabilities, vm: Vm, kind: str) -> Iterator[tuple[str, str]]:
    for bus in sorted({disk.bus for disk in vm.disks} - offered.buses):
        right = ", ".join(sorted(offered.buses & set(DiskBus)))
        yield "disks", f"the bus {bus} is not available with this libvirt; available: {right}"
    if vm.cpu_mode not in {AUTO, *offered.cpu_modes}:
        yield (
            "cpu_mode",
            f"{vm.cpu_mode} is not available with type {kind}; available: {', '.join(sorted(offered.cpu_modes))}",
        )
    if vm.tpm and not offered.tpm:
        yield "tpm", "this host emulates none; install swtpm"
    if vm.vcpus > offered.most_vcpus:
        yield "vcpus", f"{vm.vcpus} exceed the {offered.most_vcpus} that machine {vm.machine} can have"


def _memory(host: Host, wanted: Fleet) -> Iterator[Finding]:
    """As the doctor judges it: what exceeds the memory of the host can never run."""
    sums = accumulate(vm.memory_mib for vm in wanted.vms.values())
    over = [name for name, total in zip(wanted.vms, sums) if total > host.memory_mib]
    alone = [name for name, vm in wanted.vms.items() if vm.memory_mib > host.memory_mib]
    for name in alone:
        text = f"{wanted.vms[name].memory_mib} MiB exceed the host's {host.memory_mib} MiB"
        yield finding("memory.too-much", name, "memory_mib", text)
    if over and not alone:
        total = sum(vm.memory_mib for vm in wanted.vms.values())
        text = f"the VMs need {total} MiB together, and the host has {host.memory_mib} MiB"
        yield finding(
            "memory.too-much-together",
            abbreviated(over, LISTED),
            "memory_mib",
            f"{text}: less memory, fewer VMs, or a larger host",
        )


def _disks(host: Host, wanted: Fleet, *, recreate: bool) -> Iterator[Finding]:
    pool = host.pool
    if pool is None or not pool.usable:
        if wanted.volumes:
            yield from _no_pool(wanted, pool)
        return
    for name in wanted.vms:
        yield from _disks_of(host, pool, wanted, name, recreate=recreate)
    yield from _room(pool, wanted)


def _no_pool(wanted: Fleet, pool: Pool | None) -> Iterator[Finding]:
    [name] = {vm.pool for vm in wanted.vms.values()}
    if pool is None:
        text = f"{name} is missing: role nometal.ipi.host_prep (playbooks/host.yml) makes the lab's"
        yield finding("pool.missing", "", "pool", text)
    elif pool.kind not in POOL_KINDS:
        yield finding(
            "pool.other-kind", "", "pool", f"{name} must be of type {', '.join(POOL_KINDS)} (got {pool.kind})"
        )
    elif pool.lost:
        text = f"{name} has lost its directory {pool.directory}: role nometal.ipi.host_prep (playbooks/host.yml) makes "
        yield finding("pool.lost", "", "pool", f"{text}the lab's anew")
    else:
        hint = f"{POOL_STARTER}, and `virsh pool-start {name}` any"
        yield finding("pool.stopped", "", "pool", f"{name} is not started: {hint}")


def _disks_of(host: Host, pool: Pool, wanted: Fleet, name: str, *, recreate: bool) -> Iterator[Finding]:
    domain, vm = host.domains.get(name), wanted.vms[name]
    for number, disk in enumerate(disk.name for disk in vm.disks):
        there, declared, at = pool.volumes.get(disk), wanted.volumes[disk], f"disks[{number}]"
        if there is None:
            continue
        if (domain is None or disk not in domain.mark.disks) and not _is_left_from(host, pool, vm, disk):
            yield finding("disk.of-others", name, at, _is_of_others(host, pool, disk))
        elif overlay := _overlay_of(domain, pool, disk):
            text = f"{disk} is the base of {overlay}, on which the VM runs, as after an external snapshot"
            yield finding(
                "disk.has-overlay",
                name,
                at,
                f"{text}: merge the two while it runs: `virsh blockcommit {name} {overlay} --active --pivot`",
            )
        elif not (there.half_made or there.can_become(declared)):
            text = f"{disk} is {there.format} of {there.size_bytes} bytes, and disks only grow"
            key = f"{at}.size_bytes" if there.format == declared.format else f"{at}.format"
            if not recreate:
                yield finding(
                    "disk.cannot-become", name, key, f"{text}: declare it so, or lose what it holds with {RECREATE}"
                )
            elif domain and domain.live is not None:
                yield finding(
                    "disk.cannot-become", name, key, f"{text}: power the VM off by its BMC before the disk is made anew"
                )
            elif disk in pool.mounted:
                yield finding(
                    "disk.mounted", name, key, f"{text}: unmount {pool.directory}/{disk} before the disk is made anew"
                )


def _overlay_of(domain: Domain | None, pool: Pool, disk: str) -> str:
    """The image that the VM has in place of one of its disks, if that is based on it."""
    if domain is None or xml.own_disks(domain.root, pool.directory, [disk]):
        return ""
    files = [source.get("file") for source in domain.root.iterfind("devices/disk[@device='disk']/source[@file]")]
    base = f"{pool.directory}/{disk}"
    return next((file for file in files if base in chain_of(Image(file)).files[1:]), "")


def _is_left_from(host: Host, pool: Pool, vm: Vm, disk: str) -> bool:
    """The VM was undefined by other means, and its disk still says that it was made for it."""
    return pool.made_for.get(disk) == vm.known_as and not list(_users_of(host, pool, disk))


def _is_of_others(host: Host, pool: Pool, disk: str) -> str:
    users = ", ".join(_users_of(host, pool, disk))
    if users:
        return f"{disk} in pool {pool.name} is in use by VM {users}: name this disk otherwise, or remove that VM"
    there = f"{disk} exists in pool {pool.name}, and nothing shows that it is this VM's"
    return f"{there}: erase it with `virsh vol-delete --pool {pool.name} {disk}`, or name this disk otherwise"


def _users_of(host: Host, pool: Pool, disk: str) -> Iterator[str]:
    for domain in host.domains.values():
        if xml.own_disks(domain.root, pool.directory, [disk]):
            yield domain.name


def _room(pool: Pool, wanted: Fleet) -> Iterator[Finding]:
    """As the doctor judges it: disks are thin, and a pool that cannot hold the first of what they write is full."""
    grow = {name: volume.size_bytes - _size_now(pool, name) for name, volume in wanted.volumes.items()}
    needed = min(sum(grow.values()), REHEARSAL_LEAST)
    if pool.free_bytes < needed:
        names = [name for name, vm in wanted.vms.items() if any(grow[disk.name] > 0 for disk in vm.disks)]
        text = f"{gib(pool.free_bytes)} are free in pool {pool.name} ({pool.directory}), and new disks need "
        text += f"{gib(needed)} to begin with: free some space, or mount a larger one"
        yield finding("space.too-little", abbreviated(names, LISTED), "disks", text)


def _size_now(pool: Pool, name: str) -> int:
    return pool.volumes[name].size_bytes if name in pool.volumes else 0
