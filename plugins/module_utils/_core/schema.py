# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a specification is declared: dataclasses whose fields say what a key holds and means.

The declaration itself is in spec.py. Validation, the reference page and the editors' JSON schema all read it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, Protocol, TypeVar

from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import (
    InvalidDataError,
    got,
    is_list,
    known_keys,
    must_be,
    nearest,
    normalize_text,
    show_key,
    unknown_key,
    unquoted,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import Problems, inside

T = TypeVar("T")
UNREADABLE = object()
"""What parse() returns for a value that it has reported as invalid."""


class ValueType(Protocol):
    """A type of value: how it is read, and what it is called in the reference."""

    @property
    def label(self) -> str: ...

    @property
    def example(self) -> str: ...

    @property
    def argument(self) -> str:
        """Its type as a module's argument, as Ansible calls it."""

    def parse(self, value: object, at: str, problems: Problems) -> Any: ...


@dataclass(frozen=True)
class Key:
    name: str
    """As it is written."""
    attribute: str
    value_type: ValueType
    meaning: str
    default: Any
    """As an operator would write it; None when there is none or when it is derived."""
    derived: str
    required: bool
    aliases: tuple[str, ...] = ()
    """Of a module's argument, which Ansible reads as its name."""


def key(value_type: ValueType, meaning: str, *, default: Any = None, derived: str = "", required: bool = False) -> Any:
    about = Key("", "", value_type, meaning, default, derived, required)
    typed = None if default is None else _typed(value_type, default)
    fallback: dict[str, Any] = {} if required and default is None else {"default_factory": lambda: typed}
    # pylint wants field() inside a dataclass; key() is what our declarations say there instead.
    return field(metadata={"key": about}, **fallback)  # pylint: disable=invalid-field-call


def called(name: str, declared: Any, *, aliases: tuple[str, ...] = ()) -> Any:
    """A key whose attribute has another name."""
    declared.metadata = {"key": replace(declared.metadata["key"], name=name, aliases=aliases)}
    return declared


def _typed(value_type: ValueType, default: Any) -> Any:
    problems = Problems.none()
    typed = value_type.parse(default, "", problems)
    if problems.found:
        raise ValueError(problems.found[0].message)
    return typed


@dataclass(frozen=True)
class Located:
    """A section in a list, with its path: items that cannot be read are left out of the list."""

    at: str = field(default="", init=False, compare=False)


@cache
def keys_of(section: type) -> tuple[Key, ...]:
    declared = [item for item in fields(section) if "key" in item.metadata]
    about = ((item.name, item.metadata["key"]) for item in declared)
    return tuple(replace(each, name=each.name or attribute, attribute=attribute) for attribute, each in about)


def wanted(value_type: ValueType) -> str:
    article = "an" if value_type.label[0] in "aeioIAE" else "a"
    return f"{article} {value_type.label}, such as {value_type.example}"


@dataclass(frozen=True)
class Section:
    """A mapping with fixed keys, read into the dataclass that declares them."""

    argument: ClassVar[str] = "dict"
    declared: type
    label: str = "mapping"
    example: str = "{}"
    may_be_empty: bool = True
    ignores_others: bool = False
    """Keys that are not declared, and so of a part of something larger."""
    has_options: bool = True
    """Of a module: or else its unknown keys are reported with all else that is wrong, and not by Ansible alone."""

    def parse(self, value: object, at: str, problems: Problems) -> Any:
        if not isinstance(value, Mapping):
            text = must_be(f"a mapping with keys such as {_listed(self.declared, 3)}", value)
            problems.add_unknown("schema.mapping", at, text)
            return UNREADABLE
        if not (self.may_be_empty or value):
            problems.add_unknown("schema.empty", at, f"must have at least one key of {_listed(self.declared)}")
            return UNREADABLE
        given = self._known_keys(value, at, problems)
        read: dict[str, Any] = {}
        for item in keys_of(self.declared):
            _read_key(item, given.get(item.name), inside(at, item.name), problems, read)
        lacking = [item for item in keys_of(self.declared) if item.required and item.default is None]
        return UNREADABLE if any(item.attribute not in read for item in lacking) else self._made(read, at, problems)

    def _made(self, read: dict[str, Any], at: str, problems: Problems) -> Any:
        """A dataclass may refuse values that contradict each other: InvalidDataError names the key."""
        try:
            made = self.declared(**read)
        except InvalidDataError as error:
            where = inside(at, error.at)
            if problems.knows(where):
                problems.add_unknown("schema.value", where, str(error))
            return UNREADABLE
        if isinstance(made, Located):
            object.__setattr__(made, "at", at)
        return made

    def _known_keys(self, value: Mapping[Any, Any], at: str, problems: Problems) -> dict[str, Any]:
        known = {item.name for item in keys_of(self.declared)}
        given: dict[str, Any] = {}
        for name, item in value.items():
            if not isinstance(name, str):
                problems.add("schema.key-type", at, f"keys must be text {got(name)}; {known_keys(known)}")
            elif name in known:
                given[normalize_text(name)] = item
            elif not self.ignores_others:
                _report_unknown_key(normalize_text(name), known, at, problems)
        return given


def _listed(section: type, at_most: int | None = None) -> str:
    return ", ".join(item.name for item in keys_of(section)[:at_most])


def _read_key(item: Key, value: object, at: str, problems: Problems, read: dict[str, Any]) -> None:
    """Leave the key out of `read`, and so to its default, when it is absent or unreadable."""
    if value is None:
        if item.required and at not in problems.unknown:  # a misspelt key was reported as such
            problems.add_unknown("schema.missing", at, f"missing; must be {wanted(item.value_type)}")
        return
    typed = item.value_type.parse(value, at, problems)
    if typed is not UNREADABLE:
        read[item.attribute] = typed


def _report_unknown_key(name: str, known: set[str], at: str, problems: Problems) -> None:
    problems.add("schema.unknown-key", inside(at, show_key(name)), unknown_key(name, known))
    close = nearest(name, sorted(known))
    if close:
        problems.unknown.add(inside(at, close))


@dataclass(frozen=True)
class ListOf:
    argument: ClassVar[str] = "list"
    item: ValueType
    at_least: int = 0
    at_most: int = 1000
    example: str = "[]"

    @property
    def label(self) -> str:
        return f"list of {self.item.label}s" if self.item.label.isalpha() else f"list ({self.item.label})"

    def parse(self, value: object, at: str, problems: Problems) -> Any:
        if not is_list(value) or not isinstance(value, Sequence):
            problems.add_unknown("schema.list", at, must_be("a list", value))
            return UNREADABLE
        if not self.at_least <= len(value) <= self.at_most:
            text = f"must have {self.at_least} to {self.at_most} items {got(len(value))}"
            problems.add_unknown("schema.items", at, text)
            return UNREADABLE
        read = [self.item.parse(item, f"{at}[{index}]", problems) for index, item in enumerate(value)]
        readable = tuple(item for item in read if item is not UNREADABLE)
        return readable if len(readable) >= self.at_least else UNREADABLE


@dataclass(frozen=True)
class MapOf:
    """A mapping whose keys the operator chooses."""

    argument: ClassVar[str] = "dict"
    name: Text
    item: ValueType
    example: str = "{}"

    @property
    def label(self) -> str:
        return f"mapping of {self.name.label} to {self.item.label}"

    def parse(self, value: object, at: str, problems: Problems) -> Any:
        if not isinstance(value, Mapping):
            problems.add_unknown("schema.mapping", at, must_be("a mapping", value))
            return UNREADABLE
        read: dict[str, Any] = {}
        for name, item in value.items():
            where = inside(at, show_key(name))
            parsed_name = self.name.parse(name, where, problems)
            parsed = self.item.parse({} if item is None else item, where, problems)
            if UNREADABLE not in (parsed_name, parsed):
                read[parsed_name] = parsed
        return dict(sorted(read.items()))


@dataclass(frozen=True)
class Text:
    """A scalar written as text; `convert` gives the typed value, or a ValueError with the message."""

    label: str
    convert: Callable[[str], Any]
    example: str
    pattern: str | None = None
    argument: str = "str"

    def _quoting_hint(self, value: object) -> str:
        written = unquoted(value)
        if written is None or not self.accepts(written):
            return ""
        longer = f" or {written}0" if isinstance(value, float) else ""
        return f"; if {written}{longer} was meant, put it in quotes"

    def accepts(self, value: str) -> bool:
        try:
            self.convert(value)
        except ValueError:
            return False
        return True

    def like(self, example: str) -> Text:
        """The same type with another example."""
        return replace(self, example=example)

    def parse(self, value: object, at: str, problems: Problems) -> Any:
        if not isinstance(value, str):
            problems.add_unknown("schema.text", at, must_be(wanted(self), value) + self._quoting_hint(value))
            return UNREADABLE
        return converted(self.convert, normalize_text(value), at, problems)


def converted(convert: Callable[[Any], T], value: Any, at: str, problems: Problems) -> Any:
    try:
        return convert(value)
    except ValueError as error:
        problems.add_unknown("schema.value", at, str(error))
        return UNREADABLE
