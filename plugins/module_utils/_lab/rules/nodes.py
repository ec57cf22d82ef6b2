# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the machines themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import nearest
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import Problem, inside
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.draft import Draft
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.roster import disk_serial, groups
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rules import hints

PAIR = 2
LISTED = 6
ROTATING_BUSES = ("scsi", "sata")


def control_plane(lab: Draft) -> Iterator[Problem]:
    spec = lab.spec
    count, arbiters = spec.nodes.control_plane.count, spec.nodes.arbiters.count
    if arbiters > 1:
        yield Problem("nodes.arbiters.count", f"is {arbiters}; 0 or 1 is right")
    elif count < PAIR or (count == PAIR and not (arbiters or spec.nodes.control_plane.fencing)):
        right = "3 or more are right, or 2 with nodes.arbiters.count: 1 or nodes.control_plane.fencing: true"
        yield Problem("nodes.control_plane.count", f"is {count}; {right}")
    elif count > PAIR and arbiters:
        yield Problem("nodes.arbiters.count", f"is 1 beside {count} control plane nodes; an arbiter is for exactly 2")
    elif count > PAIR and spec.nodes.control_plane.fencing:
        yield Problem("nodes.control_plane.fencing", f"is true for {count} control plane nodes; it is for exactly 2")
    elif arbiters and spec.nodes.control_plane.fencing:
        yield Problem("nodes.control_plane.fencing", "is true beside an arbiter; one of the two is right")


def overrides(lab: Draft) -> Iterator[Problem]:
    spec = lab.spec
    names = [node.name for node in lab.nodes]
    for name, override in spec.nodes.overrides.items():
        path = f"nodes.overrides.{name}"
        if name not in names:
            close = nearest(name, names)
            right = f"did you mean {close}?" if close else f"its nodes are {_listed(names)}"
            yield Problem(path, f"is no node of this lab; {right}")
        if override.provisioning_mac and spec.provisioning_network is None:
            yield Problem(f"{path}.provisioning_mac", "means nothing without lab_spec.provisioning_network")
        if override.bmc_port and spec.bmc.protocol != "ipmi":
            yield Problem(f"{path}.bmc_port", "is for bmc.protocol: ipmi; by Redfish all nodes share bmc.port")


def _listed(names: list[str]) -> str:
    return ", ".join(names[:LISTED]) + (" and so on" if len(names) > LISTED else "")


def hypervisors(lab: Draft) -> Iterator[Problem]:
    spec = lab.spec
    for name in dict.fromkeys(spec.hypervisors):
        if spec.hypervisors.count(name) > 1:
            yield Problem("hypervisors", f"holds {name} more than once; once is right")
    if lab.inventory and set(spec.hypervisors) != set(lab.inventory):
        right = f"the inventory's group hypervisors has {', '.join(lab.inventory)}; leave the key out, or name these"
        yield Problem("hypervisors", f"is {', '.join(spec.hypervisors)}, and {right}")
    for name, override in spec.nodes.overrides.items():
        if override.hypervisor and override.hypervisor not in spec.hypervisors:
            right = f"one of lab_spec.hypervisors is right: {', '.join(spec.hypervisors)}"
            yield Problem(f"nodes.overrides.{name}.hypervisor", f"is {override.hypervisor}; {right}")


def disks(lab: Draft) -> Iterator[Problem]:
    spec = lab.spec
    described = [group.disks for _role, _key, group in groups(spec)]
    described += [override.disks or () for override in spec.nodes.overrides.values()]
    for disk in (disk for listed in described for disk in listed):
        if disk.rotational is not None and disk.bus not in ROTATING_BUSES:
            yield Problem(f"{disk.at}.rotational", f"cannot be shown by the bus {disk.bus}; bus: scsi or sata is right")


def root_device_hints(lab: Draft) -> Iterator[Problem]:
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
            yield Problem(inside(f"{node.path}.root_device_hints", name), text)
