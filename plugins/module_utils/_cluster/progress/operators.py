# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the log says of the cluster's operators while the cluster initializes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

STILL = re.compile(r"\s*Still waiting for the cluster to initialize: (.*)", re.DOTALL)
DONE = re.compile(r"(\d+) of (\d+) done \((\d+)% complete\)")
PERCENT = re.compile(r"(\d+)% complete")
WAITING = re.compile(r"waiting (?:up to \d+ minutes )?on ([^\n]+)")
UPDATING = re.compile(r"Some cluster operators are still updating: (.+)")
NOT_YET = re.compile(
    r"(?:\* )?Cluster operators? (?P<names>[\w-]+(?:, [\w-]+)*) (?:is|are) (?:not available|degraded|updating versions)"
)
DETAIL = re.compile(r"\* (?P<what>.+)")
STABLE = re.compile(r"Cluster Operator (?P<name>[\w-]+) (?:(?P<stable>is stable)|became unstable|is Progressing=)")
NAME = re.compile(r"[a-z][\w-]*$")
MANY = 1000


@dataclass
class Operators:
    done: int = 0
    total: int = 0
    """Of all that the release consists of, of which operators are a part."""
    percent: int | None = None
    waiting: tuple[str, ...] = ()
    hindrances: list[str] = field(default_factory=list)
    """What the release's own operator says that stands in the way."""
    unstable: set[str] = field(default_factory=set)
    _in_list: bool = False
    _best: tuple[int, int, int] = (0, 0, -MANY)

    def heard(self, msg: str) -> bool:
        """Whether it has come further than ever: going to and fro does not count as progress."""
        found = STILL.match(msg)
        if found:
            self._heard_of_progress(found[1].strip())
        elif self._in_list and msg.startswith("* "):
            self._heard_of_hindrance(msg)
        else:
            self._heard_of_stability(msg)
        now = (self.done, self.percent or 0, -len(self.waiting or self.unstable) if self.percent else -MANY)
        best = (max(now[0], self._best[0]), max(now[1], self._best[1]), max(now[2], self._best[2]))
        further, self._best = best != self._best, best
        return further

    def words(self) -> str:
        """Empty as long as nothing is known."""
        count = f"{self.done} of {self.total} ({self.percent}%)" if self.total else ""
        if not count and self.percent is not None:
            count = f"{self.percent}%"
        names = self.waiting or tuple(sorted(self.unstable))
        return ", ".join(filter(None, [count, f"waiting for {', '.join(names)}" if names else ""]))

    def _heard_of_progress(self, said: str) -> None:
        first, *rest = said.split("\n")
        self._in_list = first.endswith("errors are preventing progress:")
        self.hindrances = []
        if self._in_list or NOT_YET.match(first):
            self.waiting = ()
        counted, percent = DONE.search(said), PERCENT.search(said)
        waiting = WAITING.search(said) or UPDATING.search(said)
        if counted:
            self.done, self.total = int(counted[1]), int(counted[2])
        if percent:
            self.percent = int(percent[1])
        if counted or percent or waiting:
            self.waiting = _names(waiting[1]) if waiting else ()
        for line in [first, *rest]:
            self._heard_of_hindrance(line)

    def _heard_of_hindrance(self, line: str) -> None:
        found, detail = NOT_YET.match(line), DETAIL.match(line)
        if found:
            self.waiting = tuple(dict.fromkeys([*self.waiting, *_names(found["names"])]))
        elif detail:
            self.hindrances.append(detail["what"])

    def _heard_of_stability(self, msg: str) -> None:
        self._in_list = False
        found = STABLE.match(msg)
        if msg.startswith(("Cluster is initialized", "All cluster operators have completed progressing")):
            self.waiting, self.hindrances, self.unstable = (), [], set()
            self.done, self.percent = self.total, self.percent and 100
        elif found and found["stable"]:
            self.unstable.discard(found["name"])
        elif found:
            self.unstable.add(found["name"])


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(", ") if NAME.match(name))
