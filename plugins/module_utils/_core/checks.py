# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine of checks: a table of rows, each of which measures and judges, and what comes of them."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Callable, Generic, TypeVar

from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import WARNING, Finding

Case = TypeVar("Case")


@dataclass(frozen=True)
class Check(Generic[Case]):
    """One row of a table: `measure` reads; `judge` is pure and compares what was read with the case."""

    name: str
    measure: Callable[[Case], Any]
    judge: Callable[[Any, Case], Finding]

    def of(self, case: Case, measured: Callable[[Callable[[Case], Any]], Any]) -> Finding:
        try:
            found = self.judge(measured(self.measure), case)
        except Exception as error:
            found = _unmeasured(self.name, f"{type(error).__name__}: {error}".rstrip(": "))
        return replace(found, subject=self.name)


def _unmeasured(name: str, reason: str) -> Finding:
    return Finding(
        code=f"{name}.not-measured",
        subject=name,
        message=f"could not be measured: {reason}",
        advice="The lab may still work: fix the error, or check it by hand.",
        facts={"reason": reason},
        severity=WARNING,
    )


def examine(checks: Iterable[Check[Case]], case: Case) -> list[Finding]:
    """A finding of each check; what two of them measure is measured once."""
    measured = functools.lru_cache(maxsize=None)(lambda measure: measure(case))
    return [check.of(case, measured) for check in checks]
