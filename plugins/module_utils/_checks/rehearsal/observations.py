# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rehearsal has come to know, and the checks that are made of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

OK, FAILED, SKIPPED = "ok", "failed", "skipped"
HOST, BOOTSTRAP = "host", "bootstrap"
GIVEN_BY = " from DHCP server "
"""Behind an address that the lab's own server has not given."""


@dataclass
class Story:
    """Everything that guests and host have told, as it came."""

    seen: dict[str, Any] = field(default_factory=dict)
    """What the bootstrap VM has seen, by topic."""
    steps: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    """By node and step: whether it went well, what was said, and how long it took."""
    reports: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By node: what it has reported from its medium, what it has seen and written, and reported from its disk."""
    host: dict[str, Any] = field(default_factory=dict)
    """What was seen from the host, by topic."""
    finished: bool = False
    broken: str = ""
    """What ended the bootstrap VM's play before its time."""

    def add(self, event: dict[str, Any]) -> None:
        kind, who = event.get("event"), event.get("who", "")
        if kind == "seen":
            self.seen[event["topic"]] = event["value"]
        elif kind == "step":
            self.steps.setdefault(who, {}).setdefault(event["step"], event)
            if not event["ok"]:
                self.steps[who][event["step"]] = event
        elif kind == "report" and event["value"] is not None:
            self.reports.setdefault(who, {})[event["place"]] = event["value"]
        elif kind == "finished":
            self.finished = True
        elif kind == "broke":
            self.broken = event["said"]

    def stop(self, reason: str) -> None:
        """Why what comes next was not tried."""
        self.seen["hindrance"] = reason
        self.finished = True

    @property
    def hindrance(self) -> str:
        return self.seen.get("hindrance", "")

    def report(self, node: str, place: str) -> dict[str, Any] | None:
        return self.reports.get(node, {}).get(place)

    def step(self, node: str, *names: str) -> dict[str, Any] | None:
        """The first of these that failed; otherwise the last that was made."""
        made = [self.steps[node][name] for name in names if name in self.steps.get(node, {})]
        return next((step for step in made if not step["ok"]), made[-1] if made else None)


@dataclass(frozen=True)
class Check:
    check: str
    who: str
    state: str
    expected: str = ""
    seen: str = ""
    advice: str = ""


def compared(check: str, who: str, expected: Any, seen: Any) -> Check:
    """Lists are as good in any order."""
    wanted, found = plain(expected), plain(seen)
    return Check(check, who, OK if wanted == found else FAILED, wanted, found or "nothing")


def verdict(check: str, who: str, trouble: str, expected: str, seen: str = "") -> Check:
    return Check(check, who, FAILED if trouble else OK, expected, trouble or seen or expected)


def skipped(check: str, who: str, reason: str) -> Check:
    return Check(check, who, SKIPPED, "", reason)


def plain(value: Any) -> str:
    if isinstance(value, (list, tuple, set, frozenset)):
        return ", ".join(sorted(map(str, value)))
    return "" if value is None else str(value)
