# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node of the control plane is replaced: what is to be done next, and what to be waited for. Pure.

As OpenShift documents it for a bare metal node that does not run. One that runs is drained and switched off first:
etcd's operator would make a member again of a node that is up.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import DETACHED
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes import etcd
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.states import (
    AVAILABLE,
    PROVISIONED,
    RUNNING,
    Waiting,
    mark_of,
    out_of_service,
    state_of,
    waiting,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import BareMetalHost, Machine
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.etcd import Etcd, Member
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.seen import Seen
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.wanted import Wanted
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import Release

MASTER = "master"
"""The role of its Machines."""
OWN_OF_A_MACHINE = ("providerID", "lifecycleHooks")
"""In its spec, besides which it is like the others."""
NUMBER = re.compile(r"-?([0-9]+)$")
LABELS = ("installer.openshift.io/", "coreos.openshift.io/")
"""Of BareMetalHosts, as the installer gives them to those of the control plane."""


def replaced(wanted: Wanted) -> list[str]:
    return [name for name in wanted.replaced if is_of_control_plane(name, wanted)]


def is_of_control_plane(name: str, wanted: Wanted) -> bool:
    return name in wanted.hosts and wanted.hosts[name].role == Role.CONTROL_PLANE


def may_stay(name: str, wanted: Wanted, seen: Seen) -> bool:
    """Whether a node that is noted as replaced is still as it was, but for being drained."""
    host, machine = seen.hosts.get(name), seen.machine_of(name)
    is_there = host is not None and host.uid == wanted.replaced[name] and host.online and not host.deletion
    return is_there and not (machine and machine.deletion) and _member(name, seen) is not None


def refuse(wanted: Wanted, seen: Seen, leaving: list[BareMetalHost]) -> None:
    """Before anything is changed."""
    names = replaced(wanted)
    if len(names) > 1:
        raise OperatorError(
            f"{' and '.join(sorted(names))} cannot be replaced at the same time: etcd keeps its quorum only while one "
            "node of the control plane is replaced. Nothing was changed. Run this again without cluster_nodes_replace "
            "until the first one is done, then replace the next."
        )
    for name in names:
        if name not in seen.hosts:
            _refuse_on_without_host(name, seen)
        if name in [host.name for host in leaving] or (name not in seen.hosts and _member(name, seen)):
            _refuse_without_quorum(name, seen)
            pattern(name, seen)


def _refuse_on_without_host(name: str, seen: Seen) -> None:
    """Nothing switches it off, and etcd's operator would make it a member again."""
    if _has_ready_node(name, seen):
        raise OperatorError(
            f"{name} cannot be replaced: the cluster has no BareMetalHost of it, by which it is switched off, and its "
            "Node is ready. Switch its VM off, and run this again when its Node is not ready. Nothing was changed."
        )


def _refuse_without_quorum(name: str, seen: Seen) -> None:
    member = _member(name, seen)
    if not _etcd(seen).has_quorum_without(member):
        raise OperatorError(f"{name} cannot be replaced: {_without_quorum(seen, member)} Nothing was changed.")


def _without_quorum(seen: Seen, leaving: Member | None) -> str:
    members = _etcd(seen).members
    others = [member for member in members if member is not leaving]
    ill = ", ".join(member.name or f"{member.identity:x}" for member in others if not member.healthy)
    if not ill:
        nodes = "1 node" if len(members) == 1 else f"{len(members)} nodes"
        return f"etcd would lose its quorum: a control plane of {nodes} cannot spare one."
    besides = " besides the one that is replaced" if leaving else ""
    return (
        f"etcd would lose its quorum. Of its {len(members)} members, {len(members) // 2 + 1} must be healthy{besides}; "
        f"not healthy: {ill}. `oc get pods -n {etcd.NAMESPACE}` shows more; repair these first, or restore etcd from a "
        "backup as OpenShift documents it."
    )


def backs_up(wanted: Wanted, seen: Seen, release: Release) -> str:
    """A node by which etcd is backed up before one leaves; none once that has begun."""
    for name in replaced(wanted):
        machine, own = seen.machine_of(name), _member(name, seen)
        has_come = name in seen.hosts and seen.hosts[name].uid != wanted.replaced[name]
        is_marked = machine is not None and machine.annotations.get(mark_of(release)) == wanted.lab
        if own and not has_come and not is_marked:
            return next((each.name for each in _etcd(seen).members if each is not own and each.healthy), "")
    return ""


# What leaves


def leave(wanted: Wanted, seen: Seen, host: BareMetalHost, release: Release) -> tuple[list[Step], list[Waiting]]:
    machine, node = seen.machine_of(host.name), seen.node_of(host.name)
    if machine and not machine.deletion and not host.deletion:
        steps = out_of_service(wanted, host, machine, seen, release)
        if steps:
            return steps, []
    member, state = _member(host.name, seen), _etcd(seen)
    if member and not state.has_quorum_without(member):
        return [], [Waiting(host.name, "is a member of etcd", _without_quorum(seen, member))]
    if host.online and not host.deletion:
        return [Step("switch off", host.name)], []
    if (_may_be_on(host) and host.name not in seen.off) or (node and not node.is_silent):
        return [], [waiting(host, "is switched off")]
    steps = _without_member(member, state)
    return (steps, []) if steps else _let_go(host, machine)


def _without_member(member: Member | None, state: Etcd) -> list[Step]:
    """Also if etcd's operator has removed it by itself, the guard would keep it from rolling out to the new node."""
    steps = [Step("remove member", member.name)] if member else []
    return [*steps, Step("unguard", etcd.ETCD)] if state.is_guarded else steps


def _may_be_on(host: BareMetalHost) -> bool:
    """As metal3 has seen it last, which may be old: also with an error, as when it cannot log in to the BMC."""
    return host.powered_on and host.state in PROVISIONED and not _is_detached(host)


def of_unknown_power(wanted: Wanted, seen: Seen) -> list[str]:
    """Hosts that were switched off as far as the cluster does that."""
    leave = [host for name in replaced(wanted) if (host := seen.hosts.get(name)) and host.uid == wanted.replaced[name]]
    return [host.name for host in leave if (host.deletion or not host.online) and _may_be_on(host)]


def _let_go(host: BareMetalHost, machine: Machine | None) -> tuple[list[Step], list[Waiting]]:
    """Neither cleaned nor asked for its power: its disks go with its VM, which may be gone. And before its Machine."""
    if host.deletion:
        return [], [waiting(host, "is being removed")]
    if host.state in PROVISIONED and not _is_detached(host):
        steps = [Step("forget", host.name)] if DETACHED not in host.annotations else []
        return steps, [waiting(host, "is detached from metal3")]
    steps = [Step("delete machine", machine.name, host.name)] if machine and not machine.deletion else []
    return [*steps, Step("remove", host.name)], [waiting(host, "is being removed")]


def _is_detached(host: BareMetalHost) -> bool:
    return host.operational_status == "detached"


def remains(wanted: Wanted, seen: Seen) -> tuple[list[Step], list[Waiting]]:
    """Of those whose hosts are gone."""
    steps: list[Step] = []
    waits: list[Waiting] = []
    for name in replaced(wanted):
        if name in seen.hosts:
            continue
        machine, member = seen.machine_of(name), _member(name, seen)
        if member and not _etcd(seen).has_quorum_without(member):
            waits.append(Waiting(name, "is a member of etcd", _without_quorum(seen, member)))
            continue
        if machine and not machine.deletion:
            steps.append(Step("delete machine", machine.name, name))
        elif machine:
            waits.append(Waiting(name, "its Machine leaves the cluster", machine.error))
        if member and _has_ready_node(name, seen):
            waits.append(Waiting(name, "is switched off"))
        elif member:
            steps += _without_member(member, _etcd(seen))
        secrets = [
            secret
            for node, names in _etcd(seen).secrets.items()
            if etcd.is_of(name, "", node) and node not in seen.nodes
            for secret in names
        ]
        steps += [Step("delete etcd secrets", tuple(sorted(secrets)))] if secrets else []
    return steps, waits


# What comes


def missing(wanted: Wanted, seen: Seen) -> list[str]:
    return [name for name in replaced(wanted) if name not in seen.hosts]


def coming(wanted: Wanted, seen: Seen) -> list[BareMetalHost]:
    """That are there again."""
    return [
        seen.hosts[name]
        for name in replaced(wanted)
        if name in seen.hosts and seen.hosts[name].uid != wanted.replaced[name]
    ]


def come(wanted: Wanted, seen: Seen) -> tuple[list[Step], list[Waiting]]:
    steps: list[Step] = []
    waits: list[Waiting] = []
    for host in coming(wanted, seen):
        machine, node = seen.machine_of(host.name), seen.node_of(host.name)
        if host.deletion:
            waits.append(waiting(host, "is being removed"))
        elif _is_taken_next(host, machine):
            steps.append(Step("make machine", host.name, new_name(host.name, seen)))
            waits.append(waiting(host, "gets a Machine"))
        elif machine is None or host.state not in PROVISIONED or machine.phase != RUNNING:
            waits.append(waiting(host, state_of(host, machine), machine))
        elif node is None or not node.is_ready:
            waits.append(waiting(host, "provisioned, waits until its Node is ready", machine))
        else:
            waits += _until_member(host.name, seen)
            steps += [Step("guard", etcd.ETCD)] if not waits and _etcd(seen).unguarded_by == wanted.lab else []
            waits += [] if waits or not _etcd(seen).rollout else [Waiting(etcd.ETCD, _etcd(seen).rollout)]
    return steps, waits


def _is_taken_next(host: BareMetalHost, machine: Machine | None) -> bool:
    return machine is None and host.state in AVAILABLE and not host.error_message and not host.deletion


def needs_etcd(wanted: Wanted, seen: Seen) -> bool:
    """Its members need not be asked while a host comes that has no Node so far."""
    come = coming(wanted, seen)
    ready = [host for host in come if (node := seen.node_of(host.name)) and node.is_ready]
    return len(ready) == len(come)


def _until_member(name: str, seen: Seen) -> list[Waiting]:
    state, member = _etcd(seen), _member(name, seen)
    if member is None:
        return [Waiting(etcd.ETCD, f"waits for the member of {name}: {state.rollout or 'no revision is rolled out'}")]
    ill = [each.name or f"{each.identity:x}" for each in state.members if not each.healthy]
    return [Waiting(etcd.ETCD, f"waits until {', '.join(ill)} is healthy: {state.rollout}")] if ill else []


def pattern(name: str, seen: Seen) -> Machine:
    """Of another node of the control plane, like which its Machine is made."""
    others = [
        machine
        for machine in seen.machines.values()
        if machine.role == MASTER and machine.host != name and machine.spec.get("providerSpec") and not machine.deletion
    ]
    if not others:
        raise OperatorError(
            f"{name} cannot be replaced: the cluster has no Machine of another node of its control plane, like which "
            "one could be made. Nothing was changed."
        )
    return min(others, key=lambda machine: machine.name)


def new_name(host: str, seen: Seen) -> str:
    """The number after the highest one. An earlier look may have given the name already."""
    if seen.hosts[host].consumer_kind == "Machine":
        return seen.hosts[host].consumer
    base = NUMBER.sub("", pattern(host, seen).name)
    numbers = [
        int(found[1]) for name in seen.machines if (found := NUMBER.search(name)) and NUMBER.sub("", name) == base
    ]
    return f"{base}-{max(numbers, default=-1) + 1}"


def spec_like(machine: Machine) -> dict[str, Any]:
    return {key: value for key, value in machine.spec.items() if key not in OWN_OF_A_MACHINE}


def labels_like(name: str, seen: Seen) -> Mapping[str, str]:
    """Of the BareMetalHost of another one."""
    other = seen.hosts.get(pattern(name, seen).host)
    labels = other.labels if other else {}
    return {key: value for key, value in labels.items() if key.startswith(LABELS)}


def _member(name: str, seen: Seen) -> Member | None:
    machine = seen.machine_of(name)
    return _etcd(seen).member_of(name, machine.node if machine else "")


def _has_ready_node(name: str, seen: Seen) -> bool:
    """By its name, if its Machine is gone."""
    machine = seen.machine_of(name)
    own = machine.node if machine else ""
    return any(node.is_ready and etcd.is_of(name, own, node.name) for node in seen.nodes.values())


def _etcd(seen: Seen) -> Etcd:
    return seen.etcd or etcd.Etcd()
