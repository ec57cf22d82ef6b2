# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong on any host with VMs as module bmh_vm is given them. Pure."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeVar

from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import DISK_SECTOR
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import must_be, show_key
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import Problems
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import Section
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import ROTATING_BUSES
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.declared import FILE_NAME, Declared
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.state import finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
    from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.declared import Vm

Given = TypeVar("Given")
NEEDED = ("uuid", "vcpus", "memory_mib")
OF_VM = re.compile(r"vms\[(\d+)\](?:\.(.+))?")


def declared_from(params: Mapping[str, Any], declared: type[Given]) -> tuple[Given | None, list[Finding]]:
    """Also of what is wrong, as far as it can be read: so all findings are made in one go."""
    problems = Problems.none()
    given = Section(declared, ignores_others=True).parse(params, "", problems)
    if isinstance(given, Declared):
        for path, text in _contradictions(given, problems):
            problems.add("argument.invalid", path, text)
    found = [_with_name(each, params["vms"]) for each in sorted(problems.found, key=_number)]
    if isinstance(given, Declared):
        found += _duplicates(given.vms)
    return (given if isinstance(given, declared) else None), found


def _number(found: Finding) -> int:
    match = OF_VM.fullmatch(found.subject)
    return int(match[1]) if match else -1


def _with_name(found: Finding, items: Sequence[Mapping[str, Any]]) -> Finding:
    """Of a VM by its name, as on its host, unless the name is what is wrong."""
    match = OF_VM.fullmatch(found.subject)
    if not match:
        return found
    name = items[int(match[1])]["vm_name"]
    label = name if FILE_NAME.accepts(name) else f"vms[{match[1]}]"
    return finding(found.code, label, match[2] or "", found.message)


def _contradictions(given: Declared, problems: Problems) -> Iterator[tuple[str, str]]:
    if given.pool is None and problems.knows("pool") and any(vm.disks for vm in given.vms):
        yield "pool", "missing; must be the storage pool for the disks, such as nometal-demo"
    for vm in given.vms:
        yield from _about_itself(vm, problems)
        yield from _about_disks(vm, problems)
        yield from _about_nics(vm, problems)


def _about_itself(vm: Vm, problems: Problems) -> Iterator[tuple[str, str]]:
    for name in NEEDED:
        if getattr(vm, name) is None and problems.knows(f"{vm.at}.{name}"):
            yield f"{vm.at}.{name}", "missing; required with state=present"
    if vm.domain_type == "qemu" and vm.cpu_mode == "host-passthrough":
        yield f"{vm.at}.cpu_mode", must_be("maximum for domain_type qemu, since it needs KVM", vm.cpu_mode)


def _about_disks(vm: Vm, problems: Problems) -> Iterator[tuple[str, str]]:
    for disk in vm.disks:
        if disk.size_bytes % DISK_SECTOR and problems.knows(f"{disk.at}.size_bytes"):
            yield (
                f"{disk.at}.size_bytes",
                must_be(f"a multiple of {DISK_SECTOR}, the size of a sector", disk.size_bytes),
            )
        if disk.rotational is not None and disk.bus not in ROTATING_BUSES:
            buses = " or ".join(ROTATING_BUSES)
            yield (
                f"{disk.at}.rotational",
                f"must be left out: a disk shows it by the bus {buses} alone (got {disk.bus})",
            )


def _about_nics(vm: Vm, problems: Problems) -> Iterator[tuple[str, str]]:
    for nic in vm.nics:
        if problems.knows(nic.at) and (nic.network is None) == (nic.bridge is None):
            yield nic.at, f"must have a network or a bridge (got {'neither' if nic.network is None else 'both'})"
    orders = Counter(nic.boot_order for nic in vm.nics if nic.boot_order is not None)
    for order, times in orders.items():
        if times > 1:
            yield f"{vm.at}.nics", f"must each have another boot_order (got {order} {times} times)"
    own = [nic.mac for nic in vm.nics]
    if vm.given_boot_mac and problems.knows(f"{vm.at}.nics") and vm.given_boot_mac not in own:
        yield f"{vm.at}.boot_mac", must_be("the MAC of one of its nics", vm.given_boot_mac)


def _duplicates(vms: Sequence[Vm]) -> Iterator[Finding]:
    """Each names all VMs that share it, or the one that has it twice."""
    described = {
        ("vm_name", ""): [(vm.vm_name, vm) for vm in vms],
        ("uuid", ""): [(vm.uuid, vm) for vm in vms if vm.uuid],
        ("nics", "MAC "): [(nic.mac, vm) for vm in vms for nic in vm.nics],
        ("disks", ""): [(name, vm) for vm in vms for name in vm.volumes],
        ("disks", "serial "): [(disk.serial, vm) for vm in vms for disk in vm.disks if disk.serial],
    }
    for (name, what), pairs in described.items():
        times = Counter(value for value, _vm in pairs)
        for value in (value for value, number in times.items() if number > 1):
            names = ", ".join(dict.fromkeys(show_key(vm.vm_name) for own, vm in pairs if own == value))
            text = f"must be unique (got {what}{value} {times[value]} times)"
            yield finding("argument.duplicate", names, name, text)
