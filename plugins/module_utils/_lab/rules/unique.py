# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names, MACs, UUIDs, serial numbers and interfaces must be unique."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import already_used
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.dns import RESERVED_NAMES
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.node_list import disk_serial
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.parsed_lab import ParsedLab
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import Identity
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.lab import LabSpec
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BootstrapAddress, Topology


class Mark(NamedTuple):
    value: str
    path: str
    """The key that sets it, or could."""
    owner: str
    declared: bool = True


def duplicates(what: str, marks: Iterable[Mark]) -> Iterator[Finding]:
    """The error is that of the declared value, which can be changed."""
    taken: dict[str, Mark] = {}
    for mark in sorted(marks, key=lambda mark: mark.declared):
        earlier = taken.setdefault(mark.value, mark)
        if earlier is not mark:
            how = "" if mark.declared else "the derived value is "
            yield Finding(f"unique.{what}", mark.path, how + already_used(earlier.owner, mark.value))


def host_names(lab: ParsedLab) -> Iterator[Finding]:
    spec = lab.spec
    marks = [Mark(name, "", "the cluster itself", declared=False) for name in RESERVED_NAMES]
    marks += [Mark(node.name, "", f"the node {node.name}", declared=False) for node in lab.nodes]
    for item in spec.machine_network.reservations:
        marks.append(Mark(item.name, f"{item.at}.name", f"lab_spec.{item.at}"))
    return duplicates("host-name", marks)


def macs(lab: ParsedLab) -> Iterator[Finding]:
    return duplicates("mac", _macs(lab))


def _macs(lab: ParsedLab) -> Iterator[Mark]:
    spec = lab.spec
    for node in lab.nodes:
        yield Mark(node.mac, f"{node.path}.mac", f"the node {node.name}", bool(node.override.mac))
        if node.provisioning_mac:
            declared = bool(node.override.provisioning_mac)
            owner = f"the node {node.name} in the provisioning network"
            yield Mark(node.provisioning_mac, f"{node.path}.provisioning_mac", owner, declared)
    for item in spec.machine_network.reservations:
        yield Mark(item.mac, f"{item.at}.mac", f"the reservation {item.name}")
    if spec.bootstrap.address == BootstrapAddress.RESERVED:
        mac = spec.bootstrap.mac or lab.identity.mac_of("bootstrap")
        yield Mark(mac, "bootstrap.mac", "the bootstrap VM", bool(spec.bootstrap.mac))


def uuids(lab: ParsedLab) -> Iterator[Finding]:
    return duplicates(
        "uuid",
        (Mark(node.uuid, f"{node.path}.uuid", f"the node {node.name}", bool(node.override.uuid)) for node in lab.nodes),
    )


def serials(lab: ParsedLab) -> Iterator[Finding]:
    marks = (
        Mark(
            disk_serial(lab.identity, node, number),
            f"{disk.at}.serial" if disk.serial else f"{node.path}.disks[{number}].serial",
            f"disk {number} of the node {node.name}",
            bool(disk.serial),
        )
        for node in lab.nodes
        for number, disk in enumerate(node.disks)
    )
    return duplicates("serial", marks)


def interfaces(lab: ParsedLab) -> Iterator[Finding]:
    return duplicates("interface", _interfaces(lab.spec, lab.identity))


def _interfaces(spec: LabSpec, identity: Identity) -> Iterator[Mark]:
    """With network names: the provisioning network has the name of its bridge."""
    if spec.machine_network.topology == Topology.VETH:
        for name in (identity.network_bridge, *identity.veth_ends, identity.prefix):
            yield Mark(name, "name", "the lab itself", declared=False)
    yield Mark(spec.machine_network.bridge, "machine_network.bridge", "the machine network's bridge")
    if spec.provisioning_network:
        yield Mark(spec.provisioning_network.bridge, "provisioning_network.bridge", "the provisioning network")
