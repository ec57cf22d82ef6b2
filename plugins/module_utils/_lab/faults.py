# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults that BMCs have on purpose, as lab_spec and module bmc_faults declare them."""

# ruff: noqa: RUF009 - key() is how a field is declared; it makes no shared mutable default
from __future__ import annotations

import re
from dataclasses import dataclass

from ansible_collections.nometal.ipi.plugins.module_utils._core import key_types as types
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import InvalidDataError, must_be
from ansible_collections.nometal.ipi.plugins.module_utils._core.scalars import Choice, Whole
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import ListOf, Section, Text, key
from ansible_collections.nometal.ipi.plugins.module_utils._core.wording import counted
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BmcFault

METHODS = ("GET", "HEAD", "POST", "PATCH", "PUT", "DELETE")
PATH_PATTERN = r"[/*][!-~]*"
ANY_PATH, ALWAYS = "*", 100
MOST_RULES = 100
MOST_REQUESTS = 1_000_000
LARGEST_SEED = 2**31 - 1
MOST_MILLISECONDS, MOST_SECONDS = 600_000, 86_400
NEEDS = {
    BmcFault.LATENCY: "milliseconds",
    BmcFault.STATUS: "status",
    BmcFault.MEDIA_STALLED: "seconds",
    BmcFault.REBOOT: "seconds",
}
OF_ANY_REQUEST = (
    *(BmcFault.LATENCY, BmcFault.STATUS, BmcFault.CONNECTION_RESET),
    *(BmcFault.CREDENTIALS_EXPIRED, BmcFault.REBOOT),
)
NOT_BY_IPMI = (BmcFault.MEDIA_FAILED, BmcFault.MEDIA_STALLED, BmcFault.CERTIFICATE_CHANGED)
OF_CONNECTIONS = (BmcFault.CONNECTION_REFUSED, BmcFault.CERTIFICATE_CHANGED)


def _path(value: str) -> str:
    if not re.fullmatch(PATH_PATTERN, value):
        raise ValueError(must_be("a path, in which * matches any text, such as */VirtualMedia/*", value))
    return value


PATH = Text("path", _path, "*/VirtualMedia/*", PATH_PATTERN)


@dataclass(frozen=True)
class FaultRule:
    """One fault, the requests that it concerns, and how often it occurs."""

    fault: BmcFault = key(Choice(tuple(BmcFault)), "What goes wrong.", required=True)
    nodes: tuple[str, ...] = key(
        ListOf(types.WORDS.like("worker-0"), at_most=1000), "Nodes with this fault. None: all.", default=[]
    )
    methods: tuple[str, ...] = key(ListOf(Choice(METHODS)), "HTTP methods. None: all.", default=[])
    path: str = key(PATH, "Paths of the requests.", default=ANY_PATH)
    rate: int = key(Whole(1, ALWAYS), "Percentage of these requests.", default=ALWAYS)
    after: int = key(Whole(0, MOST_REQUESTS), "Number of requests of a node before the first that can fail.", default=0)
    times: int | None = key(Whole(1, MOST_REQUESTS), "How often for each node at most.", derived="unlimited")
    status: int | None = key(Whole(400, 599), "HTTP status (`status`).")
    milliseconds: int | None = key(Whole(1, MOST_MILLISECONDS), "Delay of each request (`latency`).")
    seconds: int | None = key(Whole(1, MOST_SECONDS), "How long it lasts (`media-stalled`, `reboot`).")

    def __post_init__(self) -> None:
        for name in sorted(set(NEEDS.values())):
            value = getattr(self, name)
            if NEEDS.get(self.fault) == name and value is None:
                raise InvalidDataError(name, f"missing; {self.fault} needs it")
            if NEEDS.get(self.fault) != name and value is not None:
                raise InvalidDataError(name, f"must be left out with {self.fault}")
        if self.fault not in OF_ANY_REQUEST:
            self._refuse("methods", "path")
        if self.fault in OF_CONNECTIONS:
            self._refuse("nodes")

    def _refuse(self, *names: str) -> None:
        for name in names:
            if getattr(self, name) not in ((), ANY_PATH):
                raise InvalidDataError(name, f"must be left out with {self.fault}, which cannot be limited by it")

    def __str__(self) -> str:
        """For people who wonder why a BMC fails."""
        name = NEEDS.get(self.fault, "")
        unit = {"milliseconds": " ms", "seconds": " s"}.get(name, "")
        what = f"{self.fault} {getattr(self, name)}{unit}" if name else str(self.fault)
        limits = [f"{self.rate} %"] if self.rate < ALWAYS else []
        limits += [f"after {self.after} requests"] if self.after else []
        limits += [f"at most {counted(self.times, 'time')}"] if self.times else []
        limits += [*self.methods, *([self.path] if self.path != ANY_PATH else [])]
        limits += [f"only {', '.join(self.nodes)}"] if self.nodes else []
        return f"{what} ({', '.join(limits)})" if limits else what


@dataclass(frozen=True)
class Faults:
    """Faults on purpose, for testing what controls the BMCs. The same seed and requests give the same faults."""

    seed: int = key(Whole(0, LARGEST_SEED), "Seed of the decisions which requests fail.", default=0)
    rules: tuple[FaultRule, ...] = key(
        ListOf(Section(FaultRule), at_most=MOST_RULES),
        "Faults, in the order in which a request meets them.",
        default=[],
    )
