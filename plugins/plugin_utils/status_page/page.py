# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a lab as one page that needs nothing but itself, with the picture of what is there. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined

from ansible_collections.nometal.ipi.plugins.module_utils._core.wording import counted
from ansible_collections.nometal.ipi.plugins.plugin_utils.rehearsal_report import drawing
from ansible_collections.nometal.ipi.plugins.plugin_utils.rehearsal_report import page as report_page

HERE = Path(__file__).parent
TEMPLATES = Environment(
    loader=ChoiceLoader([FileSystemLoader(HERE), FileSystemLoader(Path(report_page.__file__).parent)]),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.globals.update(counted=counted)


def page(status: Mapping[str, Any], picture: Mapping[str, Any], headline: str) -> str:
    shown, seen = report_page.cleaned(status), report_page.cleaned(picture)
    return TEMPLATES.get_template("status.html.j2").render(
        status=shown,
        headline=headline,
        in_cluster=any(node["member"] for node in shown["nodes"]),
        drawings=drawing.drawings(seen, []) if seen else [],
    )
