"""Argument specs say what the dataclasses say that read the arguments: the same keys, needs, defaults and choices.

That the documentation says so, too, is what `ansible-test sanity` sees to.
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core.scalars import Choice, FreeMapping, Whole, YesNo
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import Key, ListOf, Section, Text, keys_of
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.lab import Lab as FirewallLab
from ansible_collections.nometal.ipi.plugins.modules import host_doctor, lab_firewall

TYPES = {Text: {"str", "path"}, Choice: {"str"}, Whole: {"int"}, YesNo: {"bool"}, FreeMapping: {"dict"}}


def differences(declared: type, spec: dict[str, Any], where: str = "") -> list[str]:
    keys = {item.name: item for item in keys_of(declared)}
    found = [f"{where}{name}: only one has it" for name in keys.keys() ^ spec.keys()]
    for name in keys.keys() & spec.keys():
        found += of_option(keys[name], spec[name], f"{where}{name}")
    return found


def of_option(item: Key, option: dict[str, Any], where: str) -> list[str]:
    of_list = isinstance(item.value_type, ListOf)
    value_type: Any = item.value_type.item if isinstance(item.value_type, ListOf) else item.value_type
    section = isinstance(value_type, Section)
    said = {"dict"} if section else TYPES[type(value_type)]
    found = [f"{where}: type"] if option["elements" if of_list else "type"] not in said else []
    found += [f"{where}: no list"] if of_list != (option["type"] == "list") else []
    found += [f"{where}: required"] if item.required != option.get("required", False) else []
    found += [f"{where}: default"] if item.default != option.get("default") else []
    if isinstance(value_type, Choice):
        found += [f"{where}: choices"] if [*value_type.options] != option.get("choices") else []
    if section and "options" in option:
        found += differences(value_type.declared, option["options"], f"{where}.")
    elif section:  # a part of the model, whose other keys are ignored
        found += [] if value_type.ignores_others else [f"{where}: no options"]
    return found


@pytest.mark.parametrize(
    ("declared", "spec", "others"),
    [
        (Needs, host_doctor.ARGUMENTS, set()),
        (FirewallLab, lab_firewall.ARGUMENTS, {"state", "memory"}),
    ],
)
def test_they_agree(declared: type, spec: dict[str, Any], others: set[str]) -> None:
    assert others < spec.keys()
    assert differences(declared, {name: spec[name] for name in spec.keys() - others}) == []


@pytest.mark.parametrize(
    ("name", "change", "difference"),
    [
        ("vcpus", {"type": "str"}, "vcpus: type"),
        ("vcpus", {"default": 1}, "vcpus: default"),
        ("bridges", {"type": "str"}, "bridges: no list"),
        ("name", {"required": True}, "name: required"),
        ("vms", {"options": {}}, "vms.uuid: only one has it"),
        (
            "ports",
            {"options": {**host_doctor.PORT, "protocol": {"type": "str", "default": "tcp"}}},
            "protocol: choices",
        ),
    ],
)
def test_a_difference_is_found(name: str, change: dict[str, Any], difference: str) -> None:
    arguments: dict[str, Any] = host_doctor.ARGUMENTS
    found = differences(Needs, {**arguments, name: {**arguments[name], **change}})
    assert any(text.endswith(difference) for text in found), found
