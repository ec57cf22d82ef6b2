# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rehearsal has come to know, and the checks that are made of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding

OK, FAILED, SKIPPED = "ok", "failed", "skipped"
HOST, BOOTSTRAP = "host", "bootstrap"


@dataclass
class Observations:
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
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What was seen, in JSON types, as causes need it, so that `seen` is never parsed."""
    cause: Finding | None = None
    """Of a check that failed, as far as it is known."""

    @property
    def code(self) -> str:
        return code_of(self.check)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "code": self.code, "cause": self.cause.to_dict() if self.cause else None}


def code_of(check: str) -> str:
    """For programs: `installers-bridge`."""
    return re.sub(r"[^a-z0-9]+", "-", check.lower().replace("'", ""))


def compared(check: str, who: str, expected: Any, seen: Any, **facts: Any) -> Check:
    """Lists are as good in any order."""
    wanted, found = plain(expected), plain(seen)
    state = OK if wanted == found else FAILED
    return Check(check, who, state, wanted, found or "nothing", facts=facts)


def verdict(check: str, who: str, error: str, expected: str, seen: str = "", **facts: Any) -> Check:
    return Check(check, who, FAILED if error else OK, expected, error or seen or expected, facts=facts)


def skipped(check: str, who: str, reason: str) -> Check:
    return Check(check, who, SKIPPED, "", reason)


def plain(value: Any) -> str:
    if isinstance(value, (list, tuple, set, frozenset)):
        return ", ".join(sorted(map(str, value)))
    return "" if value is None else str(value)
