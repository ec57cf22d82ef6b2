# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor.finding import blocker, blocker_if, ok, warning
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import MIB
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs
from ansible_collections.nometal.ipi.plugins.module_utils._observe import host
from ansible_collections.nometal.ipi.plugins.module_utils._observe.host import names_in, text_if_there, text_of

VCPUS_PER_CPU = 4
# Above this share of free memory, the host starts to swap under load.
COMFORTABLE_SHARE = 0.9


@dataclass(frozen=True)
class Memory:
    """In MiB; `held`: used by the lab's own running VMs."""

    total: int
    available: int
    held: int


def measure_memory(needs: Needs) -> Memory:
    total, available = host.memory()
    return Memory(total // MIB, available // MIB, _held_by_own_vms(needs))


def _held_by_own_vms(needs: Needs) -> int:
    runtime = Path("/run/libvirt/qemu")
    own = [name[: -len(".pid")] for name in names_in(runtime) if name.endswith(".pid")]
    return sum(_resident_mib(runtime / f"{name}.pid", name) for name in own if needs.is_own_vm(name))


def _resident_mib(pid_file: Path, vm: str) -> int:
    process = Path("/proc") / text_if_there(pid_file)
    # A stale pid file may name an unrelated process.
    if f"guest={vm}," not in text_if_there(process / "cmdline"):
        return 0
    resident = next(line for line in text_of(process / "status").splitlines() if line.startswith("VmRSS:"))
    return int(resident.split()[1]) // 1024


def judge_memory(memory: Memory, needs: Needs) -> Finding:
    free, need = memory.available + memory.held, needs.all_memory_mib
    own = f" (of which this lab's VMs hold {memory.held} MiB)" if memory.held else ""
    measured = f"{need} MiB needed, {free} MiB free{own}, {memory.total} MiB in all"
    advice = "Give the nodes less memory, take fewer nodes, or use a larger host."
    facts = {"needed_mib": need, "free_mib": free, "held_mib": memory.held, "total_mib": memory.total}
    if need > memory.total:
        return blocker("memory.exceeds-host", measured, advice, **facts)
    if need > free:
        stop = "Stop what else runs here. " if needs.install else ""
        return blocker_if(needs.install, "memory.exceeds-free", measured, f"{stop}{advice}", **facts)
    if needs.install and need > free * COMFORTABLE_SHARE:
        return warning("memory.little-left", measured, f"Little memory is left for the host. {advice}", **facts)
    return ok("memory.enough", measured, **facts)


def measure_cpus(_needs: Needs) -> int:
    return len(os.sched_getaffinity(0))


def judge_cpus(cpus: int, needs: Needs) -> Finding:
    need = needs.all_vcpus
    measured = f"{need} virtual CPUs on {cpus} CPUs, {need / cpus:.1f} to 1"
    if need > cpus * VCPUS_PER_CPU:
        advice = f"Above {VCPUS_PER_CPU} to 1, nodes time out under load: use fewer vcpus or nodes, or more CPUs."
        return warning("cpu.overcommitted", measured, advice, vcpus=need, cpus=cpus)
    return ok("cpu.enough", measured, vcpus=need, cpus=cpus)
