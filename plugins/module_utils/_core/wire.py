# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Declared dataclasses as they travel: as arguments of a module, and as JSON types alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import refuse_all
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import Problems
from ansible_collections.nometal.ipi.plugins.module_utils._core.scalars import Choice
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import Key, ListOf, Section, keys_of

Declared = TypeVar("Declared")


def argument_spec(declared: type, needed: Collection[str] | None = None) -> dict[str, Any]:
    """As the options of a module. Needed: those required in every state, if not all that it needs."""
    keys = keys_of(declared)
    required = {item.name for item in keys if item.required} if needed is None else needed
    return {item.name: _option(item, required=item.name in required) for item in keys}


def _option(item: Key, *, required: bool) -> dict[str, Any]:
    value_type = item.value_type.item if isinstance(item.value_type, ListOf) else item.value_type
    option: dict[str, Any] = {"type": item.value_type.argument}
    if value_type is not item.value_type:
        option["elements"] = value_type.argument
    if isinstance(value_type, Choice):
        option["choices"] = [str(choice) for choice in value_type.options]
    if isinstance(value_type, Section) and value_type.has_options and not value_type.ignores_others:
        option["options"] = argument_spec(value_type.declared)
    if item.aliases:
        option["aliases"] = [*item.aliases]
    if required:
        option["required"] = True
    elif "options" in option and item.default == {}:
        option["apply_defaults"] = True
    elif item.default is not None and not item.required:
        option["default"] = item.default
    return option


def from_dict(declared: type[Declared], data: object, where: str = "") -> Declared:
    """Or all that is wrong with it, a line for each key. Keys that are not declared are the business of others."""
    problems = Problems.none()
    read = Section(declared, ignores_others=True).parse(data, where, problems)
    refuse_all(lines_of(problems))
    return read


def lines_of(problems: Problems) -> list[str]:
    return [f"{problem.subject or 'arguments'}: {problem.text}" for problem in problems.found]


def to_dict(value: Any) -> Any:
    """Mappings, lists and plain texts instead of dataclasses, tuples and words."""
    if is_dataclass(value) and not isinstance(value, type):
        names = {item.attribute: item.name for item in keys_of(type(value))}
        return {names.get(item.name, item.name): to_dict(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_dict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_dict(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return value if value is None or isinstance(value, (str, int, float)) else str(value)
