# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The models of the shipped inventories, word for word.

After a change that is meant: NOMETAL_UPDATE_GOLDEN=1 pytest tests/unit/lab, and look at the difference.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml
from unit.lab.samples import INVENTORIES, TREE, shipped

from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("inventory", INVENTORIES)
def test_model_of_shipped_inventory(inventory: str) -> None:
    model = json.dumps(lab_model(shipped(inventory)), indent=2) + "\n"
    golden = GOLDEN / f"{inventory}.json"
    if os.environ.get("NOMETAL_UPDATE_GOLDEN"):
        golden.write_text(model)
    assert model == golden.read_text()


@pytest.mark.parametrize("inventory", ["compact", "ha"])
def test_commented_installation_is_one_that_is_accepted(inventory: str) -> None:
    """The operator removes the comment signs, as the file says, and nothing else."""
    text = (TREE / f"inventory/{inventory}/group_vars/all/lab.yml").read_text()
    lines = text.splitlines()
    start = lines.index("  # install:")
    opened = [line.replace("  # ", "  ", 1) if line != "  #" else "" for line in lines[start:]]
    lab_spec = yaml.safe_load("\n".join([*lines[:start], *opened]))["lab_spec"]
    assert lab_model(lab_spec)["install"]["version"] == "stable-4.20"
