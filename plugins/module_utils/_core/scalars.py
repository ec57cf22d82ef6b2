# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The types of value besides text and the sections that we declare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import (
    InvalidDataError,
    must_be,
    nearest,
    normalize,
    normalize_text,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import Problems
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import UNREADABLE


@dataclass(frozen=True)
class Choice:
    """One of some texts, or of an enum's members."""

    argument: ClassVar[str] = "str"
    options: tuple[str, ...]
    label: str = "choice"

    @property
    def example(self) -> str:
        return self.options[0]

    def parse(self, value: object, at: str, problems: Problems) -> Any:
        if isinstance(value, str) and normalize_text(value) in self.options:
            return self.options[self.options.index(normalize_text(value))]
        close = nearest(value, self.options) if isinstance(value, str) else None
        hint = f"; did you mean {close}?" if close else ""
        problems.add_unknown("schema.choice", at, must_be(f"one of {', '.join(self.options)}", value) + hint)
        return UNREADABLE


@dataclass(frozen=True)
class Whole:
    """A whole number; digits in a text count too, since `-e` and older Ansible's templates hand over text."""

    argument: ClassVar[str] = "int"
    low: int
    high: int
    label: str = "whole number"

    @property
    def example(self) -> str:
        return str(self.low)

    def parse(self, value: object, at: str, problems: Problems) -> Any:
        number = value
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= len(str(self.high)):
            number = int(normalize_text(value))
        if isinstance(number, int) and not isinstance(number, bool) and self.low <= number <= self.high:
            return int(number)
        text = must_be(f"a whole number from {self.low} to {self.high}", value)
        problems.add_unknown("schema.number", at, text)
        return UNREADABLE


@dataclass(frozen=True)
class YesNo:
    """A boolean; `true` as text counts too, for the same reason as digits."""

    argument: ClassVar[str] = "bool"
    label: str = "boolean"
    example: str = "true"

    def parse(self, value: object, at: str, problems: Problems) -> Any:
        word = normalize_text(value).lower() if isinstance(value, str) else value
        if isinstance(value, bool) or word in ("true", "false"):
            return word in (True, "true")
        problems.add_unknown("schema.boolean", at, must_be("true or false", value))
        return UNREADABLE


@dataclass(frozen=True)
class FreeMapping:
    """A mapping that another program defines; checked only for being plain data."""

    argument: ClassVar[str] = "dict"
    label: str
    example: str = "{}"

    def parse(self, value: object, at: str, problems: Problems) -> Any:
        if not isinstance(value, Mapping):
            problems.add_unknown("schema.mapping", at, must_be("a mapping", value))
            return UNREADABLE
        try:
            return normalize(value, at)
        except InvalidDataError as error:
            problems.add_unknown("schema.data", error.at, str(error))
            return UNREADABLE
