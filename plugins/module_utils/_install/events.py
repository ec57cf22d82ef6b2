# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told of an installation to those who follow it: one line for each change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._install import usual
from ansible_collections.nometal.ipi.plugins.module_utils._install.stages import DOING, Stage
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.line import Diary

if TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.nometal.ipi.plugins.module_utils._install.operators import Operators
    from ansible_collections.nometal.ipi.plugins.module_utils._install.story import Story

INSTALLER, OPERATORS = "installer", "operators"
STEP = 5 * usual.MINUTE
"""The time spent is told anew after each: often enough to see that it lives, and not a line a minute."""
PERCENT_STEP = 5


def installer(story: Story, now: float) -> str:
    if story.stage is None:
        return "begins"
    if story.stage is Stage.COMPLETE:
        return DOING[story.stage]
    spent = max(now - story.since, 0) // STEP * STEP
    took = usual.words(usual.STAGES[story.stage].seconds)
    times = f"{usual.words(spent)}, usually {took}" if spent else f"usually {took}"
    return f"{DOING[story.stage]} ({times})"


class Teller:
    """Tells what has changed, and nothing twice."""

    def __init__(self, path: Path) -> None:
        self._diary = Diary(path)
        self._told: dict[str, tuple[str, bool]] = {}
        self._operators: tuple[int, str, int] | None = None
        self.troubles: list[str] = []

    def tell(self, who: str, state: str, *, trouble: bool = False) -> None:
        if self._told.get(who) != (state, trouble):
            self._told[who] = (state, trouble)
            self._diary.note(who, state, trouble=trouble)

    def tell_trouble(self, who: str, what: str) -> None:
        """Once, whatever becomes of it."""
        said = f"{who}: {what}"
        if said not in self.troubles:
            self.troubles.append(said)
            self.tell(who, what, trouble=True)

    def tell_story(self, story: Story, now: float) -> None:
        self.tell_installer(story, now)
        for name, host in story.hosts.items():
            if host.trouble:
                self.tell_trouble(name, host.trouble)
            elif host.state:
                self.tell(name, host.state)
        if story.stage in (Stage.INITIALIZE, Stage.OPERATORS):
            self._tell_operators(story.operators)

    def tell_installer(self, story: Story, now: float) -> None:
        """A trouble of the installer's stands until its stage or its time has changed."""
        state = installer(story, now)
        if self._told.get("") != (state, False):
            self._told[""] = (state, False)
            self.tell(INSTALLER, state)

    def _tell_operators(self, operators: Operators) -> None:
        words = operators.words()
        step = (operators.percent or 0) // PERCENT_STEP
        whom = ", ".join([*operators.waiting, *sorted(operators.unstable)])
        told = (operators.total, whom, step)
        if words and told != self._operators:
            self._operators = told
            self.tell(OPERATORS, words)
