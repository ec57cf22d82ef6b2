# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The events of an installation: one line for each change."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.explanations import key_of
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import timing as usual
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.stages import DOING, Stage
from ansible_collections.nometal.ipi.plugins.module_utils._core.events import EventLog

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.operators import Operators
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import Progress
    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding

INSTALLER, OPERATORS, CONTROL_PLANE = "installer", "operators", "control plane"
STEP = 5 * usual.MINUTE
"""The time spent is reported after each: often enough to see that it goes on, and not a line a minute."""
PERCENT_STEP = 5
AFTER_BOOTSTRAP = (Stage.INITIALIZE, Stage.OPERATORS, Stage.CONSOLE)
BEFORE = set(usual.STAGES) - set(AFTER_BOOTSTRAP)
"""Releases have not all of them."""
WHOLE = sum(each.seconds for each in usual.STAGES.values())
DIGITS = re.compile(r"\d+")
RELIEF = "the installation has gone on since"
ON_AGAIN = "its nodes are switched on"


def installer(progress: Progress, now: float) -> str:
    if progress.stage is None:
        return "begins"
    if progress.stage is Stage.COMPLETE:
        return DOING[progress.stage]
    spent = max(now - progress.since, 0) // STEP * STEP
    took = usual.words(usual.STAGES[progress.stage].seconds)
    times = f"{usual.words(spent)}, usually {took}" if spent else f"usually {took}"
    return f"{DOING[progress.stage]} ({times})"


def part(progress: Progress, now: float) -> float:
    """How much of the whole is behind it, by the time that each stage usually takes."""
    if progress.stage is None or progress.stage is Stage.COMPLETE:
        return float(progress.stage is Stage.COMPLETE)
    over = {span.stage for span in progress.spans} - {progress.stage}
    if progress.stage in AFTER_BOOTSTRAP:
        over |= BEFORE
    elif progress.stage is Stage.CONTROL_PLANE:
        over -= {Stage.BOOTSTRAP}  # which goes on afterwards
    here = usual.STAGES[progress.stage].seconds
    seconds = sum(usual.STAGES[stage].seconds for stage in over if stage in usual.STAGES)
    return (seconds + min(max(now - progress.since, 0), here)) / WHOLE


class Teller:
    """Tells what has changed, and nothing twice. Times count from when the installer began."""

    def __init__(self, path: Path, started: float | None = None) -> None:
        self._started = time.time() if started is None else started
        self._log = EventLog(path, self._started)
        self._told: dict[str, tuple[str, bool]] = {}
        self._states: dict[str, str] = {}
        self._errors: set[tuple[str, str]] = set()
        self._found: set[tuple[str, str]] = set()
        self._operators: tuple[int, str, int] | None = None
        self._part: float | None = None
        self._stage: Stage | None = None
        self.troubles: list[str] = []

    def tell(self, who: str, state: str, *, trouble: bool = False, since: float | None = None) -> None:
        """Since: when it came to be so, if that was not now."""
        if self._told.get(who) != (state, trouble):
            self._told[who] = (state, trouble)
            part, at = self._part if who == INSTALLER else None, None if since is None else since - self._started
            self._log.note(who, state, trouble=trouble, part=part, at=at)

    def tell_trouble(self, who: str, what: str, since: float | None = None) -> None:
        """Once, whatever becomes of it."""
        said = f"{who}: {what}"
        if said not in self.troubles:
            self.troubles.append(said)
            self.tell(who, what, trouble=True, since=since)

    def tell_off(self, finding: Finding | None) -> None:
        """Which control plane nodes are switched off; None: none is any more."""
        if finding:
            self.tell_trouble(finding.subject, finding.text)
            self.tell(finding.subject, finding.text, trouble=True)  # also if it was so before, and overcome
        elif CONTROL_PLANE in self._told:
            self.tell(CONTROL_PLANE, ON_AGAIN)

    def _tell_error(self, who: str, what: str, since: float) -> None:
        """Some count the seconds until they may be tried again."""
        said = (who, DIGITS.sub("", what))
        if said not in self._errors:
            self._errors.add(said)
            self.tell_trouble(who, what, since)

    def tell_findings(self, findings: Iterable[Finding]) -> None:
        """Those that have not been told since anything went on."""
        for finding in findings:
            if key_of(finding) not in self._found:
                self._found.add(key_of(finding))
                self.tell(finding.subject, finding.text, trouble=True)

    def tell_relief(self) -> None:
        """Nodes, and the installer, have states that say it. What is off is off until it is on."""
        for who in {who for who, _what in self._found} - {*self._states, OPERATORS, CONTROL_PLANE}:
            self.tell(who, RELIEF)
        self._found = set()

    def tell_progress(self, progress: Progress, now: float) -> None:
        self._part = max(self._part or 0.0, round(part(progress, now), 2))
        is_new = progress.stage is not self._stage
        self._stage = progress.stage
        self._tell_state(INSTALLER, installer(progress, now), progress.since if is_new else now)
        for name, host in progress.hosts.items():
            if host.trouble:
                self._tell_error(name, host.trouble, host.troubled_since)
            elif host.state:
                self._tell_state(name, host.state, host.since)
        if progress.stage in (Stage.INITIALIZE, Stage.OPERATORS):
            self._tell_operators(progress.operators, now)

    def _tell_state(self, who: str, state: str, since: float) -> None:
        """A trouble of its stands until its state has changed."""
        if self._states.get(who) != state:
            self._states[who] = state
            self.tell(who, state, since=since)

    def _tell_operators(self, operators: Operators, now: float) -> None:
        words = operators.words()
        step = (operators.percent or 0) // PERCENT_STEP
        whom = ", ".join([*operators.waiting, *sorted(operators.unstable)])
        told = (operators.total, whom, step)
        if words and told != self._operators:
            self._operators = told
            self.tell(OPERATORS, words, since=now)
