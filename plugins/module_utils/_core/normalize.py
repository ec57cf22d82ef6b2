# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values as Ansible hands them over: stripped of its wrappers, and named so that a person recognises them."""

from __future__ import annotations

import datetime
import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

SHOWN_LENGTH = 60
LARGEST_INTEGER = 2**63 - 1
DEEPEST_NESTING = 40
BASE_60 = 60


def is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))


def plain_text(value: str) -> str:
    """The text alone: Ansible's tagged and unsafe strings are subclasses whose str() is themselves."""
    return str.__str__(value)


def show(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = plain_text(value)
        return repr(text if len(text) <= SHOWN_LENGTH else text[:SHOWN_LENGTH] + "...")
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        return "a huge number"
    return str(value) if isinstance(value, (int, float)) else describe(value)


def show_key(name: object) -> str:
    """A key inside a path: as it is, unless that would garble the message."""
    if isinstance(name, str) and name.isascii() and name.isprintable() and name and len(name) <= SHOWN_LENGTH:
        return plain_text(name)
    return show(name)


def describe(value: object) -> str:
    """What a wrong value is, in words: `7, a number`."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return f"{show(value)}, a boolean"
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        return "a huge number"
    if isinstance(value, (int, float)):
        return f"{show(value)}, a number"
    if isinstance(value, str):
        return f"{show(value)}, a text"
    return _describe_structure(value)


def _describe_structure(value: object) -> str:
    if isinstance(value, (datetime.date, datetime.datetime)):
        return f"{value.isoformat()}, a date"
    if is_mapping(value):
        return "a mapping"
    if is_list(value):
        return "a list"
    return f"of the type {type(value).__name__}"


def unquoted(value: object) -> str | None:
    """What the operator may have written where YAML saw a number or a date: 52:54:00 is 190440 to it, in base 60."""
    if isinstance(value, int) and not isinstance(value, bool) and BASE_60 <= value <= LARGEST_INTEGER:
        return _base_60(value)
    return str(value) if isinstance(value, (float, datetime.date)) else None


def _base_60(value: int) -> str:
    digits: list[str] = []
    while value:
        value, digit = divmod(value, BASE_60)
        digits.insert(0, f"{digit:02d}")
    return ":".join(digits)


def nearest(word: str, known: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(word[:SHOWN_LENGTH], list(known), n=1)), None)


class NotPlainError(ValueError):
    def __init__(self, at: str, text: str) -> None:
        super().__init__(text)
        self.at = at


def plain(value: object, at: str, depth: int = 0) -> Any:
    """A copy made of JSON's own types; NotPlainError names what is none of them, and where."""
    if depth > DEEPEST_NESTING:
        raise NotPlainError(at, f"is nested deeper than {DEEPEST_NESTING} levels, which nothing needs; less is right")
    if isinstance(value, Mapping):
        return {_plain_key(key, at): plain(item, f"{at}.{show_key(key)}", depth + 1) for key, item in value.items()}
    if is_list(value) and isinstance(value, Sequence):
        return [plain(item, f"{at}[{index}]", depth + 1) for index, item in enumerate(value)]
    return _plain_scalar(value, at)


def _plain_key(key: object, at: str) -> str:
    if not isinstance(key, str):
        raise NotPlainError(at, f"has the key {show(key)}, which is no text; put it in quotes")
    return _encodable(plain_text(key), at)


def _plain_scalar(value: object, at: str) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _encodable(plain_text(value), at)
    if isinstance(value, int) and abs(value) <= LARGEST_INTEGER:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    raise NotPlainError(at, f"is {describe(value)}; a text, number, boolean, list or mapping is right")


def _encodable(text: str, at: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotPlainError(at, "holds broken characters (lone surrogates); proper text is right") from None
    return text
