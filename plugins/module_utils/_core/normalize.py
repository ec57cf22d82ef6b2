# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values as Ansible hands them over: stripped of its wrappers, and shown in messages."""

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


def normalize_text(value: str) -> str:
    """The text alone: Ansible's tagged and unsafe strings are subclasses whose str() is themselves."""
    return str.__str__(value)


def show(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = normalize_text(value)
        return repr(text if len(text) <= SHOWN_LENGTH else text[:SHOWN_LENGTH] + "...")
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        return "a huge number"
    return str(value) if isinstance(value, (int, float)) else describe(value)


def got(value: object) -> str:
    """How every message shows the value that it refuses."""
    if value is None:
        return "(got nothing)"
    is_plain = isinstance(value, (str, int, float)) or is_mapping(value) or is_list(value)
    return f"(got {show(value) if is_plain else value})"


def must_be(what: str, value: object) -> str:
    return f"must be {what} {got(value)}"


def already_used(owner: str, value: object) -> str:
    return f"already used by {owner}: choose another {got(value)}"


def must_not_overlap(other: object, value: object) -> str:
    return f"must not overlap {other} {got(value)}"


def unknown_key(name: str, known: Iterable[str]) -> str:
    close = nearest(name, sorted(known))
    return f"unknown key; did you mean {close}?" if close else f"unknown key; {known_keys(known)}"


def known_keys(known: Iterable[str]) -> str:
    return f"known keys: {', '.join(sorted(known))}"


def abbreviated(names: Sequence[str], most: int) -> str:
    return ", ".join(names[:most]) + (" and so on" if len(names) > most else "")


def show_key(name: object) -> str:
    """A key inside a path, quoted only where it would garble the message."""
    if isinstance(name, str) and name.isascii() and name.isprintable() and name and len(name) <= SHOWN_LENGTH:
        return normalize_text(name)
    return show(name)


def describe(value: object) -> str:
    """A value with its type: `7, a number`."""
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
    return f"a value of type {type(value).__name__}"


def unquoted(value: object) -> str | None:
    """What the operator may have written where YAML read a number or a date: 52:54:00 is 190440 in base 60."""
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


class InvalidDataError(ValueError):
    def __init__(self, at: str, text: str) -> None:
        super().__init__(text)
        self.at = at


def normalize(value: object, at: str, depth: int = 0) -> Any:
    """A copy made of JSON types; InvalidDataError names the key of a value that has no such type."""
    if depth > DEEPEST_NESTING:
        raise InvalidDataError(at, f"must not be nested deeper than {DEEPEST_NESTING} levels")
    if isinstance(value, Mapping):
        return {
            _normalize_key(key, at): normalize(item, f"{at}.{show_key(key)}", depth + 1) for key, item in value.items()
        }
    if is_list(value) and isinstance(value, Sequence):
        return [normalize(item, f"{at}[{index}]", depth + 1) for index, item in enumerate(value)]
    return _normalize_scalar(value, at)


def _normalize_key(key: object, at: str) -> str:
    if not isinstance(key, str):
        raise InvalidDataError(at, f"keys must be text: put the key in quotes {got(key)}")
    return _encodable(normalize_text(key), at)


def _normalize_scalar(value: object, at: str) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _encodable(normalize_text(value), at)
    if isinstance(value, int) and abs(value) <= LARGEST_INTEGER:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    raise InvalidDataError(at, must_be("a text, number, boolean, list or mapping", value))


def _encodable(text: str, at: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidDataError(at, "must be valid Unicode text: remove the lone surrogates") from None
    return text
