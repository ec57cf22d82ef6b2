# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""States of hosts and Machines, and how a node is taken out of service, whatever its role. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import BareMetalHost, Machine
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.seen import Seen
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.wanted import Wanted
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import Release

AVAILABLE = ("available", "ready")
"""The second up to 4.9."""
PROVISIONED = ("provisioned", "externally provisioned")
RUNNING, FAILED = "Running", "Failed"
MARKS = ("machine.openshift.io/cluster-api-delete-machine", "machine.openshift.io/delete-machine")
"""Annotations of a Machine that goes first when its MachineSet gets smaller."""
NEW_MARK_SINCE = (4, 12)


@dataclass(frozen=True)
class Waiting:
    """For what there is nothing to do."""

    who: str
    state: str
    error: str = ""
    """What the cluster says is wrong with it."""


def mark_of(release: Release) -> str:
    return MARKS[release >= NEW_MARK_SINCE]


def out_of_service(wanted: Wanted, host: BareMetalHost, machine: Machine, seen: Seen, release: Release) -> list[Step]:
    """A Machine with the lab's mark has been drained."""
    if machine.annotations.get(mark_of(release)) == wanted.lab:
        return []
    steps: list[Step] = []
    if machine.node in seen.nodes:
        if not seen.nodes[machine.node].unschedulable:
            steps.append(Step("cordon", machine.node))
        steps.append(Step("drain", machine.node))
    return [*steps, Step("mark", machine.name, host.name)]


def state_of(host: BareMetalHost, machine: Machine | None) -> str:
    if host.state in PROVISIONED:
        return f"provisioned, waits for its Node ({machine.phase if machine else 'no Machine'})"
    return host.state or "unknown to metal3 so far"


def waiting(host: BareMetalHost, state: str, machine: Machine | None = None) -> Waiting:
    own = ": ".join(filter(None, [host.error_type, host.error_message]))
    return Waiting(host.name, state, own or (machine.error if machine else ""))
