# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

OK = "ok"
WARNING = "warning"
BLOCKER = "blocker"
FREE = "free or owned by this lab"


@dataclass(frozen=True)
class Finding:
    """The outcome of one check; `advice` says what to do unless it is ok."""

    status: str
    measured: str
    advice: str = ""


def ok(measured: str) -> Finding:
    return Finding(OK, measured)


def warning(measured: str, advice: str) -> Finding:
    return Finding(WARNING, measured, advice)


def blocker(measured: str, advice: str) -> Finding:
    return Finding(BLOCKER, measured, advice)


def listed(findings: Sequence[object], most: int, separator: str = "; ") -> str:
    """The first ones, with the number of the others."""
    rest = f" and {len(findings) - most} more" if len(findings) > most else ""
    return separator.join(map(str, findings[:most])) + rest


def blocker_if(blocks: bool, measured: str, advice: str) -> Finding:
    return blocker(measured, advice) if blocks else warning(measured, advice)
