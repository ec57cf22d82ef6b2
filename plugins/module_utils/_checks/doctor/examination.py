# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor import (
    compute,
    daemon,
    environment,
    firewall,
    kvm,
    labs,
    networks,
    ports,
    resolver,
    storage,
)
from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor.finding import Finding, warning
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs
from ansible_collections.nometal.ipi.plugins.module_utils._observe.kvm import measure_kvm, measure_kvm_access
from ansible_collections.nometal.ipi.plugins.module_utils._observe.ports import measure_ports

Measure = Callable[[Needs], Any]
Measured = Callable[[Measure], Any]


@dataclass(frozen=True)
class Examination:
    """One row of the table: `measure` reads the host; `judge` is pure and compares it with the lab's needs."""

    name: str
    measure: Measure
    judge: Callable[[Any, Needs], Finding]

    def of(self, needs: Needs, measured: Measured) -> Finding:
        try:
            return self.judge(measured(self.measure), needs)
        except Exception as error:
            return warning(
                f"could not be measured: {_reason(error)}",
                "The lab may still work: fix the error, or check it by hand.",
            )


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")


EXAMINATIONS = (
    Examination("root", environment.measure_root, environment.judge_root),
    Examination("architecture", environment.measure_architecture, environment.judge_architecture),
    Examination("distribution", environment.measure_distribution, environment.judge_distribution),
    Examination("python", environment.measure_python, environment.judge_python),
    Examination("kvm", measure_kvm, kvm.judge_kvm),
    Examination("kvm_access", measure_kvm_access, kvm.judge_kvm_access),
    Examination("cpu", compute.measure_cpus, compute.judge_cpus),
    Examination("memory", compute.measure_memory, compute.judge_memory),
    Examination("pool_directory", storage.measure_pool_directory, storage.judge_pool_directory),
    Examination("pool_space", storage.measure_storage, storage.judge_pool_space),
    Examination("installer_space", storage.measure_storage, storage.judge_installer_space),
    Examination("fsync", storage.measure_sync_latency, storage.judge_sync_latency),
    Examination("libvirt", daemon.measure_daemon, daemon.judge_daemon),
    Examination("libvirt_interfaces", daemon.measure_daemon, daemon.judge_interfaces),
    Examination("labs", labs.measure_labs, labs.judge_labs),
    Examination("libvirt_names", networks.measure_names, networks.judge_names),
    Examination("subnets", networks.measure_subnets, networks.judge_subnets),
    Examination("bridges", networks.measure_bridges, networks.judge_bridges),
    Examination("ports", measure_ports, ports.judge_ports),
    Examination("firewalld", firewall.measure_firewalld, firewall.judge_firewalld),
    Examination("packet_filter", firewall.measure_packet_filter, firewall.judge_packet_filter),
    Examination("confinement", environment.measure_confinement, environment.judge_confinement),
    Examination("clock", environment.measure_clock, environment.judge_clock),
    Examination("resolver", resolver.measure_resolver, resolver.judge_resolver),
)


def examine(needs: Needs) -> dict[str, Finding]:
    measured = functools.lru_cache(maxsize=None)(lambda measure: measure(needs))  # once, even if two checks use it
    return {examination.name: examination.of(needs, measured) for examination in EXAMINATIONS}
