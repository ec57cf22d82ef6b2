# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings: whatever is wrong or noteworthy, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OK, WARNING, BLOCKER = "ok", "warning", "blocker"
ENDS = (".", ":", "?", "!")


@dataclass(frozen=True)
class Finding:
    code: str
    """What it is, for programs and tests: `address.outside`."""
    subject: str
    """What it is about: a key of lab_spec, a node, a check."""
    message: str
    advice: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What the message is made of, in JSON types, so that messages are never parsed."""
    severity: str = BLOCKER

    @property
    def text(self) -> str:
        if not self.advice:
            return self.message
        return f"{self.message}{'' if self.message.endswith(ENDS) else '.'} {self.advice}"

    def __str__(self) -> str:
        return f"{self.subject}: {self.text}" if self.subject else self.text

    def to_dict(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "subject": self.subject,
            "severity": self.severity,
            "facts": dict(self.facts),
            "message": self.message,
            "advice": self.advice,
        }
