# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How findings are worded: tables with a row for each code, so that judges give facts alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any, Callable, Union

from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding

Wording = Union[str, Callable[..., str]]
"""A text with facts in braces, or what makes one of the facts."""


@dataclass(frozen=True)
class Explanation:
    message: Wording
    advice: Wording = ""
    has_figures: bool = False
    """Whether its facts are figures, by which it does not become another finding."""

    def of(self, code: str, subject: str, facts: Mapping[str, Any]) -> Finding:
        return Finding(code, subject, worded(self.message, facts), worded(self.advice, facts).strip(), facts)


def worded(wording: Wording, facts: Mapping[str, Any]) -> str:
    return wording(**facts) if callable(wording) else _Lister().vformat(wording, (), facts)


class _Lister(Formatter):
    def format_field(self, value: Any, format_spec: str) -> Any:
        return super().format_field(
            ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value, format_spec
        )
