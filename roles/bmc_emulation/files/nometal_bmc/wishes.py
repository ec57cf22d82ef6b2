# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What clients may say. A body is understood as a whole, before anything is changed."""

from __future__ import annotations

from typing import Any

import flask

from nometal_bmc.answers import Refused

Kinds = dict[str, "tuple[type, ...]"]

NAMES = {str: "a string", bool: "true or false", dict: "an object", type(None): "null"}


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


def checked(found: dict[str, Any], kinds: Kinds, *, where: str = "", read_only: tuple[str, ...] = ()) -> dict[str, Any]:
    """The members of an object, if all are known and of the right type. Annotations (@odata.etag) say nothing here."""
    wishes = {name: value for name, value in found.items() if "@" not in name}
    for name, value in wishes.items():
        prop = where + name
        if name in read_only:
            raise Refused(400, "PropertyNotWritable", f"{prop} cannot be changed.", prop=prop)
        if name not in kinds:
            text = f"{prop} is not known; what can be changed is {', '.join(sorted(kinds))}."
            raise Refused(400, "PropertyUnknown", text, prop=prop)
        if not isinstance(value, kinds[name]):
            text = f"{prop} has to be {' or '.join(NAMES[kind] for kind in kinds[name])}."
            raise Refused(400, "PropertyValueTypeError", text, prop=prop)
    if not wishes:
        text = f"The body says nothing that could be done; what can be changed is {', '.join(sorted(kinds))}."
        raise Refused(400, "PropertyMissing", text, prop=where.rstrip("/") or None)
    return wishes


def one_of(value: str, allowed: tuple[str, ...], prop: str) -> None:
    """Refuse a value that is none of these."""
    if value not in allowed:
        text = f"{prop} cannot be {value!r}; it can be {', '.join(allowed)}."
        raise Refused(400, "PropertyValueNotInList", text, prop=prop)
