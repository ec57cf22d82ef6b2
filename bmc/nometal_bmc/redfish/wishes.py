# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What clients may say. A body is understood as a whole, before anything is changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import flask

from nometal_bmc.answers import Refused
from nometal_bmc.events.log import By

if TYPE_CHECKING:
    from collections.abc import Iterable

Kinds = dict[str, "tuple[type, ...]"]

NOTED = "nometal_bmc.noted"
EVENT = "nometal_bmc.event"
LONGEST_NOTE = 400


@dataclass(frozen=True)
class Words:
    """How Redfish calls what is wrong with a member of a body."""

    unknown: str
    missing: str
    wrong_type: str
    not_in_list: str
    conflict: str


PROPERTY = Words(
    "PropertyUnknown",
    "PropertyMissing",
    "PropertyValueTypeError",
    "PropertyValueNotInList",
    "PropertyValueConflict",
)
PARAMETER = Words(
    "ActionParameterUnknown",
    "ActionParameterMissing",
    "ActionParameterValueTypeError",
    "ActionParameterValueNotInList",
    "ActionParameterValueConflict",
)
NAMES = {str: "a string", bool: "true or false", dict: "an object", list: "a list", type(None): "null"}


class Request(flask.Request):
    """A request whose JSON is an object, whatever its Content-Type says: clients are careless there."""

    @property
    def json(self) -> dict[str, Any]:
        if not self.get_data():
            return {}
        try:
            found = self.get_json(force=True, silent=True)
        except RecursionError:
            found = None
        if not isinstance(found, dict):
            raise Refused(400, "MalformedJSON", "The body has to be a JSON object.")
        return found


def checked(
    found: dict[str, Any],
    kinds: Kinds,
    *,
    where: str = "",
    read_only: tuple[str, ...] = (),
    words: Words = PROPERTY,
) -> dict[str, Any]:
    """The members of an object, if all are known and of the right type. Annotations (@odata.etag) say nothing here."""
    wishes = {name: value for name, value in found.items() if "@" not in name}
    for name, value in wishes.items():
        prop = where + name
        if name in read_only:
            raise Refused(400, "PropertyNotWritable", f"{prop} cannot be changed.", prop=prop)
        if name not in kinds:
            text = f"{prop} is not known; what can be said is {', '.join(sorted(kinds)) or 'nothing'}."
            raise Refused(400, words.unknown, text, prop=prop)
        if not isinstance(value, kinds[name]):
            text = f"{prop} has to be {' or '.join(NAMES[kind] for kind in kinds[name])}."
            raise Refused(400, words.wrong_type, text, prop=prop)
    if kinds and not wishes:
        text = f"The body says nothing that could be done; what can be said is {', '.join(sorted(kinds))}."
        raise Refused(400, words.missing, text, prop=where.rstrip("/") or None)
    return wishes


def one_of(value: str, allowed: Iterable[str], prop: str, words: Words = PROPERTY) -> None:
    """Refuse a value that is none of these."""
    if value not in allowed:
        text = f"{prop} cannot be {value!r}; it can be {', '.join(allowed)}."
        raise Refused(400, words.not_in_list, text, prop=prop)


def note(**wishes: object) -> None:
    """Have the line of the log tell what the client wanted; only of what was found good, and never a secret."""
    texts = (f"{name}={value}" for name, value in wishes.items() if value is not None)
    flask.request.environ[NOTED] = " ".join(texts)[:LONGEST_NOTE].encode("unicode_escape").decode()


def noted() -> str:
    """What `note` has noted of this request."""
    return str(flask.request.environ.get(NOTED, ""))


def client() -> By:
    """Whose request this is."""
    return By(flask.g.account.name, flask.request.remote_addr or "")


def becomes_event(kind: str, text: str) -> None:
    """Have the event log tell of this request, and of its outcome. No secret may be in the text."""
    flask.request.environ[EVENT] = kind, text
