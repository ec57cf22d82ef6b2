# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which request or connection meets which fault. The same seed and order of requests give the same decisions."""

from __future__ import annotations

import logging
import re
from fnmatch import fnmatchcase
from random import Random
from typing import TYPE_CHECKING

from nometal_bmc.config.sections import ConfigError
from nometal_bmc.faults.rules import ALWAYS, NONE, Fault, Faults, load
from nometal_bmc.files import signature

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nometal_bmc.faults.rules import Rule

__all__ = ["CurrentFaults", "Decisions"]

LOG = logging.getLogger(__name__)
SYSTEM = "/redfish/v1/Systems/[^/]+"
INSERT_MEDIA = "/redfish/v1/(Systems|Managers)/[^/]+/VirtualMedia/[^/]+/Actions/VirtualMedia.InsertMedia"
CONCERNS = {
    Fault.POWER_STATE_WRONG: ("GET", SYSTEM),
    Fault.POWER_IGNORED: ("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset"),
    Fault.BOOT_IGNORED: ("PATCH", SYSTEM),
    Fault.MEDIA_FAILED: ("POST", INSERT_MEDIA),
    Fault.MEDIA_STALLED: ("POST", INSERT_MEDIA),
}
"""Faults that only some requests can meet."""


class Decisions:
    """Of the rules from when they were written until they change."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.rebooting: dict[str, float] = {}
        """Until when, by node; whoever looks at a clock fills it."""
        self._streams: dict[tuple[int, str], _Stream] = {}

    def of_request(self, node: str, method: str, path: str) -> Iterator[Rule]:
        """Lazily: a request that a fault has ended counts for no later rule."""
        for number, rule in enumerate(self.faults.rules):
            if not rule.fault.of_connections and _concerns(rule, node, method, path) and self._meets(number, node):
                yield rule

    def of_connection(self, fault: Fault) -> bool:
        return any(self._meets(number, "") for number, rule in enumerate(self.faults.rules) if rule.fault == fault)

    def _meets(self, number: int, node: str) -> bool:
        if (number, node) not in self._streams:
            self._streams[number, node] = _Stream(self.faults.rules[number], f"{self.faults.seed}/{number}/{node}")
        return self._streams[number, node].meets()


class _Stream:
    """What one rule decides about one node: requests about other nodes do not change it."""

    def __init__(self, rule: Rule, seed: str) -> None:
        self._rule = rule
        self._random = Random(seed)  # noqa: S311 - not a secret
        self._asked = self._met = 0

    def meets(self) -> bool:
        drawn = self._random.randrange(ALWAYS)
        self._asked += 1
        due = self._asked > self._rule.after and (self._rule.times is None or self._met < self._rule.times)
        met = due and drawn < self._rule.rate
        self._met += met
        return met


class CurrentFaults:
    """Those of the file as it is now; when it becomes invalid, those from before stay."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, ...] = ()
        self._decisions = Decisions(NONE)

    @property
    def decisions(self) -> Decisions:
        found = signature(self._path)
        if found != self._seen:
            self._seen = found
            self._take()
        return self._decisions

    def _take(self) -> None:
        try:
            faults = load(self._path)
        except ConfigError as error:
            LOG.error("Keeping the faults from before: %s", error)  # noqa: TRY400 - the text says it all
            return
        self._decisions = Decisions(faults)
        if faults.rules:
            LOG.warning("Faults on purpose, seed %d: %s", faults.seed, ", ".join(map(str, faults.rules)))
        else:
            LOG.info("No faults on purpose any more")


def _concerns(rule: Rule, node: str, method: str, path: str) -> bool:
    if rule.nodes and node not in rule.nodes:
        return False
    if rule.methods and method not in rule.methods:
        return False
    only_method, pattern = CONCERNS.get(rule.fault, (method, ".*"))
    return method == only_method and re.fullmatch(pattern, path) is not None and fnmatchcase(path, rule.path)
