# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A row of the table of causes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Optional

from ansible_collections.nometal.ipi.plugins.module_utils._core.explanations import Explanation, Wording

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.evidence import Evidence
    from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import Check
    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab

    Facts = Optional[Mapping[str, Any]]
    Look = Callable[[Lab, Evidence, Check], Facts]


@dataclass(frozen=True)
class Cause:
    code: str
    checks: tuple[str, ...]
    """Those that fail by it."""
    look: Look
    """The facts if it is the cause, and None otherwise."""
    message: Wording
    advice: Wording = ""

    def of(self, lab: Lab, evidence: Evidence, check: Check) -> Finding | None:
        facts = self.look(lab, evidence, check) if check.check in self.checks else None
        return None if facts is None else Explanation(self.message, self.advice).of(self.code, check.who, facts)
