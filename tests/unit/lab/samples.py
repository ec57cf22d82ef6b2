# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of the model have in common."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import LabSpecError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model

TREE = Path(__file__).resolve().parents[3]
INVENTORIES = ("rehearsal", "compact", "ha")


def spec_of(text: str) -> dict[str, Any]:
    """A specification written as an operator writes it; its name may be left out."""
    return {"name": "ha", **(yaml.safe_load(text) or {})}


def model_of(text: str) -> dict[str, Any]:
    return lab_model(spec_of(text))


def findings_of(lab_spec: object, hypervisors: Sequence[str] = ()) -> list[Finding]:
    try:
        lab_model(lab_spec, hypervisors)
    except LabSpecError as error:
        return error.findings
    return []


def errors_of(lab_spec: object) -> list[str]:
    return [str(finding) for finding in findings_of(lab_spec)]


def shipped(inventory: str) -> dict[str, Any]:
    text = (TREE / "inventory" / inventory / "group_vars/all/lab.yml").read_text()
    lab_spec: dict[str, Any] = yaml.safe_load(text)["lab_spec"]
    return lab_spec
