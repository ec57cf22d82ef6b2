"""Argument specs say what the dataclasses say that read the arguments, and so does the documentation of modules:
the same keys, types, needs, defaults and choices."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from ansible_collections.nometal.ipi.plugins.module_utils._core.scalars import Choice, FreeMapping, Whole, YesNo
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import Key, ListOf, Section, Text, keys_of
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.lab import Lab as FirewallLab
from ansible_collections.nometal.ipi.plugins.modules import host_doctor, lab_firewall, libvirt_bridge_net

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PLUGINS = Path(__file__).parents[3] / "plugins"
PACKAGE = "ansible_collections.nometal.ipi.plugins"
MODULES = {path.stem: import_module(f"{PACKAGE}.modules.{path.stem}") for path in PLUGINS.glob("modules/*.py")}
TYPES = {Text: {"str", "path"}, Choice: {"str"}, Whole: {"int"}, YesNo: {"bool"}, FreeMapping: {"dict"}}


def differences(declared: type, spec: dict[str, Any], where: str = "") -> list[str]:
    keys = {item.name: item for item in keys_of(declared)}
    found = [f"{where}{name}: only one has it" for name in keys.keys() ^ spec.keys()]
    for name in keys.keys() & spec.keys():
        found += of_option(keys[name], spec[name], f"{where}{name}")
    return found


def default_of(option: dict[str, Any]) -> Any:
    return {} if option.get("apply_defaults") else option.get("default")


def of_option(item: Key, option: dict[str, Any], where: str) -> list[str]:
    of_list = isinstance(item.value_type, ListOf)
    value_type: Any = item.value_type.item if isinstance(item.value_type, ListOf) else item.value_type
    section = isinstance(value_type, Section)
    said = {"dict"} if section else TYPES[type(value_type)]
    found = [f"{where}: type"] if option["elements" if of_list else "type"] not in said else []
    found += [f"{where}: no list"] if of_list != (option["type"] == "list") else []
    found += [f"{where}: required"] if item.required != option.get("required", False) else []
    found += [f"{where}: default"] if item.default != default_of(option) else []
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
        ("lab", {"required": True}, "lab: required"),
        ("vms", {"options": {}}, "vms.uuid: only one has it"),
        (
            "ports",
            {"options": {**host_doctor.ARGUMENTS["ports"]["options"], "protocol": {"type": "str", "default": "tcp"}}},
            "protocol: choices",
        ),
    ],
)
def test_a_difference_is_found(name: str, change: dict[str, Any], difference: str) -> None:
    arguments: dict[str, Any] = host_doctor.ARGUMENTS
    found = differences(Needs, {**arguments, name: {**arguments[name], **change}})
    assert any(text.endswith(difference) for text in found), found


def documented(name: str) -> dict[str, Any]:
    """With what its fragments of the documentation say."""
    about = yaml.safe_load(MODULES[name].DOCUMENTATION)
    named = about.get("extends_documentation_fragment", [])
    fragments = [import_module(f"{PACKAGE}.doc_fragments.{each.rpartition('.')[2]}") for each in named]
    shared = (yaml.safe_load(each.ModuleDocFragment.DOCUMENTATION).get("options", {}) for each in fragments)
    options = dict(about.get("options", {}))
    for each in shared:
        options = {**each, **options}
    return options


def undocumented(spec: Mapping[str, Any], told: Mapping[str, Any], where: str = "") -> Iterator[str]:
    yield from (f"{where}{name}: only one has it" for name in sorted(spec.keys() ^ told.keys()))
    for name in spec.keys() & told.keys():
        option, about = spec[name], told[name]
        for part, otherwise in (
            *(("type", "str"), ("elements", None), ("required", False)),
            *(("default", None), ("choices", None), ("aliases", None)),
        ):
            if option.get(part, otherwise) != about.get(part, otherwise):
                yield f"{where}{name}: {part}"
        yield from undocumented(option.get("options", {}), about.get("suboptions", {}), f"{where}{name}.")


@pytest.mark.parametrize("name", sorted(name for name, module in MODULES.items() if hasattr(module, "ARGUMENTS")))
def test_modules_are_documented_as_they_are(name: str) -> None:
    assert list(undocumented(MODULES[name].ARGUMENTS, documented(name))) == []


@pytest.mark.parametrize(
    ("name", "change", "difference"),
    [
        ("mtu", {"default": 1400}, "mtu: default"),
        ("mtu", {"type": "str"}, "mtu: type"),
        ("forward", {"choices": ["nat"]}, "forward: choices"),
        ("addresses", {"elements": "str"}, "addresses: elements"),
        ("addresses", {"suboptions": {}}, "addresses.cidr: only one has it"),
        ("lab", {"required": False}, "lab: required"),
    ],
)
def test_a_difference_of_the_documentation_is_found(name: str, change: dict[str, Any], difference: str) -> None:
    told = documented("libvirt_bridge_net")
    assert difference in undocumented(libvirt_bridge_net.ARGUMENTS, {**told, name: {**told[name], **change}})


@pytest.mark.parametrize("name", MODULES)
def test_no_module_returns_what_ansible_takes_for_the_state_of_a_task(name: str) -> None:
    """A host with a result `unreachable` takes no more part in the play."""
    returned = yaml.safe_load(getattr(MODULES[name], "RETURN", "")) or {}
    assert not returned.keys() & {"unreachable", "failed", "skipped", "skip_reason", "invocation", "exception"}
