# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What failed, on the page: one sentence for each, its cause and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import FAILED, OK, SKIPPED
from ansible_collections.nometal.ipi.plugins.module_utils._core.wording import counted, line_of, listed
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report import troubles
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report.markup import (
    Markup,
    details,
    element,
    joined,
    table,
)
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report.svg import FAILED_MARK
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report.table import in_play_order

Check = Mapping[str, Any]
MOST_NAMED = 6
MOST_CAUSES = 3


def verdict(report: Mapping[str, Any]) -> Markup:
    good = bool(report["ok"])
    style = "verdict" if good else "verdict bad"
    return element("section", element("p", sentence(report), style="main"), _on_the_host(report), style=style)


def sentence(report: Mapping[str, Any]) -> str:
    checks = report["checks"]
    failed = sum(check["state"] == FAILED for check in checks)
    passed = sum(check["state"] == OK for check in checks)
    if report["ok"]:
        skipped = len(checks) - passed
        more = f"; {skipped} did not apply" if skipped else ""
        return f"All is well: {counted(passed, 'check')} passed{more}. An installation finds what it needs."
    if failed:
        return f"{failed} of {counted(len(checks), 'check')} failed. An installation would fail as well."
    return "The rehearsal did not come to its end. What it has seen so far is below."


def _on_the_host(report: Mapping[str, Any]) -> Markup:
    """What the picture shows is nearer to the cause than what the checks met."""
    found = troubles.in_picture(report["picture"]) if report["picture"] else []
    if not found:
        return Markup()
    shown = [element("li", str(trouble)) for trouble in found[:MOST_NAMED]]
    more = [element("li", f"and {len(found) - MOST_NAMED} more, see the picture")] if len(found) > MOST_NAMED else []
    return joined([element("p", "Seen on the host itself:", style="seen-here-title"), _ul([*shown, *more])])


def _ul(items: Sequence[Markup]) -> Markup:
    return element("ul", *items, style="seen-here")


def anchor(check: str, checks: Sequence[Check]) -> str:
    return f"f{_failed_names(checks).index(check)}"


def _failed_names(checks: Sequence[Check]) -> list[str]:
    failed = (line_of(check["check"]) for check in in_play_order(checks) if check["state"] == FAILED)
    return list(dict.fromkeys(failed))


def cards(checks: Sequence[Check]) -> Markup:
    return joined(_card(name, number, checks) for number, name in enumerate(_failed_names(checks)))


def _card(name: str, number: int, checks: Sequence[Check]) -> Markup:
    concerned = [check for check in checks if check["state"] == FAILED and line_of(check["check"]) == name]
    groups = _by_cause(concerned)
    mark = element("span", FAILED_MARK, style="mark-failed", aria_hidden="true")
    head = element("h3", mark, f" {name} ", element("span", _who(concerned)))
    first = [_cause(group, len(groups) > 1) for group in groups[:MOST_CAUSES]]
    others = [_cause(group, True) for group in groups[MOST_CAUSES:]]
    more = [details(f"{counted(len(others), 'further cause')}", *others)] if others else []
    return element("section", head, *first, *more, style="card", _id=f"f{number}")


def _by_cause(checks: Sequence[Check]) -> list[list[Check]]:
    """Groups of the same advice."""
    groups: dict[str, list[Check]] = {}
    for check in checks:
        groups.setdefault(line_of(check.get("advice")), []).append(check)
    return list(groups.values())


def _who(checks: Sequence[Check]) -> str:
    return listed((line_of(check["who"]) for check in checks), MOST_NAMED)


def _cause(checks: Sequence[Check], named: bool) -> Markup:
    who = element("p", _who(checks), style="quiet") if named else ""
    advice = line_of(checks[0].get("advice"))
    told = element("p", _with_code(advice), style="advice") if advice else ""
    return element("div", who, told, _values(checks), style="cause")


def _with_code(text: str) -> Markup:
    """What stands between backticks is to be typed."""
    parts = enumerate(text.split("`"))
    return joined(element("code", part) if number % 2 else part for number, part in parts)


def _values(checks: Sequence[Check]) -> Markup:
    pairs = {(line_of(check.get("expected")), line_of(check.get("seen"))) for check in checks}
    if len(pairs) == 1:
        [(expected, seen)] = pairs
        inside = [element("dt", "expected"), element("dd", expected or "-"), element("dt", "seen")]
        return element("dl", *inside, element("dd", seen or "nothing"))
    lines = [[check["who"], _value(check.get("expected")), _value(check.get("seen"))] for check in checks]
    title = f"What was expected and seen, by each of the {len(checks)}"
    return details(title, table(["who", "expected", "seen"], lines))


def _value(value: Any) -> Markup:
    return element("td", line_of(value) or "nothing", style="value")


def skips(checks: Sequence[Check]) -> Markup:
    """Why: a check that is not made is no good news."""
    groups: dict[str, list[Check]] = {}
    for check in checks:
        if check["state"] == SKIPPED:
            reason = line_of(check.get("advice")) or line_of(check.get("seen")) or "no reason is known"
            groups.setdefault(reason, []).append(check)
    if not groups:
        return Markup()
    lines = [[_names(group), _who_once(group), reason] for reason, group in groups.items()]
    number = sum(map(len, groups.values()))
    return details(f"{counted(number, 'check')} skipped", table(["check", "who", "why"], lines))


def _names(checks: Sequence[Check]) -> str:
    return listed(dict.fromkeys(line_of(check["check"]) for check in checks), MOST_NAMED)


def _who_once(checks: Sequence[Check]) -> str:
    return listed(dict.fromkeys(line_of(check["who"]) for check in checks), MOST_NAMED)
