# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watching an installation until it ends: telling how far it is, noticing what stands still, and finding out why."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._install import (
    bundle_secrets,
    diagnosis,
    diagnosis_evidence,
    diagnosis_of_nodes,
    endings,
    power_cycle,
    run,
    stalls,
    usual,
)
from ansible_collections.nometal.ipi.plugins.module_utils._install.events import INSTALLER, Teller
from ansible_collections.nometal.ipi.plugins.module_utils._install.log import Tail
from ansible_collections.nometal.ipi.plugins.module_utils._install.redact import Redactor
from ansible_collections.nometal.ipi.plugins.module_utils._install.stages import Stage
from ansible_collections.nometal.ipi.plugins.module_utils._install.story import Story
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.connection import connect

if TYPE_CHECKING:
    from collections.abc import Collection

    from ansible_collections.nometal.ipi.plugins.module_utils._install.diagnosis_evidence import Installation
    from ansible_collections.nometal.ipi.plugins.module_utils._install.run import Run

PAUSE = 1.0
LOOK_AT_NODES = 15.0
MOST_HASTE = 0.1
RECENT = 60.0
"""Seconds: what the log has from before is history, of which only the end is told."""
CONTROL_PLANE = ("control-plane", "master")
LAST_ERRORS = 3


@dataclass
class Watch:
    installation: Installation
    patience: float = 1.0
    """By which all limits are multiplied."""

    def __post_init__(self) -> None:
        nodes = self.installation.nodes
        names = [node["name"] for node in nodes if node.get("role") in CONTROL_PLANE]
        self.story = Story(control_plane=names)
        self.diagnosis: list[str] = []
        secrets = bundle_secrets.known(self.installation.place, Path(self.installation.bmc_home))
        self._tail = Tail(self.installation.place.log, Redactor(secrets).without_known)
        self._asked: dict[tuple[str, str, float], float] = {}
        self._looked_at_nodes = 0.0
        self._nodes: list[Any] = []
        self.cycled: list[str] = []
        self._diagnosed_at = 0.0
        self._completed_at = 0.0

    @property
    def _haste(self) -> float:
        """Little patience needs frequent looks."""
        return min(max(self.patience, MOST_HASTE), 1.0)

    def follow(self) -> dict[str, Any]:
        """Until it ends."""
        self._teller = Teller(self.installation.place.events, run.read(self.installation.place).started)
        self._began = time.time()
        while True:
            # In this order: after its end come no entries that would be missed.
            seen = run.read(self.installation.place)
            self._read_log()
            if not seen.running:
                return self._ended(seen)
            self._teller.tell_story(self.story, time.time())
            self._forget_what_was_overcome()
            self._look_for_standstill(seen)
            time.sleep(PAUSE * self._haste)

    def glance(self) -> dict[str, Any]:
        """How far it is now; nothing is told and nothing touched."""
        seen = run.read(self.installation.place)
        for entry in self._tail.entries():
            self._add(entry)
        return self._result(seen)

    def _read_log(self) -> None:
        for entry in self._tail.entries():
            self._add(entry)
            if entry.at >= self._began - RECENT:
                self._teller.tell_story(self.story, entry.at)

    def _add(self, entry: Any) -> None:
        was_complete = self.story.stage is Stage.COMPLETE
        self.story.add(entry)
        if self.story.stage is Stage.COMPLETE and not was_complete:
            self._completed_at = entry.at

    def _look_for_standstill(self, seen: Run) -> None:
        now = time.time()
        if now - self._looked_at_nodes > LOOK_AT_NODES * self._haste:
            self._look_at_nodes(now)
        found = stalls.suspicions(self.story, self._nodes, now, self.patience)
        new = [each for each in found if self._is_to_be_asked((each.who, each.kind, each.since), now)]
        for suspicion in new:
            self._teller.tell_trouble(suspicion.who, suspicion.words)
            if suspicion.kind == stalls.HANGS:
                self._power_cycle(suspicion.who, seen)
        if new:
            self._diagnose({suspicion.who for suspicion in found}, late=True)

    def _look_at_nodes(self, now: float) -> None:
        self._looked_at_nodes, self._nodes = now, diagnosis_evidence.nodes(self.installation)
        if self._nodes:
            self._teller.tell_off(diagnosis_of_nodes.switched_off(self.story, self._nodes))

    def _forget_what_was_overcome(self) -> None:
        if self.diagnosis and self.story.changed > self._diagnosed_at:
            self.diagnosis = []
            self._teller.tell_relief()

    def _is_to_be_asked(self, suspicion: tuple[str, str, float], now: float) -> bool:
        if now - self._asked.get(suspicion, 0.0) <= usual.ASK_AGAIN * self.patience:
            return False
        self._asked[suspicion] = now
        return True

    def _diagnose(self, suspects: Collection[str], *, late: bool) -> None:
        evidence, self._diagnosed_at = diagnosis_evidence.gather(self.installation), self.story.changed
        found = diagnosis.findings(self.story, evidence, suspects, late=late)
        self._teller.tell_findings(found)
        self.diagnosis = [str(finding) for finding in found]

    def _power_cycle(self, name: str, seen: Run) -> None:
        record = power_cycle.Cycled(self.installation.place.directory / power_cycle.FILE, str(seen.started))
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
        self._teller.tell_story(self.story, self.story.last or time.time())
        state = self._state(seen)
        if state == endings.FAILED:
            for error in self.story.errors[-LAST_ERRORS:]:
                self._teller.tell_trouble(INSTALLER, error)
            self._diagnose({INSTALLER, *self._suspects()}, late=self._is_late())
        words = endings.words(seen, self.story, state)
        if state in (endings.FAILED, endings.INTERRUPTED):
            self._teller.tell_trouble(INSTALLER, f"{state}: {words}")
        elif state == endings.NOTHING:
            self._teller.tell(INSTALLER, words)
        return {**self._result(seen), "troubles": self._teller.troubles}

    def _suspects(self) -> set[str]:
        found = stalls.suspicions(self.story, self._nodes, self.story.last, self.patience)
        return {suspicion.who for suspicion in found}

    def _is_late(self) -> bool:
        usually = usual.STAGES.get(self.story.stage) if self.story.stage else None
        return usually is not None and self.story.last - self.story.since > usually.seconds * self.patience

    def _state(self, seen: Run) -> str:
        completed = self._completed_at > 0 and self._completed_at >= int(seen.started or 0)
        return endings.state_of(seen, self.story, completed=completed)

    def _result(self, seen: Run) -> dict[str, Any]:
        story, state = self.story, self._state(seen)
        story.close(seen.ended or (time.time() if seen.running else story.last))
        place, is_there = self.installation.place, state == endings.INSTALLED
        return {
            "state": state,
            "exit_code": seen.exit_code,
            "words": endings.words(seen, story, state),
            "stage": story.stage.value if story.stage else "",
            "stages": stages(story, seen.started or 0.0),
            "hosts": {name: host.state for name, host in story.hosts.items()},
            "operators": story.operators.words(),
            "errors": story.errors,
            "troubles": [],
            "diagnosis": self.diagnosis,
            "power_cycled": self.cycled,
            "console_url": story.console_url,
            "api_url": story.api_url,
            "kubeconfig": str(place.kubeconfig) if is_there else "",
            "password_file": str(place.password) if is_there else "",
        }


def stages(story: Story, since: float) -> list[dict[str, Any]]:
    """Times of the log are whole seconds."""
    spent = story.spent(int(since))
    return [
        {"stage": stage.value, "seconds": round(seconds), "usual": round(usual.STAGES[stage].seconds)}
        for stage, seconds in spent.items()
        if stage in usual.STAGES
    ]
