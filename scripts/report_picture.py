"""Write docs/images/report.svg: the picture of a lab, as the report of a rehearsal draws it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/images/report.svg"
STYLE = ROOT / "plugins/plugin_utils/rehearsal_report/style.css"
MARGIN = 16


def picture() -> str:
    from unit.rehearsal import reports  # noqa: PLC0415 - found by main()

    from ansible_collections.nometal.ipi.plugins.plugin_utils.rehearsal_report import drawing, page  # noqa: PLC0415

    report = reports.report(nodes=4)
    wide = page.svg(drawing.drawings(report["picture"], report["checks"])[0]).strip()
    left, top, width, height = map(float, re.findall(r'viewBox="([^"]*)"', wide)[0].split())
    box = f"{left - MARGIN:g} {top - MARGIN:g} {width + 2 * MARGIN:g} {height + 2 * MARGIN:g}"
    ground = f'<rect x="{left - MARGIN:g}" y="{top - MARGIN:g}" width="100%" height="100%" fill="#ffffff"/>'
    opening, rest = re.sub(r'viewBox="[^"]*"', f'viewBox="{box}"', wide, count=1).split(">", 1)
    return f"{opening}><style>{_rules()}</style>{ground}{rest}\n"


def _rules() -> str:
    """Those of drawings, without what depends on the viewer: it is shown on pages of others."""
    everywhere = re.sub(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", STYLE.read_text(encoding="utf-8"))
    values = dict(re.findall(r"--([a-z-]+):([^;}]+)", everywhere))
    filled = re.sub(r"var\(--([a-z-]+)\)", lambda name: values[name[1]], everywhere)  # not every viewer has variables
    used = [rule for rule in re.findall(r"[^{}]+\{[^}]*\}", filled) if rule.strip().startswith("svg")]
    return "".join(["text{font-family:sans-serif}", *used])


def main() -> None:
    sys.path[:0] = [str(ROOT / "playbooks/collections"), str(ROOT / "tests")]
    PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
