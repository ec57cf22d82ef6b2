# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the machines themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import abbreviated, got, must_be, nearest
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import inside
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.node_list import (
    MAY_BE_LEFT_OUT,
    disk_serial,
    groups,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.parsed_lab import ParsedLab
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rules import hints
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import ROTATING_BUSES, BmcProtocol

LISTED = 6


def some(lab: ParsedLab) -> Iterator[Finding]:
    if not lab.nodes:
        yield Finding("nodes.none", "nodes", "must have one node or more: give one of its groups a count")


def overrides(lab: ParsedLab) -> Iterator[Finding]:
    spec = lab.spec
    names = [node.name for node in lab.nodes]
    for name, override in spec.nodes.overrides.items():
        path = f"nodes.overrides.{name}"
        if override.remove:
            yield from _left_out(lab, name)
        elif name not in names:
            close = nearest(name, names)
            hint = f"did you mean {close}?" if close else f"its nodes are {abbreviated(names, LISTED)}"
            yield Finding("nodes.unknown", path, f"unknown node; {hint}")
        if override.provisioning_mac and spec.provisioning_network is None:
            text = "must be left out without lab_spec.provisioning_network"
            yield Finding("nodes.provisioning-mac-unused", f"{path}.provisioning_mac", text)
        if override.bmc_port and spec.bmc.protocol != BmcProtocol.IPMI:
            text = "must be left out unless bmc.protocol is ipmi: with Redfish, all nodes share bmc.port"
            yield Finding("nodes.bmc-port-unused", f"{path}.bmc_port", text)


def _left_out(lab: ParsedLab, name: str) -> Iterator[Finding]:
    """Whose number means nothing would be without effect, and another node would leave."""
    role, _dash, number = name.rpartition("-")
    path = f"nodes.overrides.{name}"
    if role not in MAY_BE_LEFT_OUT or not number.isdecimal():
        text = "must be left out: only workers and spares can be, such as worker-1"
        yield Finding("nodes.remove", f"{path}.remove", text)
    elif name != f"{role}-{int(number)}":
        yield Finding("nodes.unknown", path, f"unknown node; did you mean {role}-{int(number)}?")
    elif not any(node.role == role and node.index > int(number) for node in lab.nodes):
        text = f"must be left out: there is no {role} of a higher number, and the highest leave by nodes.{role}s.count"
        yield Finding("nodes.remove-unused", f"{path}.remove", text)


def hypervisors(lab: ParsedLab) -> Iterator[Finding]:
    spec = lab.spec
    for name in dict.fromkeys(spec.hypervisors):
        if spec.hypervisors.count(name) > 1:
            yield Finding("hypervisors.twice", "hypervisors", f"must list each host once {got(name)}")
    hosts = list(dict.fromkeys(lab.inventory or spec.hypervisors))
    if len(hosts) > 1:
        advice = "leave one in lab_spec.hypervisors and in the inventory's group hypervisors"
        text = f"must be one host, as a lab on more than one is not supported yet: {advice} {got(', '.join(hosts))}"
        yield Finding("hypervisors.several", "hypervisors", text)
    elif lab.inventory and set(spec.hypervisors) != set(lab.inventory):
        right = f"left out, or the hosts of the inventory's group hypervisors, {', '.join(lab.inventory)}"
        yield Finding("hypervisors.not-of-inventory", "hypervisors", must_be(right, ", ".join(spec.hypervisors)))
    for name, override in spec.nodes.overrides.items():
        if override.hypervisor and override.hypervisor not in spec.hypervisors:
            text = must_be(f"one of lab_spec.hypervisors, {', '.join(spec.hypervisors)}", override.hypervisor)
            yield Finding("nodes.hypervisor", f"nodes.overrides.{name}.hypervisor", text)


def disks(lab: ParsedLab) -> Iterator[Finding]:
    spec = lab.spec
    described = [group.disks for _role, _key, group in groups(spec)]
    described += [override.disks or () for override in spec.nodes.overrides.values()]
    for disk in (disk for listed in described for disk in listed):
        if disk.rotational is not None and disk.bus not in ROTATING_BUSES:
            text = f"not available on the bus {disk.bus}: use bus: scsi or sata, or leave it out"
            yield Finding("disks.rotational", f"{disk.at}.rotational", text)


def root_device_hints(lab: ParsedLab) -> Iterator[Finding]:
    for node in lab.nodes:
        if node.override.root_device_hints is None:
            continue
        asked = asdict(node.override.root_device_hints)
        given = {name: value for name, value in asked.items() if value is not None}
        declared = [
            hints.Declared(disk.bus, disk.size, disk_serial(lab.identity, node, number), bool(disk.rotational))
            for number, disk in enumerate(node.disks)
        ]
        for name, text in hints.problems(given, declared):
            yield Finding("disks.root-device-hints", inside(f"{node.path}.root_device_hints", name), text)
