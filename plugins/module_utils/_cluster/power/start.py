# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starting the nodes of an installed cluster, and seeing them through until it has settled."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api import objects
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.errors import ApiError
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.cluster import PAUSED_BY_STOP
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.heartbeats import Heartbeats
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.nodes import parted
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.power import Result, names_of
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.requests import names_of as names_in_cluster
from ansible_collections.nometal.ipi.plugins.module_utils._core import wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.cluster import Cluster, Member
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.nodes import Node
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.power import Lab
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.requests import Judgement
    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding

SWITCH_ON, APPROVE, RELEASE, UNCORDON = "switch on", "approve", "release", "uncordon"
API, CERTIFICATES, OPERATORS = "API", "certificates", "operators"
IS_HEARD = "its node has such a certificate, as it is heard"
LOOK_SECONDS = 2.0
QUIET_SECONDS = 4.0
"""Without a new request: a kubelet asks for its second certificate soon after it has the first one."""
MINUTE = 60
MOST_NAMES = 4


@dataclass(frozen=True)
class Limits:
    """In seconds."""

    api: float = 1800.0
    nodes: float = 1800.0
    """For the control plane, and for workers, from when they are on."""
    operators: float = 1800.0
    silence: float = 20.0
    """After which a node is silent: kubelets are heard every 10 seconds."""
    quiet: float = 60.0
    """For which operators have to be settled after nodes were started: at first they say what was before the stop."""


@dataclass
class ClusterStart:
    lab: Lab
    cluster: Cluster
    diagnose: Callable[[Collection[str]], list[Finding]]
    """What is wrong, if these nodes do not come up."""
    limits: Limits = Limits()
    clock: wait.Clock = wait.CLOCK
    _result: Result = field(default_factory=Result)
    _told: dict[str, str] = field(default_factory=dict)
    _left: list[Judgement] = field(default_factory=list)
    """At the last look."""

    def __post_init__(self) -> None:
        self._heartbeats = Heartbeats(self.limits.silence)

    def run(self) -> dict[str, Any]:
        recorded = self.lab.record.names()
        cluster_nodes = [node for node in self.lab.nodes if node.is_in_cluster]
        wanted = [node for node in self.lab.nodes if node.vm_name in recorded] or cluster_nodes
        on = self.lab.switching.those_on(wanted)
        off = [node for node in wanted if node not in on]
        control_plane, workers = parted(off)
        if self.lab.check_mode:
            return self._foreseen(control_plane, workers)
        self._see_through(wanted, control_plane, workers, is_recorded=bool(recorded))
        return self._shown()

    def _see_through(
        self, wanted: Sequence[Node], control_plane: Sequence[Node], workers: Sequence[Node], *, is_recorded: bool
    ) -> None:
        """Control plane and workers: those that are off."""
        self._switch_on(control_plane)
        members = self._await_api()
        late = self._await_ready([node for node in wanted if node.is_control_plane])
        if late and not has_majority(members, [node for node in wanted if node not in late]):
            raise self._not_ready(late)
        if not is_recorded:  # a VM of lab_spec need not be in the cluster yet
            workers = tuple(node for node in workers if node in {member.node for member in members})
        self._switch_on(workers)
        late = self._await_ready(wanted, late)
        self._release()
        self._settle()
        if late:
            raise self._not_ready(late)
        self.lab.record.remove()

    def _shown(self) -> dict[str, Any]:
        self._result.warnings += [f"Certificate request left: {judgement}" for judgement in self._left]
        return {**self._result.to_dict([]), "left": sorted(judgement.request for judgement in self._left)}

    def _foreseen(self, control_plane: Sequence[Node], workers: Sequence[Node]) -> dict[str, Any]:
        self._note_switching(control_plane)
        try:
            members, pending = self.cluster.members(), self.cluster.requests()
        except ApiError:  # as long as the control plane is off
            self._note_switching(workers)
            return self._shown()
        self._note_switching(workers)
        ready = {member.node for member in members if member.ready}
        approved = [each.request for each in pending.approved if not (each.is_first and each.node in ready)]
        if approved:
            self._result.steps.append(Step(APPROVE, tuple(approved)))
        self._result.steps += steps_of_release(members, self.cluster.hosts())
        return self._shown()

    def _note_switching(self, nodes: Sequence[Node]) -> None:
        if nodes:
            self._result.steps.append(Step(SWITCH_ON, names_of(nodes)))
            self._result.switched += names_of(nodes)

    def _switch_on(self, nodes: Sequence[Node]) -> None:
        self._note_switching(nodes)
        self.lab.switching.switch_on(nodes)

    def _await_api(self) -> list[Member]:
        for _look in wait.looks(self.limits.api, LOOK_SECONDS, self.clock):
            members, error = self._members()
            self._tell(API, "is awaited" if members is None else "answers")
            if members is not None:
                return members
        said = f"The API does not answer {self.limits.api / MINUTE:.0f} min after the control plane was switched on"
        raise self._stalled(f"{said}: {error}", [node for node in self.lab.nodes if node.is_control_plane])

    def _members(self) -> tuple[list[Member] | None, str]:
        """Or why not."""
        try:
            return self.cluster.members(), ""
        except ApiError as error:
            return None, str(error)

    def _await_ready(self, nodes: Sequence[Node], given_up: Collection[Node] = ()) -> list[Node]:
        """Those that are not in the end, of which those that were given up before are not waited for."""
        late = list(nodes)

        def are_up() -> bool:
            self._approve()
            members = [member for member in self.cluster.members() if member.node in nodes]
            late[:] = [member.node for member in members if not self._is_up(member)]
            return {*late} <= {*given_up}

        self._comes_true(are_up, self.limits.nodes)
        return late

    def _not_ready(self, late: Sequence[Node]) -> OperatorError:
        names = ", ".join(names_of(late))
        return self._stalled(f"Nodes are not ready after {self.limits.nodes / MINUTE:.0f} min: {names}", late)

    def _is_up(self, member: Member) -> bool:
        is_heard = self._heartbeats.is_heard(member.name) or not self._heartbeats.is_known(member.name)
        self._tell(str(member), "is ready" if member.ready and is_heard else "is not ready yet")
        return member.ready and is_heard

    def _approve(self) -> bool:
        """Whether there was anything to approve. A kubelet that is heard needs no first certificate."""
        self._heartbeats.note(self.cluster.heartbeats(), self.clock.now())
        pending = self.cluster.requests()
        first = [(each, names_in_cluster(each.node)) for each in pending.approved if each.is_first and each.node]
        needless = [replace(each, reason=IS_HEARD) for each, names in first if self._heartbeats.is_heard(*names)]
        early = [each for each, names in first if not self._heartbeats.is_silent(*names)]
        self._left = [*pending.left, *needless]
        for judgement in self._left:
            self._tell(f"{CERTIFICATES} {judgement.request}", f"left: {judgement}", trouble=True)
        names = [each.request for each in pending.approved if each not in early]
        if names:
            self.cluster.approve(names)
            self._result.steps.append(Step(APPROVE, tuple(names)))
            self.lab.switching.log.note(CERTIFICATES, f"{len(names)} approved")
        return bool(names)

    def _release(self) -> None:
        """What a stop has cordoned and paused, and nothing that others have."""

        def is_released() -> bool:
            members = {str(member): member for member in self.cluster.members()}
            for step in steps_of_release(members.values(), self.cluster.hosts()):
                self._result.steps.append(step)
                for name in step.target:
                    if step.verb == UNCORDON:
                        self.cluster.uncordon(members[name])
                    else:
                        self.cluster.unpause(name)
            return True

        if not self._comes_true(is_released, self.limits.api):
            raise self._stalled("The API does not take changes, so nodes stay cordoned", self.lab.nodes)

    def _settle(self) -> None:
        since, unsettled = self.clock.now(), ""
        quiet = self.limits.quiet if self._result.steps else QUIET_SECONDS

        def are_settled() -> bool:
            nonlocal since, unsettled
            approved = self._approve()
            unsettled = shortened([str(operator) for operator in self.cluster.operators() if operator.wrong])
            self._tell(OPERATORS, f"wait for {unsettled}" if unsettled else "have settled")
            since = self.clock.now() if approved or unsettled else since
            return self.clock.now() - since >= quiet

        if not self._comes_true(are_settled, self.limits.operators) and unsettled:
            said = f"Operators have not settled in {self.limits.operators / MINUTE:.0f} min: {unsettled}."
            self._result.warnings.append(f"{said} `oc get co` shows how far they are.")

    def _comes_true(self, condition: Callable[[], bool], seconds: float) -> bool:
        """An API that has only just come up may be away again for a while."""
        return any(self._asked(condition) for _look in wait.looks(seconds, LOOK_SECONDS, self.clock))

    def _asked(self, condition: Callable[[], bool]) -> bool:
        try:
            is_true = condition()
        except ApiError as error:
            self._tell(API, str(error), trouble=True)
            return False
        self._tell(API, "answers")
        return is_true

    def _stalled(self, what: str, nodes: Sequence[Node]) -> OperatorError:
        found = [str(finding) for finding in self.diagnose(names_of(nodes))]
        for text in found:
            self.lab.switching.log.note("diagnosis", text, trouble=True)
        return OperatorError("\n".join([f"{what.rstrip('.')}.", *found, "Run this again to go on."]))

    def _tell(self, who: str, state: str, *, trouble: bool = False) -> None:
        """Once."""
        if self._told.get(who) != state:
            self._told[who] = state
            self.lab.switching.log.note(who, state, trouble=trouble)


def has_majority(members: Iterable[Member], ready: Collection[Node]) -> bool:
    """Whether these are most of the cluster's control plane."""
    control_plane = [member.node for member in members if member.node.is_control_plane]
    return 2 * sum(node in ready for node in control_plane) > len(control_plane)


def steps_of_release(members: Iterable[Member], hosts: Iterable[objects.BareMetalHost]) -> list[Step]:
    paused = tuple(host.name for host in hosts if host.annotations.get(objects.PAUSED) == PAUSED_BY_STOP)
    cordoned = tuple(str(member) for member in members if member.marked)
    return [Step(verb, names) for verb, names in ((RELEASE, paused), (UNCORDON, cordoned)) if names]


def shortened(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
