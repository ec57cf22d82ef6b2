# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading JSON objects to the last key: what is missing, of another type or unknown is an error that names it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ConfigError", "Section", "whole"]

T = TypeVar("T")


class ConfigError(Exception):
    """The file cannot be read, or says something that cannot be."""


class Section:
    """One object of the file. A key that has not been taken from it is unknown."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise ConfigError(f"{where}: expected an object")
        self.where = where
        self.left = dict(value)

    def take(self, key: str, kind: type[T]) -> T:
        if key not in self.left:
            raise ConfigError(f"{self.where}: {key} is missing")
        value = self.left.pop(key)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):  # True is no number here
            raise ConfigError(f"{self.where}: {key} must be of type {kind.__name__}, not {type(value).__name__}")
        return value

    def take_or_none(self, key: str, kind: type[T]) -> T | None:
        if key in self.left and self.left[key] is None:
            return self.left.pop(key)
        return self.take(key, kind)

    def texts(self, key: str) -> list[str]:
        values = self.take(key, list)
        if not all(isinstance(value, str) for value in values):
            raise ConfigError(f"{self.where}: {key} must be a list of texts")
        return values

    def each(self, key: str, read: Callable[[Section], T]) -> tuple[T, ...]:
        return tuple(whole(value, f"{key}[{at}]", read) for at, value in enumerate(self.take(key, list)))


def whole(value: Any, where: str, read: Callable[[Section], T]) -> T:
    section = Section(value, where)
    result = read(section)
    if section.left:
        raise ConfigError(f"{where}: unknown: {', '.join(sorted(section.left))}")
    return result
