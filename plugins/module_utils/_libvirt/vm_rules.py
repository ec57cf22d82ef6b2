# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What on the host stands in the way of VMs, said before anything is changed. Pure."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._doctor.host import gib
from ansible_collections.nometal.ipi.plugins.module_utils._doctor.storage import REHEARSAL_LEAST
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.vm import AUTO
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.vm_wanted import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.vm import Fleet, Vm
    from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.vm_host import Capabilities, Host, Pool

LISTED = 5


def strangers(host: Host, names: Iterable[str], owner: str | None) -> Iterator[Problem]:
    for name in names:
        domain = host.domains.get(name)
        if domain and domain.mark.owner != owner:
            whose = f"{domain.mark.owner}'s" if domain.mark.owner else "somebody's"
            text = f"is not {owner}'s but {whose}, so it is neither changed nor removed: choose another name, "
            yield Problem(name, f"{text}or remove it yourself")


def stopped_pools(pools: Iterable[Pool]) -> Iterator[Problem]:
    for pool in (pool for pool in pools if not pool.active):
        yield Problem("", f"storage pool {pool.name} is not started, so its disks cannot be removed: start it first")


def problems(host: Host, wanted: Fleet, *, recreate: bool) -> Iterator[Problem]:
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


def _identity(host: Host, name: str, vm: Vm) -> Iterator[Problem]:
    for domain in host.domains.values():
        if domain.name == name:
            if domain.uuid != vm.uuid and domain.mark.owner == vm.owner:
                yield Problem(name, f"has uuid {domain.uuid} and keeps it: `state: absent` first, with its disks")
            if domain.mark.owner == vm.owner and domain.mark.disks and domain.mark.pool != vm.pool:
                yield Problem(name, f"has its disks in pool {domain.mark.pool}, not {vm.pool}: disks do not move")
            continue
        if domain.uuid == vm.uuid:
            yield Problem(name, f"its uuid {vm.uuid} is VM {domain.name}'s: give it another, or remove that VM")


def _macs(host: Host, wanted: Fleet, name: str) -> Iterator[Problem]:
    """VMs that are wanted get theirs at the same time, and may swap them."""
    for domain in (domain for domain in host.domains.values() if domain.name not in wanted.vms):
        for mac in (nic.mac for nic in wanted.vms[name].nics if nic.mac in domain.macs):
            yield Problem(name, f"its MAC {mac} is VM {domain.name}'s: give it another, or remove that VM")


def _networks(host: Host, name: str, vm: Vm) -> Iterator[Problem]:
    hint = "role nometal.ipi.lab_network makes it"
    for nic in vm.nics:
        if nic.network and nic.network not in host.networks:
            yield Problem(name, f"network {nic.network} is missing: {hint}", may_pass=True)
        if nic.bridge and nic.bridge not in host.bridges:
            yield Problem(name, f"bridge {nic.bridge} is missing: {hint}", may_pass=True)


def _hardware(host: Host, name: str, vm: Vm) -> Iterator[Problem]:
    kind = domain_type(host, name, vm)
    if vm.domain_type == "kvm" and host.kvm_failure:
        yield Problem(name, f"domain_type: kvm cannot be had: {host.kvm_failure}")
        return
    # What is there as declared was measured when it was made, and is not measured again.
    offered = host.capabilities.get((vm.machine, kind))
    if offered and offered.refusal:
        yield Problem(name, f"machine {vm.machine} of type {kind} cannot be had: {offered.refusal}")
        return
    if offered:
        yield from (Problem(name, text) for text in _lacking(offered, vm, kind))
    if (vm.firmware, vm.machine) in host.firmware and not host.firmware[vm.firmware, vm.machine]:
        text = f"firmware {vm.firmware}: no descriptor in /usr/share/qemu/firmware offers it for {vm.machine}"
        yield Problem(name, f"{text}; install OVMF (package ovmf or edk2-ovmf), or take another firmware")


def _lacking(offered: Capabilities, vm: Vm, kind: str) -> Iterator[str]:
    for bus in sorted({disk.bus for disk in vm.disks} - offered.buses):
        right = ", ".join(sorted(offered.buses & {"scsi", "virtio", "sata"}))
        yield f"this libvirt has no disks on the bus {bus}; {right} are right"
    if vm.cpu_mode not in {AUTO, *offered.cpu_modes}:
        yield f"cpu_mode {vm.cpu_mode} cannot be had with type {kind}; {', '.join(sorted(offered.cpu_modes))} can"
    if vm.tpm and not offered.tpm:
        yield "tpm: this host emulates none; install swtpm"
    if vm.vcpus > offered.most_vcpus:
        yield f"vcpus: {vm.vcpus} are more than the {offered.most_vcpus} that machine {vm.machine} can have"


def _memory(host: Host, wanted: Fleet) -> Iterator[Problem]:
    """As the doctor judges it: what is more than the host has in all can never run."""
    sums = accumulate(vm.memory_mib for vm in wanted.vms.values())
    over = [name for name, total in zip(wanted.vms, sums) if total > host.memory_mib]
    alone = [name for name, vm in wanted.vms.items() if vm.memory_mib > host.memory_mib]
    for name in alone:
        yield Problem(name, f"{wanted.vms[name].memory_mib} MiB are more than the host's {host.memory_mib} MiB")
    if over and not alone:
        total = sum(vm.memory_mib for vm in wanted.vms.values())
        text = f"the VMs need {total} MiB together, and the host has {host.memory_mib} MiB"
        yield Problem(_listed(over), f"{text}: less memory, fewer VMs, or a larger host")


def _disks(host: Host, wanted: Fleet, *, recreate: bool) -> Iterator[Problem]:
    pool = host.pool
    if pool is None or not pool.active:
        if wanted.volumes:
            yield _no_pool(wanted, pool)
        return
    for name in wanted.vms:
        yield from _disks_of(host, pool, wanted, name, recreate=recreate)
    yield from _room(pool, wanted)


def _no_pool(wanted: Fleet, pool: Pool | None) -> Problem:
    name = next(vm.pool for vm in wanted.vms.values())
    if pool is None:
        return Problem("", f"storage pool {name} is missing: role nometal.ipi.host_prep makes it", may_pass=True)
    return Problem("", f"storage pool {name} is not started: `virsh pool-start {name}`", may_pass=True)


def _disks_of(host: Host, pool: Pool, wanted: Fleet, name: str, *, recreate: bool) -> Iterator[Problem]:
    domain = host.domains.get(name)
    for disk in (disk.name for disk in wanted.vms[name].disks):
        there, declared = pool.volumes.get(disk), wanted.volumes[disk]
        if there is None:
            continue
        if domain is None or disk not in domain.mark.disks:
            text = f"disk {disk} exists in pool {pool.name} and is not this VM's: remove it, or name the disk otherwise"
            yield Problem(name, text)
        elif not (there.half_made or there.can_become(declared)):
            text = f"disk {disk} is {there.format} of {there.size_bytes} bytes, and disks only grow"
            if not recreate:
                yield Problem(name, f"{text}: declare it so, or lose what it holds with `recreate: true`")
            elif domain.live is not None:
                yield Problem(name, f"{text}: power the VM off by its BMC before the disk is made anew")


def _room(pool: Pool, wanted: Fleet) -> Iterator[Problem]:
    """As the doctor judges it: disks are thin, and a pool that cannot hold the first of what they write is full."""
    grow = {name: volume.size_bytes - _size_now(pool, name) for name, volume in wanted.volumes.items()}
    needed = min(sum(grow.values()), REHEARSAL_LEAST)
    if pool.free_bytes < needed:
        names = [name for name, vm in wanted.vms.items() if any(grow[disk.name] > 0 for disk in vm.disks)]
        text = f"{gib(pool.free_bytes)} are free in pool {pool.name} ({pool.directory}), and new disks need "
        yield Problem(_listed(names), f"{text}{gib(needed)} to begin with: free some space, or mount a larger one")


def _size_now(pool: Pool, name: str) -> int:
    return pool.volumes[name].size_bytes if name in pool.volumes else 0


def _listed(names: list[str]) -> str:
    return ", ".join(names[:LISTED]) + (" and so on" if len(names) > LISTED else "")
