# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of text for a terminal: what failed comes first, what is alike over many nodes is one row."""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import (
    BOOTSTRAP,
    FAILED,
    HOST,
    OK,
    SKIPPED,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.wording import counted, cut, line_of, listed

WIDTH = 110
GAP = "  "
SHOWN = {FAILED: "FAILED", SKIPPED: "skipped", OK: "ok"}
HEAD = ("check", "who", "state", "expected", "seen")
WIDEST = {"check": 24, "who": 24}
MOST_ROWS_OF_A_CHECK = 8
MOST_OF_A_VALUE = 400
INDENT = " " * 6

Check = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """Of one check, or of several that were skipped for the same reason."""

    checks: Sequence[Check]
    nodes: Sequence[str]

    @property
    def state(self) -> str:
        return str(self.checks[0]["state"])

    @property
    def name(self) -> str:
        names = list(dict.fromkeys(line_of(check["check"]) for check in self.checks))
        named = listed(names, len(names))
        return named if len(named) <= WIDEST["check"] else counted(len(names), "check")

    @property
    def who(self) -> str:
        everybody = list(dict.fromkeys(line_of(check["who"]) for check in self.checks))
        if len(everybody) > 1 and set(everybody) == set(self.nodes):
            return f"all {len(everybody)} nodes"
        named = listed(everybody, len(everybody))
        return named if len(named) <= WIDEST["who"] else f"{len(everybody)} of {len(self.nodes)} nodes"

    def value(self, key: str) -> str:
        values = list(dict.fromkeys(line_of(check.get(key)) for check in self.checks))
        return values[0] if len(values) == 1 else f"{cut(values[0], 20)} and {len(values) - 1} more"

    @property
    def seen(self) -> str:
        # Each as expected says more than the first of them twice.
        as_expected = all(line_of(check.get("seen")) == line_of(check.get("expected")) for check in self.checks)
        return "as expected" if as_expected and self.state == OK else self.value("seen") or "nothing"

    @property
    def cells(self) -> tuple[str, ...]:
        state = SHOWN.get(self.state, self.state)
        return (self.name, self.who, state, self.value("expected"), self.seen)


def lines(checks: Sequence[Check]) -> list[str]:
    """Aligned columns; below what failed, what to do."""
    rows = _rows(checks)
    widths = _widths(rows)
    shown = [line for row in rows for line in [_aligned(row.cells, widths), *_below(row, widths)]]
    return [_aligned(HEAD, widths), *shown, *_unnamed(checks, rows), "", summary(checks)]


def summary(checks: Sequence[Check]) -> str:
    counts = {state: sum(check["state"] == state for check in checks) for state in SHOWN}
    return f"{counts[FAILED]} failed, {counts[SKIPPED]} skipped, {counts[OK]} of {counted(len(checks), 'check')} ok"


def about_faults(faults: Sequence[str]) -> list[str]:
    """Those that the BMCs have on purpose: whoever has forgotten them looks for other causes."""
    if not faults:
        return []
    head = "The BMCs have faults on purpose, which may be why checks fail (module bmc_faults changes them):"
    return ["", head, *(f"- {fault}" for fault in faults)]


def nodes_of(checks: Iterable[Check]) -> list[str]:
    everybody = dict.fromkeys(line_of(check["who"]) for check in checks)
    return [who for who in everybody if who not in (HOST, BOOTSTRAP)]


def in_play_order(checks: Sequence[Check]) -> list[Check]:
    """What comes first is nearer to the cause: host, bootstrap VM, then nodes, each check over all of them."""
    places: dict[tuple[int, str], int] = {}
    for check in checks:
        places.setdefault(_place(check), len(places))
    return sorted(checks, key=lambda check: (_place(check)[0], places[_place(check)]))


def _place(check: Check) -> tuple[int, str]:
    return {HOST: 0, BOOTSTRAP: 1}.get(check["who"], 2), line_of(check["check"])


def _rows(checks: Sequence[Check]) -> list[Row]:
    """Host and bootstrap VM have rows of their own: what they see differs from what nodes see."""
    nodes, ordered = nodes_of(checks), in_play_order(checks)
    return [
        Row(folded, nodes)
        for state, alike in ((FAILED, _as_failed), (SKIPPED, _as_skipped), (OK, _as_ok))
        for folded in _few_of_each(_folded([check for check in ordered if check["state"] == state], alike))
    ]


def _folded(checks: Iterable[Check], alike: Callable[[Check], Hashable]) -> list[list[Check]]:
    groups: dict[Hashable, list[Check]] = {}
    for check in checks:
        own = check["who"] if check["who"] in (HOST, BOOTSTRAP) else ""
        groups.setdefault((own, alike(check)), []).append(check)
    return list(groups.values())


def _as_failed(check: Check) -> Hashable:
    return (line_of(check["check"]), line_of(check.get("advice")))


def _as_skipped(check: Check) -> Hashable:
    return (line_of(check.get("advice")), line_of(check.get("seen")))


def _as_ok(check: Check) -> Hashable:
    return line_of(check["check"])


def _few_of_each(groups: Sequence[list[Check]]) -> list[list[Check]]:
    """A hundred nodes may fail for a hundred reasons: the first ones will do."""
    kept: list[list[Check]] = []
    for group in groups:
        if sum(other[0]["check"] == group[0]["check"] for other in kept) < MOST_ROWS_OF_A_CHECK:
            kept.append(group)
    return kept


def _unnamed(checks: Sequence[Check], rows: Sequence[Row]) -> list[str]:
    more = len(checks) - sum(len(row.checks) for row in rows)
    return [f"... and {more} more that failed or were skipped: the page and the JSON report have all"] if more else []


def _widths(rows: Sequence[Row]) -> list[int]:
    columns = list(zip(HEAD, *(row.cells for row in rows)))
    first = [min(max(map(len, cells)), WIDEST.get(cells[0], WIDTH)) for cells in columns[:3]]
    left = WIDTH - sum(first) - len(GAP) * 4
    expected, seen = (max(map(len, cells)) for cells in columns[3:])
    # Where one of the two has room to spare, the other may have it.
    expected = min(expected, max(left // 2, left - seen))
    return [*first, expected, min(seen, left - expected)]


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return GAP.join(f"{cut(cell, width):<{width}}" for cell, width in zip(cells, widths)).rstrip()


def _below(row: Row, widths: Sequence[int]) -> list[str]:
    if row.state != FAILED:
        return []
    cut_off = [
        f"{title}: {cut(value, MOST_OF_A_VALUE)}"
        for title, value, width in zip(HEAD[3:], row.cells[3:], widths[3:])
        if len(value) > width
    ]
    who = [f"who: {listed(dict.fromkeys(line_of(check['who']) for check in row.checks), 12)}"]
    several = who if row.who != who[0][5:] and not row.who.startswith("all ") else []
    return [line for text in [*several, *cut_off] for line in _wrapped(text, INDENT)] + _advice(row)


def _advice(row: Row) -> list[str]:
    return _wrapped(line_of(row.checks[0].get("advice")), f"{INDENT}-> ")


def _wrapped(text: str, first: str) -> list[str]:
    rest = " " * len(first)
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
