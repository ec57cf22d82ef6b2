"""Whether what a command names is there: targets, playbooks, inventories, modules, and variables with such values."""

from __future__ import annotations

import importlib
import json
import re
import shlex
from functools import cache
from typing import TYPE_CHECKING, Any

import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from support.checkout import ROOT

from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.variables import variables

if TYPE_CHECKING:
    from collections.abc import Iterator

OURS = "nometal.ipi."
MODULES = "ansible_collections.nometal.ipi.plugins.modules"
JUDGED = ("type", "elements", "choices")


def faults(command: str) -> list[str]:
    program, *words = shlex.split(command, comments=True)
    return [*_of_make(words)] if program == "make" else [*_of_ansible(program, words)]


def _of_make(words: list[str]) -> Iterator[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = " ".join(re.findall(r"^([a-z][a-z0-9 -]*):", text, re.MULTILINE)).split()
    variables = re.findall(r"^([A-Z]+) \?=|origin ([A-Z]+)", text, re.MULTILINE)
    for word in words:
        name, is_given, value = word.partition("=")
        if not is_given and name not in targets:
            yield f"the Makefile has no target {name}"
        elif is_given and not any(name in pair for pair in variables):
            yield f"the Makefile has no variable {name}"
        elif name == "LAB":
            yield from _of_path(value)
        elif name == "ARGS":
            yield from _of_ansible("ansible-playbook", shlex.split(value))


def _of_ansible(program: str, words: list[str]) -> Iterator[str]:
    """A single word may be part of a sentence."""
    module = ""
    for before, word in zip([program, *words], [*([program] if not words else []), *words]):
        if before in ("-e", "--extra-vars"):
            yield from _of_variables(word)
        elif before == "-m":
            module = word
            yield from _of_module(word)
        elif before == "-a" and module.startswith(OURS):
            yield from _of_arguments(module, word)
        elif before == "-i" or word.startswith("playbooks/"):
            yield from _of_path(word)
        elif program == "ansible-playbook" and word.startswith(OURS):
            yield from _of_path(f"playbooks/{word[len(OURS) :]}.yml")
    if program.startswith("playbooks/") and words:
        yield from _of_path(program)


def _of_path(word: str) -> Iterator[str]:
    """Others are the reader's own."""
    if word.startswith(("playbooks/", "inventory/")) and not (ROOT / word).exists():
        yield f"there is no {word}"


def _of_module(name: str) -> Iterator[str]:
    if name.startswith(OURS) and not (ROOT / f"plugins/modules/{name[len(OURS) :]}.py").exists():
        yield f"there is no module {name}"


def _of_arguments(module: str, word: str) -> Iterator[str]:
    options = importlib.import_module(f"{MODULES}.{module[len(OURS) :]}").ARGUMENTS
    for name, value in _pairs(word):
        yield from _of_value(name, value, options[name]) if name in options else [f"{module} has no option {name}"]


def _of_variables(word: str) -> Iterator[str]:
    if word.startswith("@"):
        yield from _of_path(word[1:])
        return
    for name, value in json.loads(word).items() if word.startswith("{") else _pairs(word):
        yield from of_variable(name, value)


def of_variable(name: str, value: Any) -> list[str]:
    """Of a role, a key of lab_spec, or one that playbooks read."""
    if name in role_options():
        return [*_of_value(name, value, role_options()[name])]
    if name in variables():
        return []
    return [] if re.search(rf"\b{name}\b", _playbooks()) else [f"no role and no playbook has a variable {name}"]


def _of_value(name: str, value: Any, option: dict[str, Any]) -> Iterator[str]:
    declared = {key: option[key] for key in JUDGED if key in option}
    yield from ArgumentSpecValidator({name: declared}).validate({name: value}).error_messages


def _pairs(word: str) -> list[tuple[str, str]]:
    return [(name, value) for name, _is, value in (pair.partition("=") for pair in shlex.split(word))]


@cache
def role_options() -> dict[str, dict[str, Any]]:
    """Of all entry points of all roles."""
    files = sorted((ROOT / "roles").glob("*/meta/argument_specs.yml"))
    specs = [yaml.safe_load(file.read_text(encoding="utf-8"))["argument_specs"] for file in files]
    return {name: option for spec in specs for entry in spec.values() for name, option in entry["options"].items()}


@cache
def _playbooks() -> str:
    files = sorted(file for pattern in ("*.yml", "stages/*.yml") for file in (ROOT / "playbooks").glob(pattern))
    return "\n".join(file.read_text(encoding="utf-8") for file in files)
