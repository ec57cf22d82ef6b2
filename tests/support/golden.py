# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that hold what something must amount to, such as the wording of all findings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding


def compare(text: str, file: Path) -> None:
    """After a change that is meant: NOMETAL_UPDATE_GOLDEN=1 pytest, and look at the difference."""
    if os.environ.get("NOMETAL_UPDATE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def wording(head: str, cases: Mapping[str, Iterable[Finding]]) -> str:
    """By case, code and text of each finding."""
    blocks = ("\n".join([name, *(f"  {each.code}  {each}" for each in found)]) for name, found in cases.items())
    return head + "".join(f"\n{block}\n" for block in blocks)
