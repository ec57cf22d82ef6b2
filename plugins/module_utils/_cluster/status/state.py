# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a lab, in one word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import outcome
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.observation import (
    ACTIVE,
    ANSWERS,
    FAILED,
    MISSING,
    NOT_ASKED,
    OFF,
    OK,
    SILENT,
    is_on,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Word

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.observation import Cluster, Observation


class State(Word):
    ABSENT = "absent"
    UNKNOWN = "unknown"
    PARTIAL = "partial"
    MADE = "made"
    REHEARSED = "rehearsed"
    REHEARSAL_FAILED = "rehearsal failed"
    INSTALLING = "installing"
    INSTALL_FAILED = "installation failed"
    INTERRUPTED = "installation interrupted"
    STOPPED = "stopped"
    UNREACHABLE = "unreachable"
    DEGRADED = "degraded"
    INSTALLED = "installed"


OF_INSTALLATION = {
    outcome.RUNNING: State.INSTALLING,
    outcome.FAILED: State.INSTALL_FAILED,
    outcome.INTERRUPTED: State.INTERRUPTED,
}
OF_REHEARSAL = {OK: State.REHEARSED, FAILED: State.REHEARSAL_FAILED}


def state_of(seen: Observation) -> State:
    installation = seen.installation.state
    if installation in OF_INSTALLATION:
        return OF_INSTALLATION[installation]
    if seen.host.libvirt:
        return State.UNKNOWN if seen.registered else State.ABSENT
    if not seen.registered and not has_anything(seen):
        return State.ABSENT
    if installation == outcome.INSTALLED:
        return of_cluster(seen)
    return OF_REHEARSAL.get(seen.rehearsal.outcome, State.MADE) if is_whole(seen) else State.PARTIAL


def of_cluster(seen: Observation) -> State:
    on = [node for node in seen.members if is_on(node)]
    if seen.members and all(node.power == OFF for node in seen.members):
        return State.STOPPED
    if seen.cluster and is_silent(seen.cluster):
        return State.UNREACHABLE
    is_well = is_whole(seen) and len(on) == len(seen.members) and not has_problems(seen)
    return State.INSTALLED if is_well else State.DEGRADED


def is_silent(cluster: Cluster) -> bool:
    """Of one that could not be asked, whether it answers at any of its addresses is all that is known."""
    answers = not cluster.vips or any(vip.answers for vip in cluster.vips)
    return cluster.state == SILENT or (cluster.state == NOT_ASKED and not answers)


def has_problems(seen: Observation) -> bool:
    """In the cluster itself."""
    said = [node.member for node in seen.members if node.member]
    return bool(seen.cluster and seen.cluster.operators_failing) or any(
        member.host_error or member.machine_error or not member.ready for member in said
    )


def has_anything(seen: Observation) -> bool:
    networks = [network for network in seen.networks if network.state != MISSING]
    nodes = [node for node in seen.nodes if node.power != MISSING]
    return bool(networks or nodes or seen.storage.is_there or seen.bmcs.state != MISSING)


def is_whole(seen: Observation) -> bool:
    return (
        all(network.state == ACTIVE for network in seen.networks)
        and all(node.power != MISSING for node in seen.nodes)
        and (not seen.nodes or (seen.storage.is_there and seen.bmcs.state == ANSWERS))
    )
