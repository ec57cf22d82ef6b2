"""Write docs/images/report.svg: the picture of a lab, as the report of a rehearsal draws it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/images/report.svg"
MARGIN = 16


def picture() -> str:
    from unit.rehearsal import reports  # noqa: PLC0415 - found by main()

    from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report.page import page  # noqa: PLC0415

    html = page(reports.report(nodes=4))
    [style] = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    wide = re.findall(r"<svg.*?</svg>", html, re.DOTALL)[0]
    left, top, width, height = map(float, re.findall(r'viewBox="([^"]*)"', wide)[0].split())
    box = f"{left - MARGIN:g} {top - MARGIN:g} {width + 2 * MARGIN:g} {height + 2 * MARGIN:g}"
    ground = f'<rect x="{left - MARGIN:g}" y="{top - MARGIN:g}" width="100%" height="100%" fill="#ffffff"/>'
    opening, rest = wide.split(">", 1)
    opening = re.sub(r'viewBox="[^"]*"', f'viewBox="{box}"', opening)
    if "xmlns=" not in opening:
        opening += ' xmlns="http://www.w3.org/2000/svg"'
    plain = re.sub(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", style)  # it is shown on a page of others
    values = dict(re.findall(r"--([a-z-]+):([^;}]+)", plain))
    filled = re.sub(r"var\(--([a-z-]+)\)", lambda name: values[name[1]], plain)  # not every viewer has variables
    used = [rule for rule in re.findall(r"[^{}]+\{[^}]*\}", filled) if rule.strip().startswith("svg")]
    rules = "".join(["text{font-family:sans-serif}", *used])
    return f"{opening}><style>{rules}</style>{ground}{rest}\n"


def main() -> None:
    sys.path[:0] = [str(ROOT / "playbooks/collections"), str(ROOT / "tests")]
    PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
