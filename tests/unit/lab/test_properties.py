# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for any input at all."""

from __future__ import annotations

import copy
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from unit.lab.invariants import violations
from unit.lab.samples import INVENTORIES, shipped
from unit.lab.strategies import JUNK, WRITTEN, deep, mutated, plausible

from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import LabSpecError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model

SETTINGS = settings(
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    max_examples=int(os.environ.get("NOMETAL_EXAMPLES", "200")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def model_or_errors(lab_spec: Any) -> dict[str, Any] | None:
    """Anything but a model or a LabSpecError escapes from here, and fails the test."""
    try:
        return lab_model(lab_spec)
    except LabSpecError as error:
        findings, text = error.findings, str(error)
    text.encode()
    assert findings
    assert all(str(finding).startswith("lab_spec") for finding in findings)
    return None


@SETTINGS
@given(JUNK)
def test_junk_is_refused_cleanly(lab_spec: Any) -> None:
    model_or_errors(lab_spec)


@SETTINGS
@given(mutated())
def test_a_damaged_specification_gives_a_model_or_errors(lab_spec: Any) -> None:
    lab = model_or_errors(lab_spec)
    event("accepted" if lab else "refused")
    assert lab is None or violations(lab) == []


@SETTINGS
@given(WRITTEN)
def test_any_combination_of_keys_gives_a_model_or_errors(lab_spec: Any) -> None:
    lab = model_or_errors({"name": "ha", **lab_spec})
    event("accepted" if lab else "refused")
    assert lab is None or violations(lab) == []


@SETTINGS
@given(plausible())
def test_every_model_is_sound(lab_spec: dict[str, Any]) -> None:
    before = copy.deepcopy(lab_spec)
    lab = model_or_errors(lab_spec)
    event("accepted" if lab else "refused")
    assert lab_spec == before
    if lab is None:
        return
    assert violations(lab) == []
    assert lab_model(reversed_keys(lab_spec)) == lab


@pytest.mark.parametrize("inventory", INVENTORIES)
def test_shipped_models_are_sound(inventory: str) -> None:
    assert violations(lab_model(shipped(inventory))) == []


@pytest.mark.parametrize(
    "place", ["install.config", "machine_network", "nodes.overrides.control-plane-0.network_config"]
)
@pytest.mark.parametrize("levels", [39, 41, 10_000])
def test_deep_nesting(place: str, levels: int) -> None:
    value: Any = {"a": deep(levels)}
    for key in reversed(place.split(".")):
        value = {key: value}
    model_or_errors({"name": "ha", **value})


@pytest.mark.parametrize(
    "place", ["name", "machine_network.mtu", "nodes.workers.memory", "install.config.a", "bmc.tls"]
)
def test_a_number_that_python_itself_refuses_to_print(place: str) -> None:
    value: Any = 10**5000
    for key in reversed(place.split(".")):
        value = {key: value}
    with pytest.raises(LabSpecError, match=f"lab_spec.{place}: must be .* .got a huge number."):
        lab_model({"name": "ha", **value})


def test_a_structure_that_contains_itself() -> None:
    loop: dict[str, Any] = {"name": "ha", "install": {}}
    loop["install"]["config"] = loop
    with pytest.raises(LabSpecError, match="nested deeper than 40 levels"):
        lab_model(loop)


def reversed_keys(value: Any) -> Any:
    """The same specification, written in another order."""
    if isinstance(value, dict):
        return {key: reversed_keys(item) for key, item in reversed(value.items())}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value
