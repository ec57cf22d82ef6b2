# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The doctor's checks, one row each: what it is called, what it measures, and how it judges that."""

from __future__ import annotations

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
from ansible_collections.nometal.ipi.plugins.module_utils._core.checks import Check
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs
from ansible_collections.nometal.ipi.plugins.module_utils._observe.kvm import measure_kvm, measure_kvm_access
from ansible_collections.nometal.ipi.plugins.module_utils._observe.ports import measure_ports

CHECKS: tuple[Check[Needs], ...] = (
    Check("root", environment.measure_root, environment.judge_root),
    Check("architecture", environment.measure_architecture, environment.judge_architecture),
    Check("distribution", environment.measure_distribution, environment.judge_distribution),
    Check("python", environment.measure_python, environment.judge_python),
    Check("kvm", measure_kvm, kvm.judge_kvm),
    Check("kvm_access", measure_kvm_access, kvm.judge_kvm_access),
    Check("cpu", compute.measure_cpus, compute.judge_cpus),
    Check("memory", compute.measure_memory, compute.judge_memory),
    Check("pool_directory", storage.measure_pool_directory, storage.judge_pool_directory),
    Check("pool_space", storage.measure_storage, storage.judge_pool_space),
    Check("installer_space", storage.measure_storage, storage.judge_installer_space),
    Check("fsync", storage.measure_sync_latency, storage.judge_sync_latency),
    Check("libvirt", daemon.measure_daemon, daemon.judge_daemon),
    Check("libvirt_interfaces", daemon.measure_daemon, daemon.judge_interfaces),
    Check("labs", labs.measure_labs, labs.judge_labs),
    Check("libvirt_names", networks.measure_names, networks.judge_names),
    Check("subnets", networks.measure_subnets, networks.judge_subnets),
    Check("bridges", networks.measure_bridges, networks.judge_bridges),
    Check("ports", measure_ports, ports.judge_ports),
    Check("firewalld", firewall.measure_firewalld, firewall.judge_firewalld),
    Check("packet_filter", firewall.measure_packet_filter, firewall.judge_packet_filter),
    Check("confinement", environment.measure_confinement, environment.judge_confinement),
    Check("clock", environment.measure_clock, environment.judge_clock),
    Check("resolver", resolver.measure_resolver, resolver.judge_resolver),
)
