# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watching an installation until it ends: telling how far it is, noticing what stands still, and finding out why."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import diagnose as diagnosis
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import evidence as diagnosis_evidence
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import heal
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import of_nodes as diagnosis_of_nodes
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.explanations import found
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.nodes import nodes_of
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import outcome as endings
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import power_cycle
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import timing as usual
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.events import INSTALLER, Teller
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.reading import Reading
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.stages import Stage
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import run
from ansible_collections.nometal.ipi.plugins.module_utils._core import wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.nodes import Node
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.installation import Installation
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import Host, Progress
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run.run import Run
    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding

STANDS_STILL, SLOW, ERROR = "installer.stands-still", "node.slow", "node.error"
HANGS, STOPPED = "node.hangs", "node.boot-stopped"
TO_BE_RESET = (HANGS, STOPPED)


def findings(progress: Progress, nodes: Iterable[Node], now: float, patience: float = 1.0) -> list[Finding]:
    """Since when it stands still is which standstill it is: another one of the same subject is another finding."""
    return [
        *_stage(progress, now, patience),
        *_hosts(progress, now, patience),
        *(each for node in nodes for each in _silent(node, now, patience)),
        *(each for node in nodes for each in _stopped(node, progress.hosts.get(node.name), now, patience)),
    ]


def is_late(progress: Progress, patience: float = 1.0) -> bool:
    """Whether the stage in which it ended had taken longer than it usually does."""
    usually = usual.STAGES.get(progress.stage) if progress.stage else None
    return usually is not None and progress.last - progress.since > usually.seconds * patience


def _stage(progress: Progress, now: float, patience: float) -> Iterator[Finding]:
    if progress.stage is None or progress.stage is Stage.COMPLETE:
        return
    still = now - max(progress.since, progress.changed)
    if still > usual.STAGES[progress.stage].limit * patience:
        since = max(progress.since, progress.changed)
        yield found(STANDS_STILL, INSTALLER, stage=progress.stage.value, seconds=still, since=since)


def _hosts(progress: Progress, now: float, patience: float) -> Iterator[Finding]:
    """Only then does the log tell their states."""
    if progress.stage is not Stage.CONTROL_PLANE:
        return
    for name, host in progress.hosts.items():
        still, limit = now - host.since, usual.HOSTS.get(host.state)
        if limit is not None and still > limit * patience and not host.trouble:
            yield found(SLOW, name, state=host.state, seconds=still, since=host.since)
        ailing = now - host.troubled_since
        if host.trouble and ailing > usual.TROUBLE * patience:
            yield found(ERROR, name, error=host.trouble, seconds=ailing, since=host.troubled_since)


def _silent(node: Node, now: float, patience: float) -> Iterator[Finding]:
    since = node.on_since
    if since is not None and node.is_silent and now - since > usual.SILENCE * patience:
        yield found(HANGS, node.name, seconds=now - since, since=since)


def _stopped(node: Node, host: Host | None, now: float, patience: float) -> Iterator[Finding]:
    """An overloaded host lets a boot time out halfway. The agent, which sends something all the time, never comes."""
    if host is None or host.state != "inspecting" or host.trouble or node.quiet_since is None or node.is_silent:
        return
    is_late = now - host.since > usual.HOSTS[host.state] * patience
    if is_late and now - node.quiet_since > usual.SILENCE * patience:
        yield found(STOPPED, node.name, seconds=now - node.quiet_since, since=host.since)


class Signs:
    """Of nodes that are on, since when they have given none."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[tuple[float | None, ...], float]] = {}

    def noted(self, node: Node, now: float) -> Node:
        if node.on_since is None:
            self._last.pop(node.name, None)
            return node
        signs = (node.on_since, node.spoke_at, node.packets)
        if node.name not in self._last or self._last[node.name][0] != signs:
            self._last[node.name] = (signs, now)
        return replace(node, quiet_since=self._last[node.name][1])


PAUSE = 1.0
LOOK_AT_NODES = 15.0
MOST_HASTE = 0.1
RECENT = 60.0
"""Seconds: what the log has from before is history, of which only the end is reported."""
LAST_ERRORS = 3


@dataclass
class Watch:
    installation: Installation
    patience: float = 1.0
    """By which all limits are multiplied."""
    heals: bool = False
    """Whether a node that holds an address of the API too early is made to give it back."""

    def __post_init__(self) -> None:
        self._reading = Reading(self.installation)
        self.progress = self._reading.progress
        self.findings: list[Finding] = []
        self._asked: dict[tuple[str, str, float], float] = {}
        self._looked_at_nodes = 0.0
        self._nodes: list[Node] = []
        self._signs = Signs()
        self._held: dict[tuple[str, str], float] = {}
        self.healed: list[str] = []
        self.cycled: list[str] = []
        self._diagnosed_at = 0.0

    @property
    def _haste(self) -> float:
        """Little patience needs frequent looks."""
        return min(max(self.patience, MOST_HASTE), 1.0)

    def follow(self) -> dict[str, Any]:
        """Until it ends."""
        self._teller = Teller(self.installation.paths.events, run.read(self.installation.paths).started)
        self._began = time.time()
        while True:
            # In this order: after its end come no entries that would be missed.
            seen = run.read(self.installation.paths)
            self._read_log()
            if not seen.running:
                return self._ended(seen)
            self._teller.tell_progress(self.progress, time.time())
            self._forget_what_was_overcome()
            self._look_for_standstill(seen)
            wait.CLOCK.sleep(PAUSE * self._haste)

    def _read_log(self) -> None:
        for entry in self._reading.new_entries():
            if entry.at >= self._began - RECENT:
                self._teller.tell_progress(self.progress, entry.at)

    def _look_for_standstill(self, seen: Run) -> None:
        now = time.time()
        if now - self._looked_at_nodes > LOOK_AT_NODES * self._haste:
            self._look_at_nodes(now)
            self._look_at_holders(now, seen)
        found = findings(self.progress, self._nodes, now, self.patience)
        new = [each for each in found if self._is_to_be_asked((each.subject, each.code, each.facts["since"]), now)]
        ended = self._end_errors({each.subject for each in new if each.code == ERROR})
        found, new = ([each for each in every if each.subject not in ended] for every in (found, new))
        for finding in new:
            self._teller.tell_trouble(finding.subject, finding.text)
            if finding.code in TO_BE_RESET:
                self._power_cycle(finding.subject, seen)
        if new:
            self._diagnose({finding.subject for finding in found}, late=True)

    def _end_errors(self, names: Collection[str]) -> set[str]:
        """The errors of these hosts that are over by now; the log does not say so."""
        over = {*names} & diagnosis_evidence.hosts_without_error(self.installation) if names else set()
        for name in over:
            self.progress.end_trouble(name)
            self._teller.tell(name, self.progress.hosts[name].state)
        return over

    def _look_at_nodes(self, now: float) -> None:
        self._looked_at_nodes = now
        self._nodes = [self._signs.noted(node, now) for node in nodes_of(self.installation)]
        if self._nodes:
            off = diagnosis_of_nodes.switched_off(self.progress, self._nodes)
            self._teller.tell_off(diagnosis_of_nodes.of_switched_off(off) if off else None)

    def _look_at_holders(self, now: float, seen: Run) -> None:
        """Who has the addresses of the API. A node that only just takes one may yet give it back by itself."""
        if self.progress.stage not in diagnosis_of_nodes.BEFORE_ITS_OWN_API or not self._nodes:
            return
        holders = diagnosis_evidence.silent_holders(self.installation.api_vips)
        early = diagnosis_of_nodes.early_holders(self.progress, self._nodes, holders)
        self._held = {(vip, node.name): self._held.get((vip, node.name), now) for vip, node in early.items()}
        for vip, node in early.items():
            if now - self._held[vip, node.name] > usual.TROUBLE * self.patience:
                finding = diagnosis_of_nodes.held_early(vip, node)
                self._teller.tell_trouble(finding.subject, str(finding).partition(": ")[2])
                if self.heals:
                    self._heal(node, seen)

    def _heal(self, node: Node, seen: Run) -> None:
        record = self._record_of(seen)
        name = f"{node.name} keepalived"
        if name in record.names():
            return
        record.note(name)
        try:
            done = heal.give_back(node.address or node.name, self.installation.ssh_key)
        except OperatorError as error:
            done = str(error)
        else:
            self.healed.append(node.name)
        self._teller.tell_trouble(node.name, done)

    def _record_of(self, seen: Run) -> power_cycle.Cycled:
        return power_cycle.Cycled(self.installation.paths.directory / power_cycle.FILE, str(seen.started))

    def _forget_what_was_overcome(self) -> None:
        if self.findings and self.progress.changed > self._diagnosed_at:
            self.findings = []
            self._teller.tell_relief()

    def _is_to_be_asked(self, standstill: tuple[str, str, float], now: float) -> bool:
        if now - self._asked.get(standstill, 0.0) <= usual.ASK_AGAIN * self.patience:
            return False
        self._asked[standstill] = now
        return True

    def _diagnose(self, suspects: Collection[str], *, late: bool) -> None:
        evidence, self._diagnosed_at = diagnosis_evidence.gather(self.installation), self.progress.changed
        self.findings = diagnosis.findings(self.progress, evidence, suspects, late=late)
        self._teller.tell_findings(self.findings)

    def _power_cycle(self, name: str, seen: Run) -> None:
        record = self._record_of(seen)
        vm_name = next(node["vm_name"] for node in self.installation.nodes if node["name"] == name)
        try:
            with connect(self.installation.libvirt_uri) as connection:
                done = power_cycle.cycle(connection, vm_name, name, record)
        except OperatorError as error:
            self._teller.tell_trouble(name, str(error))
            return
        if done:
            self.cycled.append(name)
            self._teller.tell_trouble(name, done)

    def _ended(self, seen: Run) -> dict[str, Any]:
        self._teller.tell_progress(self.progress, self.progress.last or time.time())
        state = self._reading.state(seen)
        if state == endings.FAILED:
            for error in self.progress.errors[-LAST_ERRORS:]:
                self._teller.tell_trouble(INSTALLER, error)
            self._diagnose({INSTALLER, *self._suspects()}, late=is_late(self.progress, self.patience))
        words = endings.words(seen, self.progress, state)
        if state in (endings.FAILED, endings.INTERRUPTED):
            self._teller.tell_trouble(INSTALLER, f"{state}: {words}")
        elif state == endings.NOTHING:
            self._teller.tell(INSTALLER, words)
        return {
            **self._reading.result(seen),
            "troubles": self._teller.troubles,
            "diagnosis": list(map(str, self.findings)),
            "findings": [finding.to_dict() for finding in self.findings],
            "power_cycled": self.cycled,
            "healed": self.healed,
        }

    def _suspects(self) -> set[str]:
        return {finding.subject for finding in findings(self.progress, self._nodes, self.progress.last, self.patience)}
