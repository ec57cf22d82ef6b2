# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is shown of a job that runs, from what it said: lines for a log, a table for a terminal."""

from __future__ import annotations

import json
import math
import unicodedata
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

LONG = 600  # seconds; longer times are easier to read as hours and minutes
BAR_CELLS = 20
TABLE_HEAD = ("who", "since", "state")


@dataclass(frozen=True)
class Event:
    at: float
    who: str
    state: str
    trouble: bool = False
    part: float | None = None
    """How much of the whole is done, from 0 to 1."""

    @property
    def words(self) -> str:
        return f"TROUBLE: {self.state}" if self.trouble else self.state

    @property
    def percent(self) -> str:
        return "" if self.part is None else f"{self.part:4.0%}  "

    @property
    def gauge(self) -> str:
        if self.part is None:
            return ""
        full = int(self.part * BAR_CELLS)
        return f"[{'#' * full}{'-' * (BAR_CELLS - full)}]{self.percent}"

    def changes(self, earlier: Event | None) -> bool:
        return earlier is None or (self.state, self.trouble) != (earlier.state, earlier.trouble)


class Board:
    """Where each subject stands, in the order in which they were first heard of."""

    def __init__(self) -> None:
        self._standing: dict[str, Event] = {}
        self.last: Event | None = None

    @property
    def standing(self) -> list[Event]:
        return list(self._standing.values())

    def take(self, lines: Iterable[str]) -> list[Event]:
        """Those events that changed something. Lines that are no events are left out."""
        changes = []
        for line in lines:
            event = _event(line)
            if event and event.changes(self._standing.get(event.who)):
                self._standing[event.who] = self.last = event
                changes.append(event)
        return changes


def _event(line: str) -> Event | None:
    try:
        said = json.loads(line)
        at = float(said["at"])
        part = _part(said.get("part"))
        known = Event(at, _plain(said["who"]), _plain(said["state"]), bool(said.get("trouble")), part)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None
    return known if math.isfinite(at) else None


def _part(told: object) -> float | None:
    return None if told is None else min(max(float(str(told)), 0.0), 1.0)


def _plain(text: object) -> str:
    """What a guest printed may hold escape sequences and line breaks."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in str(text)).split())


def clock(seconds: float, digits: int = 1) -> str:
    if seconds < LONG:
        return f"{seconds:.{digits}f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def log_line(event: Event) -> str:
    return f"[{clock(event.at):>8}] {event.who:<16} {event.percent}{event.words}"


@dataclass(frozen=True)
class Row:
    text: str
    trouble: bool = False


def table(standing: Sequence[Event], elapsed: float, width: int, height: int) -> list[Row]:
    """At most `height` rows, none wider than `width`. Who does not fit is summed up in one row."""
    room = height - 1
    shown, others = _divided(standing, room)
    names = min(max((_cells(event.who) for event in shown), default=0), width // 3)
    head = [_row(names, *TABLE_HEAD)] if standing and room > len(standing) else []
    rows = [Row(_row(names, event.who, clock(event.at), event.gauge + event.words), event.trouble) for event in shown]
    texts = [Row(text) for text in head] + rows + [Row(text) for text in _summary(others, room)]
    return [Row(_fit(row.text, width), row.trouble) for row in [*texts, Row(f"elapsed {clock(elapsed, digits=0)}")]]


def _divided(standing: Sequence[Event], room: int) -> tuple[list[Event], list[Event]]:
    """Troubles are shown first of all, then what changed last."""
    if len(standing) <= room:
        return list(standing), []
    by_weight = sorted(standing, key=lambda event: (event.trouble, event.at), reverse=True)
    kept = {event.who for event in by_weight[: max(room - 1, 0)]}
    return [event for event in standing if event.who in kept], [event for event in standing if event.who not in kept]


def _summary(others: Sequence[Event], room: int) -> list[str]:
    if not others or room < 1:
        return []
    counted = Counter(event.words for event in others).most_common()
    return [f"and {len(others)} more: " + ", ".join(f"{words} ({count})" for words, count in counted)]


def _row(names: int, who: str, since: str, words: str) -> str:
    who = _fit(who, names)
    return f"{who}{' ' * (names - _cells(who))}  {since:>8}  {words}"


def _cells(text: str) -> int:
    return sum(_sign_cells(sign) for sign in text)


def _sign_cells(sign: str) -> int:
    if unicodedata.combining(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def _fit(text: str, width: int) -> str:
    if _cells(text) <= width:
        return text
    kept = ""
    for sign in text:
        if _cells(kept + sign) >= width:
            break
        kept += sign
    return f"{kept}…" if width > 0 else ""


class Screen:
    """Writes a table over the one that stands above the cursor, and of it only the rows that changed."""

    def __init__(self, paint_trouble: Callable[[str], str] = str) -> None:
        self._paint = paint_trouble
        self._rows: list[Row] = []
        self._size = (0, 0)

    def redraw(self, rows: Sequence[Row], width: int, height: int) -> str:
        """What to write to the terminal; nothing when all stands there already."""
        resized = self._size != (width, height)
        first = 0 if resized else self._first_change(rows)
        written = "".join(self._drawn(rows, place, afresh=resized) for place in range(first, len(rows)))
        above = self._height_at(width) if resized else len(self._rows) - first
        below = "\x1b[J" if resized or len(rows) < len(self._rows) else ""
        if not written and not below:
            return ""
        self._rows, self._size = list(rows), (width, height)
        up = f"\r\x1b[{above}A" if above else ""
        return f"{up}{below}{written}" if resized else f"{up}{written}{below}"

    def _first_change(self, rows: Sequence[Row]) -> int:
        pairs = zip(self._rows, rows)
        return next((place for place, (old, new) in enumerate(pairs) if old != new), min(len(self._rows), len(rows)))

    def _drawn(self, rows: Sequence[Row], place: int, *, afresh: bool) -> str:
        if not afresh and place < len(self._rows) and rows[place] == self._rows[place]:
            return "\n"
        text = self._paint(rows[place].text) if rows[place].trouble else rows[place].text
        return f"{text}\x1b[K\n"

    def _height_at(self, width: int) -> int:
        """A terminal that became narrower has wrapped what stood there."""
        return sum(max(-(-_cells(row.text) // max(width, 1)), 1) for row in self._rows)
