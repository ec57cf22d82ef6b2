# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes of a lab, with everything that does not depend on networks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import Identity
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.lab import Disk, Group, LabSpec, Override
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BmcProtocol, Firmware, Role

FIRST_REDFISH_PORT = 8000
FIRST_IPMI_PORT = 6230
MAY_BE_LEFT_OUT = (Role.WORKER, Role.SPARE)
NOTHING = Override()


@dataclass(frozen=True)
class Node:
    name: str
    role: Role
    index: int
    """Its number within its role."""
    group: Group
    override: Override
    uuid: str
    mac: str
    provisioning_mac: str | None
    bmc_port: int
    hypervisor: str
    firmware: Firmware

    @property
    def vcpus(self) -> int:
        return self.override.vcpus or self.group.vcpus

    @property
    def memory(self) -> int:
        return self.override.memory or self.group.memory

    @property
    def disks(self) -> tuple[Disk, ...]:
        return self.override.disks or self.group.disks

    @property
    def path(self) -> str:
        """The key of its override."""
        return f"nodes.overrides.{self.name}"


def groups(spec: LabSpec) -> tuple[tuple[Role, str, Group], ...]:
    """Role, key and group, in the order of node numbers."""
    nodes = spec.nodes
    return (
        (Role.CONTROL_PLANE, "control_plane", nodes.control_plane),
        (Role.ARBITER, "arbiters", nodes.arbiters),
        (Role.WORKER, "workers", nodes.workers),
        (Role.SPARE, "spares", nodes.spares),
    )


def node_list(spec: LabSpec) -> tuple[Node, ...]:
    return tuple(_nodes(spec, Identity(spec.name)))


def bmc_port(spec: LabSpec) -> int:
    default = FIRST_IPMI_PORT if spec.bmc.protocol == BmcProtocol.IPMI else FIRST_REDFISH_PORT
    return spec.bmc.port or default


def disk_serial(identity: Identity, node: Node, number: int) -> str:
    return node.disks[number].serial or identity.serial_of(f"{node.name}/{number}")


def _nodes(spec: LabSpec, identity: Identity) -> Iterator[Node]:
    number = 0
    for role, _key, group in groups(spec):
        left, index = group.count, 0
        while left:
            if not _is_left_out(spec, role, index):
                yield _node(spec, identity, (role, index, group), number)
                left -= 1
            index += 1
            number += 1


def name_of(role: Role, index: int) -> str:
    return f"{role}-{index}"


def _is_left_out(spec: LabSpec, role: Role, index: int) -> bool:
    return role in MAY_BE_LEFT_OUT and spec.nodes.overrides.get(name_of(role, index), NOTHING).remove


def _node(spec: LabSpec, identity: Identity, place: tuple[Role, int, Group], number: int) -> Node:
    role, index, group = place
    name = name_of(role, index)
    override = spec.nodes.overrides.get(name, NOTHING)
    one_port_each = spec.bmc.protocol == BmcProtocol.IPMI
    return Node(
        name=name,
        role=role,
        index=index,
        group=group,
        override=override,
        uuid=override.uuid or identity.uuid_of(f"node/{name}"),
        mac=override.mac or identity.mac_of(f"{name}/machine"),
        provisioning_mac=_provisioning_mac(spec, identity, name, override),
        bmc_port=override.bmc_port or bmc_port(spec) + (number if one_port_each else 0),
        hypervisor=override.hypervisor or spec.hypervisors[0],
        firmware=override.firmware or spec.firmware,
    )


def _provisioning_mac(spec: LabSpec, identity: Identity, name: str, override: Override) -> str | None:
    if spec.provisioning_network is None:
        return None
    return override.provisioning_mac or identity.mac_of(f"{name}/provisioning")
