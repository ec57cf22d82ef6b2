# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reference page and the editors' schema say what the specification is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # ships without types
import lab_reference
import pytest
import yaml
from unit.lab.samples import INVENTORIES, TREE, errors_of


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = lab_reference.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("path", [lab_reference.PAGE, lab_reference.SCHEMA], ids=lambda path: path.name)
def test_generated_file_is_current(path: Path) -> None:
    assert path.read_text() == lab_reference.generated()[path]


@pytest.mark.parametrize("inventory", INVENTORIES)
def test_schema_accepts_shipped_inventories(validator: Any, inventory: str) -> None:
    path = TREE / "inventory" / inventory / "group_vars/all/lab.yml"
    validator.validate(yaml.safe_load(path.read_text()))
    assert path.read_text().startswith("# yaml-language-server: $schema=")
    named = path.read_text().splitlines()[0].partition("=")[2]
    assert (path.parent / named).resolve() == lab_reference.SCHEMA


def test_example_of_the_page_is_accepted(validator: Any) -> None:
    document = yaml.safe_load(lab_reference.EXAMPLE)
    validator.validate(document)
    assert errors_of(document["lab_spec"]) == []


@pytest.mark.parametrize(
    "document",
    [
        {"lab_spec": {"name": "ha", "install": None, "bmc": None}},
        {"lab_spec": {"name": "ha", "machine_network": {"vips": {"api": ["192.168.126.5", "fd00::5"]}}}},
        {"lab_spec": {"name": "ha"}, "something_else": 1},
    ],
)
def test_schema_accepts(validator: Any, document: object) -> None:
    validator.validate(document)


@pytest.mark.parametrize(
    "lab_spec",
    [
        {},
        {"name": "Ha"},
        {"name": "ha", "nmae": "ha"},
        {"name": "ha", "nodes": {"workers": {"count": -1}}},
        {"name": "ha", "nodes": {"workers": {"memory": "16GB"}}},
        {"name": "ha", "bmc": {"protocol": "telnet"}},
        {"name": "ha", "nodes": {"overrides": {"worker-0": {"mac": 5}}}},
    ],
)
def test_schema_refuses_what_the_model_refuses(validator: Any, lab_spec: object) -> None:
    assert not validator.is_valid({"lab_spec": lab_spec})
    assert errors_of(lab_spec)


def test_page_names_every_key() -> None:
    text = lab_reference.PAGE.read_text()
    names = {name for section in _definitions().values() for name in section["properties"]}
    assert [name for name in names if f"| `{name}` |" not in text] == []


def _definitions() -> dict[str, Any]:
    definitions: dict[str, Any] = json.loads(lab_reference.SCHEMA.read_text())["$defs"]
    return definitions
