"""Dataclasses as JSON, and back by their declarations."""

from __future__ import annotations

import sys
import types
import typing
from collections import abc
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any

SETS, TUPLES, UNIONS = (set, frozenset), (tuple,), (typing.Union, getattr(types, "UnionType", typing.Union))


def written(value: Any) -> Any:
    """For JSON."""
    if is_dataclass(value):
        return {each.name: written(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, abc.Mapping):
        return {key: written(each) for key, each in value.items()}
    if isinstance(value, SETS):
        return sorted(map(written, value))
    return [*map(written, value)] if isinstance(value, (list, tuple)) else value


def read(kind: Any, value: Any, known: tuple[type, ...] = ()) -> Any:
    """Known: classes that declarations name, and that their modules import for type checkers only."""
    origin: Any = typing.get_origin(kind) or kind
    of = typing.get_args(kind)
    if isinstance(origin, type) and is_dataclass(origin):
        hints = _hints(origin, known)
        return origin(**{name: read(hints[name], each, known) for name, each in value.items()})
    if origin in UNIONS:
        return None if value is None else read(of[0], value, known)
    if not of:
        return kind(value) if isinstance(kind, type) and issubclass(kind, Enum) else value
    if isinstance(value, dict):
        return {key: read(of[1], each, known) for key, each in value.items()}
    items = [read(of[0], each, known) for each in value]
    return origin(items) if origin in (*SETS, *TUPLES) else items


@cache
def _hints(declared: type, known: tuple[type, ...]) -> dict[str, Any]:
    names = {name: getattr(abc, name) for name in abc.__all__} | {each.__name__: each for each in known}
    return typing.get_type_hints(declared, vars(sys.modules[declared.__module__]), names)
