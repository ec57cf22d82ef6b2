# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that guests and hosts have sent, as text that can be shown to people anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

# Colours and cursor movements of a terminal: consoles are full of them.
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
MARK = "?"


def line_of(value: Any) -> str:
    """One line: lists with commas, nothing for None."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(line_of, value))
    text = "" if value is None else str(value)
    return " ".join(printable(text).split())


def printable(text: str) -> str:
    """Without what would steer a terminal or is not a character of HTML."""
    without = ESCAPES.sub("", text)
    return "".join(letter if letter.isprintable() or letter in "\n\t" else _shown(letter) for letter in without)


def _shown(letter: str) -> str:
    return " " if letter.isspace() else MARK


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width - 3, 0)].rstrip()}..."


def listed(names: Iterable[str], most: int) -> str:
    """a, b and c; or: a, b and 7 others."""
    every = list(names)
    shown, more = (every, 0) if len(every) <= most else (every[: most - 1], len(every) - most + 1)
    if more:
        return f"{', '.join(shown)} and {more} others" if shown else counted(more, "of them")
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
