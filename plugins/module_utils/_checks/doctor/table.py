# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import BLOCKER, OK, WARNING, Finding

WIDTH = 110
SHOWN = {OK: "ok", WARNING: "warning", BLOCKER: "BLOCKER"}


def table(findings: Sequence[Finding]) -> list[str]:
    """Lines of text: what was measured beside each check, and what to do below it."""
    width = max(len(finding.subject) for finding in findings)
    lines = [line for finding in findings for line in _row(finding, width)]
    return [*lines, _summary([finding.severity for finding in findings])]


def _row(finding: Finding, width: int) -> list[str]:
    start = f"{SHOWN[finding.severity]:<8} {finding.subject:<{width}}  "
    indent = " " * len(start)
    return [*_wrapped(finding.message, start, indent), *_wrapped(finding.advice, f"{indent}-> ", f"{indent}   ")]


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _summary(statuses: list[str]) -> str:
    counts = {status: statuses.count(status) for status in SHOWN}
    return (
        f"{_counted(counts[BLOCKER], 'blocker')}, {_counted(counts[WARNING], 'warning')}, "
        f"{counts[OK]} of {len(statuses)} checks ok"
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
