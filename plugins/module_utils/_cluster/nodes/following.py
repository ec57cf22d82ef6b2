# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carrying out what is planned, look by look, until there is nothing to do and nothing to wait for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.errors import ApiError
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import timing
from ansible_collections.nometal.ipi.plugins.module_utils._core import wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.plan import Plan
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.port import ClusterPort
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.seen import Seen
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.states import Waiting
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.events import Teller
    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
    from ansible_collections.nometal.ipi.plugins.module_utils._core.wait import Clock

CLUSTER = "cluster"
PAUSE = 3.0
LEAST_HASTE = 0.05
SILENT = 10 * timing.MINUTE
"""Of the API: it moves with the control plane node that holds its address."""
AILING = 10 * timing.MINUTE
"""With an error of metal3's, which tries again and again."""
LIMITS: Mapping[str, float] = {
    **timing.HOSTS,
    "registering": 20 * timing.MINUTE,
    "provisioning": 40 * timing.MINUTE,
}
"""After how long in a state something is wrong with a host. It may take longer than while an installer waits."""
OTHER_LIMIT = 20 * timing.MINUTE
OFTEN = 3
DOING = {
    "trust": "is given the certificate of the BMCs' CA",
    "register": "is made known to the cluster",
    "release": "may be taken by a Machine",
    "update": "changes in the cluster",
    "cordon": "takes no new workloads",
    "drain": "is drained",
    "mark": "is chosen to leave",
    "unmark": "is no longer chosen to leave",
    "remove": "is removed from the cluster",
    "switch off": "is switched off",
    "remove member": "leaves etcd",
    "forget": "is left alone by metal3",
    "make machine": "gets a Machine",
}


class StalledError(OperatorError):
    """It does not go on, as the findings say."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__(" ".join(map(str, findings)))
        self.findings = findings


@dataclass
class Follower:
    port: ClusterPort
    teller: Teller
    explain: Callable[[Mapping[str, Waiting], Seen], Sequence[Finding]]
    """What is wrong with those that do not go on."""
    patience: float = 1.0
    clock: Clock = wait.CLOCK
    steps: list[str] = field(default_factory=list)
    """That were carried out."""

    def __post_init__(self) -> None:
        self._since: dict[str, tuple[str, float]] = {}
        self._ailing: dict[str, float] = {}
        self._planned: Counter[str] = Counter()
        self._answered = self.clock.now()
        self._refused: float | None = None
        """Since when no step could be carried out."""

    def follow(self, plan_of: Callable[[Seen], Plan]) -> Seen:
        """What the cluster has in the end."""
        while True:
            seen = self._read()
            if seen is not None:
                plan = plan_of(seen)
                if plan.is_done:
                    return seen
                self._carry_out(plan)
                self._watch(plan, seen)
            self.clock.sleep(PAUSE * max(min(self.patience, 1.0), LEAST_HASTE))

    def _read(self) -> Seen | None:
        """None while the API does not answer."""
        try:
            seen = self.port.read()
        except ApiError as error:
            self._bear(error, self._answered)
            return None
        self._answered = self.clock.now()
        return seen

    def _bear(self, error: ApiError, since: float) -> None:
        if error.reason != "unreachable" or self.clock.now() - since > SILENT * self.patience:
            raise error
        self.teller.tell(CLUSTER, str(error), trouble=True)

    def _carry_out(self, plan: Plan) -> None:
        self._refused = self._refused if plan.steps else None
        for step in plan.steps:
            if self._planned[str(step)] == OFTEN:
                raise OperatorError(f"The cluster does not keep what was done {OFTEN} times: {step}.")
            words = DOING.get(step.verb)
            who, state = (str(step.target), words) if words else (CLUSTER, str(step))
            self.teller.tell(who, f"{state} ({step.remark})" if words and step.remark else state)
            try:
                self.port.apply(step)
            except ApiError as error:
                self._refused = self.clock.now() if self._refused is None else self._refused
                self._bear(error, self._refused)
                return  # what is due next, another look says
            self._refused = None
            self._planned[str(step)] += 1
            self.steps.append(str(step))

    def _watch(self, plan: Plan, seen: Seen) -> None:
        now, stalled = self.clock.now(), {}
        self._since = {who: since for who, since in self._since.items() if who in {each.who for each in plan.waits}}
        for waiting in plan.waits:
            self.teller.tell(waiting.who, waiting.error or waiting.state, trouble=bool(waiting.error))
            if self._since.get(waiting.who, ("", 0.0))[0] != waiting.state:
                self._since[waiting.who] = (waiting.state, now)
            ailing = self._ailing.setdefault(waiting.who, now) if waiting.error else now
            if not waiting.error:
                self._ailing.pop(waiting.who, None)
            limit = LIMITS.get(waiting.state, OTHER_LIMIT)
            is_late = now - self._since[waiting.who][1] > limit * self.patience
            if is_late or now - ailing > AILING * self.patience:
                stalled[waiting.who] = waiting
        if stalled:
            findings = self.explain(stalled, seen)
            for finding in findings:
                self.teller.tell(finding.subject, finding.text, trouble=True)
            raise StalledError(findings)
