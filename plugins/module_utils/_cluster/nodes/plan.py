# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is to be done next, and what is to be waited for, from what the cluster has and is to have. Pure.

Nothing is remembered between two looks: whatever was interrupted goes on from what the cluster says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import FIELD_MANAGER
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import DETACHED
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes import control_plane, manifests
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.manifests import HOLDER
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.states import (
    AVAILABLE,
    FAILED,
    MARKS,
    PROVISIONED,
    RUNNING,
    Waiting,
    out_of_service,
    state_of,
    waiting,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.wanted import BY_COUNT
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import (
        BareMetalHost,
        Machine,
        MachineSet,
    )
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.seen import Seen
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.wanted import Wanted, WantedHost
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import Release

BY_COUNT_NAME = re.compile(rf"(?:{'|'.join(map(re.escape, BY_COUNT))})-[0-9]+")
ADDRESS_HOST = re.compile(r"(?:[^/]*://)?(?:\[([^]]+)\]|([^/:]+))")


@dataclass(frozen=True)
class Plan:
    steps: Sequence[Step] = ()
    """To be done now, in this order."""
    waits: Sequence[Waiting] = ()

    @property
    def is_done(self) -> bool:
        return not self.steps and not self.waits


# What leaves


def leaving(wanted: Wanted, seen: Seen) -> list[BareMetalHost]:
    """The hosts of the lab that it has no longer, and those that are to be replaced."""
    return [
        host
        for host in seen.hosts.values()
        if (host.name in wanted.replaced and host.uid == wanted.replaced[host.name])
        or (_has_no_place(host, wanted) and BY_COUNT_NAME.fullmatch(host.name) and is_of_lab(host, wanted))
    ]


def _has_no_place(host: BareMetalHost, wanted: Wanted) -> bool:
    """A spare that is not to be registered may have been given to the cluster by hand. What the lab holds was not."""
    if host.name in wanted.hosts:
        return False
    return host.name not in wanted.nodes or host.consumer_kind == HOLDER


def is_of_lab(host: BareMetalHost, wanted: Wanted) -> bool:
    found = ADDRESS_HOST.match(host.bmc_address)
    return found is not None and wanted.bmc_host in found.groups()


def leftovers(wanted: Wanted, seen: Seen) -> list[str]:
    """Secrets of hosts that are gone."""
    kept = {
        name_of(host)
        for host in {*wanted.hosts, *seen.hosts}
        for name_of in (manifests.bmc_secret_name, manifests.network_secret_name)
    } | {name for spec in seen.specs.values() for name in manifests.secrets_of(spec)}
    return [name for name in seen.labelled if name not in kept]


def shrink(wanted: Wanted, seen: Seen, release: Release) -> Plan:
    victims = leaving(wanted, seen)
    left = leftovers(wanted, seen)
    steps = [Step("delete secrets", tuple(left))] if left else []
    steps += [Step("unmark", machine.name, machine.host) for machine in _marked_and_staying(wanted, seen)]
    waits: list[Waiting] = []
    going: list[Machine] = []
    for host in victims:
        machine = seen.machine_of(host.name)
        if control_plane.is_of_control_plane(host.name, wanted):
            own, wait = control_plane.leave(wanted, seen, host, release)
            steps += own
            waits += wait
        elif host.deletion:
            waits.append(waiting(host, "is being removed"))
        elif machine is None:
            own, wait = _without_machine(host)
            steps += own
            waits += wait
        elif machine.deletion:
            waits.append(waiting(host, f"leaves the cluster: {host.state}", machine))
        else:
            steps += out_of_service(wanted, host, machine, seen, release)
            going.append(machine)
    own, wait = control_plane.remains(wanted, seen)
    steps += own
    waits += wait
    steps.sort(key=lambda step: step.verb != "cordon")  # or what is drained from one goes to the next
    smaller = list(_smaller(wanted, seen, going))  # refuses before anything is drained
    if going and not any(step.verb in ("cordon", "drain", "mark", "unmark") for step in steps):
        steps += smaller
        waits += [Waiting(machine.host or machine.name, "its Machine is about to go") for machine in going]
    return Plan(steps, waits)


def _without_machine(host: BareMetalHost) -> tuple[list[Step], list[Waiting]]:
    if host.consumer and host.consumer_kind != HOLDER:
        return [], [waiting(host, f"leaves the cluster: {host.state}")]
    if host.state == "deprovisioning":
        return [], [waiting(host, host.state)]
    return [Step("remove", host.name)], [waiting(host, "is being removed")]


def own_marks(machine: Machine, lab: str) -> list[str]:
    return [mark for mark in MARKS if machine.annotations.get(mark) == lab]


def _is_marked_by_others(machine: Machine, lab: str) -> bool:
    return any(machine.annotations.get(mark, "") not in ("", lab) for mark in MARKS)


def _marked_and_staying(wanted: Wanted, seen: Seen) -> list[Machine]:
    """Chosen by an earlier run, when lab_spec was another one: they would go in place of those that leave now."""
    going = {host.name for host in leaving(wanted, seen)}
    return [
        machine
        for machine in seen.machines.values()
        if own_marks(machine, wanted.lab) and not machine.deletion and _host_of(machine, seen) not in going
    ]


def _host_of(machine: Machine, seen: Seen) -> str:
    return next((name for name, host in seen.hosts.items() if host.consumer == machine.name), machine.host)


def _smaller(wanted: Wanted, seen: Seen, leave: Sequence[Machine]) -> Iterator[Step]:
    """By its Machines that stay: so those that wait for a host go, too, and none is made for one that leaves."""
    going = {host.name for host in leaving(wanted, seen)}
    for machine_set in seen.machine_sets:
        own = [machine for machine in seen.machines.values() if machine.machine_set == machine_set.name]
        if not any(machine in own for machine in leave):
            continue
        stay = [machine for machine in own if machine.host and machine.host not in going and not machine.deletion]
        failed = next((machine for machine in stay if machine.error), None)
        if failed:
            raise OperatorError(
                f"Machine {failed.name} of {failed.host} has failed ({failed.error}). It would be removed in place of "
                f"{', '.join(sorted(going))}: repair it, or replace it with cluster_nodes_replace={failed.host}."
            )
        marked = next((machine for machine in stay if _is_marked_by_others(machine, wanted.lab)), None)
        if marked:
            raise OperatorError(
                f"Machine {marked.name} of {marked.host} is marked to leave, and not by this lab. It would be removed "
                f"in place of {', '.join(sorted(going))}: remove its annotation {' or '.join(MARKS)}, or replace it "
                f"with cluster_nodes_replace={marked.host}."
            )
        if machine_set.replicas > len(stay):
            yield _scaled(machine_set, len(stay))
    for machine in leave:
        if not machine.machine_set:
            yield Step("delete machine", machine.name, machine.host)


# What comes


def missing(wanted: Wanted, seen: Seen) -> list[WantedHost]:
    """Of the control plane, what is replaced."""
    again = control_plane.missing(wanted, seen)
    comes = [host for host in wanted.hosts.values() if host.role in BY_COUNT or host.name in again]
    return [host for host in comes if host.name not in seen.hosts]


def not_in_cluster(wanted: Wanted, seen: Seen) -> list[str]:
    """Nodes of the control plane, which no count adds."""
    known = {*seen.hosts, *wanted.replaced}
    return sorted(host.name for host in wanted.hosts.values() if host.role not in BY_COUNT and host.name not in known)


def not_in_lab(wanted: Wanted, seen: Seen) -> list[str]:
    """Nodes of the control plane, which no count removes."""
    there = {name for name, host in seen.hosts.items() if is_of_lab(host, wanted) and not BY_COUNT_NAME.fullmatch(name)}
    return sorted(there - {*wanted.hosts})


def grow(wanted: Wanted, seen: Seen) -> Plan:
    steps = [Step("trust", manifests.CA_NAME)] if _trusts_another(wanted, seen) else []
    steps += _updates(wanted, seen)
    new = missing(wanted, seen)
    going = [host for name, host in seen.hosts.items() if name in wanted.hosts and host.deletion]
    steps += [Step("register", host.name) for host in new]
    if steps or going:
        return Plan(steps, [waiting(host, "is being removed") for host in going])
    steps, waits = control_plane.come(wanted, seen)
    held = [host for host in _workers(wanted, seen) if host.consumer_kind == HOLDER]
    unready = [host for host in held if host.state not in AVAILABLE or host.error_message]
    if not unready:
        released = [Step("release", host.name) for host in held]
        steps += released or _as_many_as_wanted(wanted, seen)
    return Plan(steps, [*waits, *_unfinished(wanted, seen)])


def warnings(wanted: Wanted, seen: Seen) -> list[str]:
    said = [
        f"{name} is in lab_spec and not in the cluster: nodes of the control plane are added to it by hand."
        for name in not_in_cluster(wanted, seen)
    ]
    former = [host.name for host in wanted.hosts.values() if _has_another_network(host, seen)]
    if former:
        said.append(
            f"lab_spec has another network_config of {', '.join(former)} than the cluster. A node reads it when it is "
            "provisioned, and keeps what it has until it is replaced: -e cluster_nodes_replace=<name>."
        )
    for host in _workers(wanted, seen):
        node = seen.node_of(host.name)
        if node and not node.is_ready:
            said.append(f"The Node {node.name} is not ready ({node.ready}).")
        elif node and node.unschedulable:
            said.append(
                f"The Node {node.name} is cordoned: `oc adm uncordon {node.name}` lets it have workloads again."
            )
    return said


def _has_another_network(host: WantedHost, seen: Seen) -> bool:
    if host.name not in seen.hosts or seen.hosts[host.name].deletion:
        return False
    name = seen.hosts[host.name].network
    secret = seen.logins.get(name, {}).get(manifests.NETWORK_KEY, "") if name else None
    return manifests.is_another_network(secret, host.facts.get("networkConfig") or {})


def _workers(wanted: Wanted, seen: Seen) -> list[BareMetalHost]:
    return [seen.hosts[name] for name in wanted.workers if name in seen.hosts]


def _trusts_another(wanted: Wanted, seen: Seen) -> bool:
    return bool(wanted.trusted) and wanted.trusted.strip() != seen.certificate.strip()


def _updates(wanted: Wanted, seen: Seen) -> Iterator[Step]:
    for name, host in wanted.hosts.items():
        if name in seen.hosts and not seen.hosts[name].deletion:
            changed = [key for key, is_other in differences(host, seen).items() if is_other]
            if changed:
                yield Step("update", name, ", ".join(changed))


LOGIN, BMC, HINTS, ATTACHMENT = "login of its BMC", "address of its BMC", "root device hints", "attachment"


def differences(host: WantedHost, seen: Seen) -> dict[str, bool]:
    """Whether what the cluster knows of a host is not what the lab has."""
    spec = seen.specs[host.name]
    known = spec.get("bmc") or {}
    secret = seen.logins.get(known.get("credentialsName", ""), {})
    wanted = manifests.bmc(host)
    return {
        LOGIN: bool(host.password)
        and any(secret.get(key) != value for key, value in manifests.login_data(host).items()),
        BMC: any((known.get(key) or False) != value for key, value in wanted.items()),
        HINTS: (spec.get("rootDeviceHints") or {}) != host.facts["rootDeviceHints"],
        ATTACHMENT: seen.hosts[host.name].annotations.get(DETACHED) == FIELD_MANAGER,  # a run was interrupted
    }


def _as_many_as_wanted(wanted: Wanted, seen: Seen) -> Iterator[Step]:
    """Machines on hosts of others, and on spares that are in use, count besides the lab's workers."""
    machine_set = set_of_workers(seen, needed=bool(wanted.workers))
    if machine_set is None:
        return
    own = [machine for machine in seen.machines.values() if machine.machine_set == machine_set.name]
    others = [machine for machine in own if machine.host and machine.host not in wanted.workers]
    elsewhere = [
        host
        for host in _workers(wanted, seen)
        if (machine := seen.machine_of(host.name)) and machine.machine_set != machine_set.name
    ]
    with_host = [machine for machine in own if machine.host and not machine.deletion]
    replicas = max(len(wanted.workers) + len(others) - len(elsewhere), len(with_host))  # or it would choose one to go
    if machine_set.replicas != replicas:
        yield _scaled(machine_set, replicas)


def set_of_workers(seen: Seen, *, needed: bool) -> MachineSet | None:
    """The one that the installer has made, if there are several."""
    found = [each for each in seen.machine_sets if each.role in ("", Role.WORKER)]
    named = [each for each in found if each.name.endswith("-worker-0")]
    if len(named) == 1 or len(found) == 1:
        return (named or found)[0]
    if needed:
        names = ", ".join(each.name for each in found) or "none"
        raise OperatorError(
            f"The cluster has no MachineSet of workers that the lab's are known to belong to (there is {names}): "
            "the installer makes one whose name ends with -worker-0."
        )
    return None


def _scaled(machine_set: MachineSet, replicas: int) -> Step:
    return Step("scale", machine_set.name, f"{machine_set.replicas} -> {replicas}")


def _unfinished(wanted: Wanted, seen: Seen) -> Iterator[Waiting]:
    for name, host in wanted.hosts.items():
        there = seen.hosts.get(name)
        if there is None or host.role not in BY_COUNT:
            continue
        machine = seen.machine_of(name)
        if host.is_spare and machine is None:
            if there.state not in AVAILABLE:
                yield waiting(there, there.state)
        elif there.state not in PROVISIONED or machine is None or machine.phase != RUNNING:
            yield waiting(there, state_of(there, machine), machine)


def has_failed(name: str, seen: Seen) -> bool:
    """Whether a host needs to be replaced, as far as the cluster knows."""
    host, machine = seen.hosts.get(name), seen.machine_of(name)
    return host is not None and bool(host.error_message or (machine and machine.phase == FAILED))


def changes(wanted: Wanted, seen: Seen) -> tuple[list[str], list[str]]:
    """Of both parts: what would be done to hosts, and to their number."""
    leave = leaving(wanted, seen)
    shrinks = [f"remove {host.name}" for host in leave]
    shrinks += [str(Step("unmark", machine.name, machine.host)) for machine in _marked_and_staying(wanted, seen)]
    shrinks += map(str, control_plane.remains(wanted, seen)[0])
    shrinks += [f"delete secret {name}" for name in leftovers(wanted, seen)]
    grows = [f"register {host.name}" for host in missing(wanted, seen)]
    grows += [f"register {host.name}" for host in leave if host.name in wanted.hosts]
    grows += map(str, control_plane.come(wanted, seen)[0])
    grows += [str(step) for step in _updates(wanted, seen)]
    grows += [f"trust {manifests.CA_NAME}"] if _trusts_another(wanted, seen) else []
    grows += [str(step) for step in _as_many_as_wanted(wanted, seen)]
    return shrinks, grows
