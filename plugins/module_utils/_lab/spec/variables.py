# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys of lab_spec as variables of their own, such as lab_spec_nodes_workers_count, for those who cannot edit a file.

They are made from the declaration of lab_spec. A survey of AWX hands them over as texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.addresses import OneOrTwo
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import nearest, normalize_text
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import ROOT
from ansible_collections.nometal.ipi.plugins.module_utils._core.scalars import FreeMapping
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import (
    ListOf,
    MapOf,
    Section,
    ValueType,
    keys_of,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.lab import LAB_SPEC

PREFIX = f"{ROOT}_"
Path = tuple[str, ...]


@cache
def variables() -> Mapping[str, tuple[Path, ValueType]]:
    """Which key of lab_spec each variable is."""
    return {PREFIX + "_".join(path): (path, value_type) for path, value_type in _leaves(LAB_SPEC.declared)}


def _leaves(section: type) -> Iterator[tuple[Path, ValueType]]:
    for key in keys_of(section):
        if isinstance(key.value_type, Section):
            yield from (((key.name, *path), value_type) for path, value_type in _leaves(key.value_type.declared))
        elif _can_be_written(key.value_type):
            yield (key.name,), key.value_type


def _can_be_written(value_type: ValueType) -> bool:
    """In a text: all but mappings. Of a list of mappings, those with one required key, which a line gives."""
    if isinstance(value_type, ListOf) and isinstance(value_type.item, Section):
        return _only_required(value_type.item) is not None
    return not isinstance(value_type, (MapOf, FreeMapping))


def _only_required(item: Section) -> str | None:
    required = [key.name for key in keys_of(item.declared) if key.required]
    return required[0] if len(required) == 1 else None


def with_variables(lab_spec: Any, given: Mapping[str, Any]) -> tuple[Any, list[Finding]]:
    """lab_spec with what the variables say, and variables that are none of them. An empty one says nothing."""
    known = variables()
    merged = lab_spec
    for name, value in given.items():
        if name in known and not _is_empty(value):
            path, value_type = known[name]
            merged = _set(merged, path, _read(value, value_type))
    # A mapping is no value of a key: it is a part that the inventory puts together with others.
    unknown = [
        name
        for name, value in given.items()
        if name.startswith(PREFIX) and name not in known and not isinstance(value, Mapping)
    ]
    return merged, [Finding("variable.unknown", name, _unknown(name)) for name in sorted(unknown)]


def _unknown(name: str) -> str:
    close = nearest(name.removeprefix(PREFIX), [known.removeprefix(PREFIX) for known in variables()])
    hint = f"; did you mean {PREFIX}{close}?" if close else "."
    return f"unknown variable{hint} Keys that have no variable can be set in lab_spec, in the inventory."


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip()) or value == []


def _set(lab_spec: Any, path: Path, value: Any) -> Any:
    """A copy. Another value where a mapping must be stays, and is reported with the rest."""
    if not path:
        return value
    if lab_spec is not None and not isinstance(lab_spec, Mapping):
        return lab_spec
    below = lab_spec or {}
    return {**below, path[0]: _set(below.get(path[0]), path[1:], value)}


def _read(value: Any, value_type: ValueType) -> Any:
    """The lines of a text are the items of a list."""
    if not isinstance(value, str):
        return value
    text = normalize_text(value).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if isinstance(value_type, OneOrTwo):
        return lines if len(lines) > 1 else text
    if not isinstance(value_type, ListOf):
        return text
    name = _only_required(value_type.item) if isinstance(value_type.item, Section) else None
    return [{name: line} for line in lines] if name else lines
