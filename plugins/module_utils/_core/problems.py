# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors in a lab_spec, collected so that all of them are reported at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding

ROOT = "lab_spec"


class LabSpecError(OperatorError):
    """An invalid lab_spec. Its text lists every error, one per line."""

    def __init__(self, found: list[Finding]) -> None:
        everywhere = (replace(finding, subject=inside(ROOT, finding.subject)) for finding in found)
        self.findings = list(dict.fromkeys(everywhere))
        count = len(self.findings)
        heading = f"{ROOT} has {count} error{'s' if count > 1 else ''}:"
        super().__init__("\n".join([heading, *(f"- {finding}" for finding in self.findings)]))


def inside(path: str, key: str) -> str:
    return f"{path}.{key}" if path and key else path or key


def is_within(path: str, outer: str) -> bool:
    return outer in (path, "") or path.startswith((f"{outer}.", f"{outer}["))


@dataclass
class Problems:
    """The errors found so far, and the keys whose values could not be read."""

    found: list[Finding]
    """Their subjects are keys, below lab_spec: `machine_network.vips.api`."""
    unknown: set[str]

    @classmethod
    def none(cls) -> Problems:
        return cls([], set())

    def add(self, code: str, path: str, text: str) -> None:
        self.found.append(Finding(code, path, text))

    def add_unknown(self, code: str, path: str, text: str) -> None:
        """Report a value that could not be read. Rules that need it are skipped."""
        self.add(code, path, text)
        self.unknown.add(path)

    def knows(self, path: str) -> bool:
        return not any(is_within(path, gap) or is_within(gap, path) for gap in self.unknown)

    def concern(self, path: str) -> bool:
        return not self.knows(path) or any(is_within(finding.subject, path) for finding in self.found)
