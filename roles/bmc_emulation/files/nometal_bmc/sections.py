# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading JSON objects to the last key: what is missing, of another type or unknown is a mistake with a name."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ConfigError", "Section", "whole"]

T = TypeVar("T")


class ConfigError(Exception):
    """The file cannot be read, or says something that cannot be."""


class Section:
    """One object of the file. What nobody has taken from it is a mistake."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise ConfigError(f"{where}: expected an object")
        self.where = where
        self.left = dict(value)

    def take(self, key: str, kind: type[T]) -> T:
        if key not in self.left:
            raise ConfigError(f"{self.where}: {key} is missing")
        value = self.left.pop(key)
        if type(value) is not kind:  # not isinstance: True is no number here
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

    def objects(self, key: str) -> Iterator[Section]:
        for at, value in enumerate(self.take(key, list)):
            with whole(value, f"{key}[{at}]") as section:
                yield section


@contextmanager
def whole(value: Any, where: str) -> Iterator[Section]:
    section = Section(value, where)
    yield section
    if section.left:
        raise ConfigError(f"{where}: unknown: {', '.join(sorted(section.left))}")
