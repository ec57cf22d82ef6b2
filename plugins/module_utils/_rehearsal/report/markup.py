# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Elements of HTML. Whatever text is given to them is escaped; what they return is not text but markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.wording import line_of

MOST_OF_A_VALUE = 600


class Markup(str):
    __slots__ = ()


def element(name: str, *inside: Any, style: str = "", **attributes: str) -> Markup:
    """`style` is a class of the style sheet; an underscore in front of an attribute's name keeps it from Python."""
    told = {**({"class": style} if style else {}), **{key.strip("_"): value for key, value in attributes.items()}}
    text = "".join(f' {key}="{escape(line_of(value))}"' for key, value in told.items())
    return Markup(f"<{name}{text}>{joined(inside)}</{name}>")


def joined(parts: Iterable[Any]) -> Markup:
    return Markup("".join(part if isinstance(part, Markup) else escape(shown(part)) for part in parts))


def shown(value: Any) -> str:
    """Ends of texts keep the space that parts them from what comes next."""
    if isinstance(value, str) and value[:1] == " ":
        return f" {shown(value.lstrip())}"
    if isinstance(value, str) and value[-1:] == " ":
        return f"{shown(value.rstrip())} "
    text = line_of(value)
    return text if len(text) <= MOST_OF_A_VALUE else f"{text[:MOST_OF_A_VALUE]} ..."


def rows(name: str, lines: Iterable[Iterable[Any]]) -> Markup:
    """Of a table; each cell is text, or markup that is a cell already."""
    return joined(element("tr", *(_as_cell(name, cell) for cell in line)) for line in lines)


def _as_cell(name: str, cell: Any) -> Markup:
    return cell if isinstance(cell, Markup) and cell.startswith("<td") else element(name, cell)


def table(head: Iterable[str], lines: Iterable[Iterable[Any]], style: str = "list") -> Markup:
    inside = element("thead", rows("th", [head])), element("tbody", rows("td", lines))
    return element("div", element("table", *inside, style=style), style="scroll")


def details(title: Any, *inside: Any, opened: bool = False) -> Markup:
    attributes = {"open": ""} if opened else {}
    return element("details", element("summary", title), *inside, **attributes)
