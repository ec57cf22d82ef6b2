# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a rehearsal as one page that needs nothing but itself: what its template cannot say simply. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import (
    FAILED,
    OK,
    SKIPPED,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.wording import counted, cut, line_of, listed, printable
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report.table import in_play_order, nodes_of
from ansible_collections.nometal.ipi.plugins.plugin_utils.rehearsal_report import drawing, findings

MOST_OF_A_VALUE = 600
MOST_OF_CONSOLES = 100_000
"""Characters, for all nodes together."""
WORST_FIRST = {FAILED: 0, SKIPPED: 1, OK: 2}
EMPTY = {"ok": False, "seconds": 0, "checks": [], "stages": [], "consoles": {}, "picture": {}, "bmc_faults": []}
TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.globals.update(counted=counted, listed=listed)

Check = Mapping[str, Any]


def page(report: Mapping[str, Any]) -> str:
    known: dict[str, Any] = {"lab": "", "domain": "", "began": "", **EMPTY, **report}
    shown = cleaned({**known, "consoles": {}})
    checks = [_completed(check) for check in shown["checks"]]
    by_who = _grouped(checks, "who")
    nodes = sorted(nodes_of(checks), key=lambda who: _first_failure(by_who[who], len(checks)))
    return TEMPLATES.get_template("page.html.j2").render(
        report=shown,
        checks=checks,
        by_who=by_who,
        nodes=nodes,
        columns=list(dict.fromkeys(check["check"] for who in nodes for check in by_who[who])),
        failures={name: _grouped(failed, "advice") for name, failed in _failures(checks).items()},
        skips=_grouped((check for check in checks if check["state"] == SKIPPED), "reason"),
        on_host=findings.in_picture(shown["picture"]) if shown["picture"] else [],
        drawings=drawing.drawings(shown["picture"], checks) if shown["picture"] else [],
        consoles=_consoles(known["consoles"]),
    )


def svg(drawn: drawing.Drawing) -> str:
    return TEMPLATES.get_template("drawing.svg.j2").render(drawing=drawn)


def cleaned(value: Any) -> Any:
    """What hosts and guests have sent, as lines that are not endless and that steer nothing."""
    if isinstance(value, Mapping):
        return {cleaned(key): cleaned(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [cleaned(item) for item in value]
    return cut(line_of(value), MOST_OF_A_VALUE) if isinstance(value, str) else value


def _completed(check: Check) -> Check:
    lines = {key: cut(line_of(check.get(key)), MOST_OF_A_VALUE) for key in ("expected", "seen", "advice")}
    reason = lines["advice"] or lines["seen"] or "no reason is known"
    return {**check, **lines, "reason": reason, "rank": WORST_FIRST.get(check["state"], 1)}


def _failures(checks: Sequence[Check]) -> dict[str, list[Check]]:
    return _grouped((check for check in in_play_order(checks) if check["state"] == FAILED), "check")


def _grouped(checks: Iterable[Check], key: str) -> dict[str, list[Check]]:
    groups: dict[str, list[Check]] = {}
    for check in checks:
        groups.setdefault(check[key], []).append(check)
    return groups


def _first_failure(checks: Sequence[Check], otherwise: int) -> int:
    """Who failed earlier stands higher."""
    return next((number for number, check in enumerate(checks) if check["state"] == FAILED), otherwise)


def _consoles(consoles: Mapping[str, Sequence[str]]) -> list[tuple[str, int, str]]:
    """Who, of how many lines, and the last of them."""
    share = MOST_OF_CONSOLES // max(len(consoles), 1)
    return [
        (line_of(who), len(lines), "\n".join(printable(str(line)).rstrip() for line in lines)[-share:])
        for who, lines in consoles.items()
    ]
