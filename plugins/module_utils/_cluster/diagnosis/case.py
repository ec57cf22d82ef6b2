# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a diagnosis is made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.evidence import Evidence
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import Progress


@dataclass(frozen=True)
class Case:
    progress: Progress
    evidence: Evidence
    suspects: frozenset[str] = frozenset()
    late: bool = True
    """Whether anything has taken longer than it should."""
