# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Declared dataclasses as they travel: read from what a module is given, and written as JSON types alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import refuse_all
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import Problems
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import Section, keys_of

Declared = TypeVar("Declared")


def from_dict(declared: type[Declared], data: object, where: str = "") -> Declared:
    """Or all that is wrong with it, a line for each key. Keys that are not declared are the business of others."""
    problems = Problems.none()
    read = Section(declared, ignores_others=True).parse(data, where, problems)
    refuse_all([f"{problem.subject or 'arguments'}: {problem.text}" for problem in problems.found])
    return read


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
