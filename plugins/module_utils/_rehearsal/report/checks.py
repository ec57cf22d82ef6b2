# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All checks on the page: a matrix of marks, and on demand what was expected and seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import (
    BOOTSTRAP,
    FAILED,
    HOST,
    OK,
    SKIPPED,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.wording import counted, line_of
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report.failures import anchor
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report.markup import (
    Markup,
    details,
    element,
    joined,
    table,
)
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report.svg import FAILED_MARK
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report.table import nodes_of

Check = Mapping[str, Any]
MARKS = {OK: "\u2713", FAILED: FAILED_MARK, SKIPPED: "\u2013"}
STYLES = {OK: "k", FAILED: "f", SKIPPED: "s"}
NAMES = {HOST: "Host", BOOTSTRAP: "Bootstrap VM"}
SIDEWAYS = "The table goes on to the right."
MANY = 1000
WORST_FIRST = {FAILED: 0, SKIPPED: 1, OK: 2}


def all_checks(checks: Sequence[Check]) -> Markup:
    legend = element(
        "p", f"{MARKS[OK]} ok, {FAILED_MARK} failed, {MARKS[SKIPPED]} skipped, empty: not tried", style="quiet"
    )
    by_who: dict[str, list[Check]] = {}
    for check in checks:
        by_who.setdefault(line_of(check["who"]), []).append(check)
    lists = [_list(who, by_who[who], checks) for who in (HOST, BOOTSTRAP) if who in by_who]
    nodes = sorted(nodes_of(checks), key=lambda who: _first_failure(by_who[who]))
    matrix = [_matrix(nodes, by_who, checks)] if nodes else []
    values = [_values(who, by_who[who]) for who in [*(who for who in (HOST, BOOTSTRAP) if who in by_who), *nodes]]
    return joined([legend, *lists, *matrix, details("What was expected and seen, by each", *values)])


def _failures(checks: Sequence[Check]) -> int:
    return sum(check["state"] == FAILED for check in checks)


def _first_failure(checks: Sequence[Check]) -> int:
    """Who failed earlier stands higher."""
    return next((number for number, check in enumerate(checks) if check["state"] == FAILED), len(checks) + MANY)


def _list(who: str, own: Sequence[Check], checks: Sequence[Check]) -> Markup:
    items = [_chip(check, checks) for check in sorted(own, key=_rank)]
    return joined([element("h3", NAMES[who]), element("ul", *items, style="chips")])


def _rank(check: Check) -> int:
    return WORST_FIRST.get(check["state"], 1)


def _chip(check: Check, checks: Sequence[Check]) -> Markup:
    mark = element("span", MARKS.get(check["state"], "?"), style=f"mark-{check['state']}")
    inside = joined([mark, f" {line_of(check['check'])}"])
    return element("li", _link(check, checks, inside) if check["state"] == FAILED else inside)


def _link(check: Check, checks: Sequence[Check], inside: Any) -> Markup:
    return element("a", inside, href=f"#{anchor(line_of(check['check']), checks)}")


def _matrix(nodes: Sequence[str], by_who: Mapping[str, Sequence[Check]], checks: Sequence[Check]) -> Markup:
    columns = list(dict.fromkeys(line_of(check["check"]) for who in nodes for check in by_who[who]))
    links = {name: anchor(name, checks) for name in columns if _fails(name, checks)}
    head = [element("th", "node"), *(element("th", element("span", name)) for name in columns)]
    lines = [_line(who, by_who[who], columns, links) for who in nodes]
    inside = element("thead", element("tr", *head)), element("tbody", *lines)
    box = element("div", element("table", *inside, style="matrix"), style="scroll", tabindex="0")
    return joined([element("h3", counted(len(nodes), "node")), element("p", SIDEWAYS, style="quiet phone"), box])


def _fails(name: str, checks: Sequence[Check]) -> bool:
    return any(check["state"] == FAILED and line_of(check["check"]) == name for check in checks)


def _line(who: str, own: Sequence[Check], columns: Sequence[str], links: Mapping[str, str]) -> Markup:
    states = {line_of(check["check"]): check["state"] for check in own}
    cells = [_cell(states.get(name, ""), links.get(name, "")) for name in columns]
    return element("tr", element("th", who, scope="row"), *cells)


def _cell(state: str, link: str) -> Markup:
    mark = MARKS.get(state, "?" if state else "")
    if state == FAILED:
        return element("td", element("a", mark, href=f"#{link}"), style="f")
    return element("td", mark, style=STYLES.get(state, ""))


def _values(who: str, own: Sequence[Check]) -> Markup:
    failed = _failures(own)
    title = f"{NAMES.get(who, who)}: " + (f"{failed} of {len(own)} failed" if failed else counted(len(own), "check"))
    lines = [_row(check) for check in sorted(own, key=_rank)]
    return details(title, table(["", "check", "expected", "seen"], lines))


def _row(check: Check) -> list[Any]:
    state, expected, seen = check["state"], line_of(check.get("expected")), line_of(check.get("seen"))
    mark = element("td", MARKS.get(state, "?"), style=STYLES.get(state, ""))
    if expected == seen or not expected:
        return [mark, check["check"], element("td", seen or "-", style="value", colspan="2")]
    return [
        mark,
        check["check"],
        element("td", expected, style="value"),
        element("td", seen or "nothing", style="value"),
    ]
