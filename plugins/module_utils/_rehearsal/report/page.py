# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a rehearsal as one page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.wording import counted, line_of, printable
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report import failures
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report.checks import all_checks
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report.lab_drawing import svg
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report.markup import (
    Markup,
    details,
    element,
    joined,
    table,
)
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report.style import STYLE

HEAD = (
    '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    f'<meta name="color-scheme" content="light dark"><style>{STYLE}</style>'
)
FEW_CONSOLES = 2
MOST_OF_A_CONSOLE = 100_000
"""Characters, for all nodes together."""


def page(report: Mapping[str, Any]) -> str:
    told = {"checks": [], "stages": [], "consoles": {}, "picture": {}, "ok": False, **report}
    title = element("title", f"{'OK' if told['ok'] else 'FAILED'}: rehearsal of {line_of(told.get('lab'))}")
    body = [
        element("header", element("h1", _about(told))),
        failures.verdict(told),
        failures.cards(told["checks"]),
        failures.skips(told["checks"]),
        _picture(told),
        _section("Checks", all_checks(told["checks"])) if told["checks"] else "",
        _section("Where the time went", _stages(told["stages"])) if told["stages"] else "",
        _section("Consoles of silent nodes", _consoles(told["consoles"])) if told["consoles"] else "",
    ]
    return f"{HEAD}{title}</head><body>{element('main', *body)}</body></html>\n"


def _section(title: str, *inside: Any) -> Markup:
    return element("section", element("h2", title), *inside)


def _about(report: Mapping[str, Any]) -> str:
    began = line_of(report.get("began")).replace("T", " ").replace("Z", " UTC")
    parts = [f"Rehearsal of lab {line_of(report.get('lab'))}", line_of(report.get("domain")), began]
    seconds = report.get("seconds")
    return " \u00b7 ".join([*filter(None, parts), *([f"{seconds:.0f} s"] if seconds else [])])


def _picture(report: Mapping[str, Any]) -> Markup:
    picture = report["picture"]
    if not picture:
        return Markup()
    unread = [element("p", f"Could not be read: {reason}", style="quiet") for reason in picture["unread"]]
    told = "As the host had it, not as the lab asks for it. Dashed: switched off. Red and crossed: what failed."
    drawn = element("div", Markup(svg(report)), style="scroll", tabindex="0")
    return _section("The lab", element("p", told, style="quiet"), drawn, *unread, _links(picture["links"]))


def _links(links: Mapping[str, Mapping[str, Any]]) -> Markup:
    head = ["link", "kind", "state", "on", "peer", "MTU", "MAC", "addresses"]
    lines = [
        [name, link["kind"], _state(link), link["master"], link["peer"], link["mtu"], link["mac"], link["addresses"]]
        for name, link in sorted(links.items())
    ]
    return details(f"{counted(len(links), 'link')} of the host, in figures", table(head, lines))


def _state(link: Mapping[str, Any]) -> str:
    return "down" if not link["up"] else "up" if link["carrier"] else "up, no carrier"


def _stages(stages: Sequence[Mapping[str, Any]]) -> Markup:
    longest = max(float(stage["seconds"]) for stage in stages) or 1.0
    return element("div", *(part for stage in stages for part in _stage(stage, longest)), style="stages")


def _stage(stage: Mapping[str, Any], longest: float) -> list[Markup]:
    seconds = float(stage["seconds"])
    drawn = Markup(f'<div class="bar-box"><i style="width:{seconds / longest:.1%}"></i></div>')
    return [element("div", stage["stage"]), element("div", f"{seconds:.1f} s", style="number"), drawn]


def _consoles(consoles: Mapping[str, Sequence[str]]) -> Markup:
    share = MOST_OF_A_CONSOLE // len(consoles)
    return joined(_console(who, lines, share, len(consoles) <= FEW_CONSOLES) for who, lines in consoles.items())


def _console(who: str, lines: Sequence[str], share: int, opened: bool) -> Markup:
    text = "\n".join(printable(str(line)).rstrip() for line in lines)[-share:]
    # The box's style keeps it scrolled to its end.
    pre = Markup(f"<pre>{escape(text or 'It has written nothing.')}</pre>")
    shown = element("div", pre, style="console", tabindex="0")
    return details(f"{line_of(who)}: last {counted(len(lines), 'line')}", shown, opened=opened)
