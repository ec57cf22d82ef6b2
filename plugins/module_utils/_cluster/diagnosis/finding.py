# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a diagnosis is made of, and what it is made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.evidence import Evidence
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import Story


@dataclass(frozen=True)
class Case:
    story: Story
    evidence: Evidence
    suspects: frozenset[str] = frozenset()
    late: bool = True
    """Whether anything has taken longer than it should."""


@dataclass(frozen=True)
class Finding:
    who: str
    text: str
    same: str = ""
    """What another one has in common with it that says the same with other figures."""

    @property
    def key(self) -> tuple[str, str]:
        return self.who, self.same or self.text

    def __str__(self) -> str:
        return f"{self.who}: {self.text}"
