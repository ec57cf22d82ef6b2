# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings as the doctor's judges make them. The engine adds the check, as their subject."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import BLOCKER, OK, WARNING, Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

FREE = "free or owned by this lab"


def ok(code: str, measured: str, **facts: Any) -> Finding:
    return Finding(code, "", measured, "", facts, OK)


def warning(code: str, measured: str, advice: str, **facts: Any) -> Finding:
    return Finding(code, "", measured, advice, facts, WARNING)


def blocker(code: str, measured: str, advice: str, **facts: Any) -> Finding:
    return Finding(code, "", measured, advice, facts, BLOCKER)


def blocker_if(blocks: bool, code: str, measured: str, advice: str, **facts: Any) -> Finding:
    return (blocker if blocks else warning)(code, measured, advice, **facts)


def listed(findings: Sequence[object], most: int, separator: str = "; ") -> str:
    """The first ones, with the number of the others."""
    rest = f" and {len(findings) - most} more" if len(findings) > most else ""
    return separator.join(map(str, findings[:most])) + rest
