"""Say what share of the lines and branches was reached: `tests/coverage_totals.py REPORT`, by `coverage json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

KINDS = {"lines": ("covered_lines", "num_statements"), "branches": ("covered_branches", "num_branches")}


def words(totals: dict[str, int]) -> str:
    shares = ((kind, totals[covered], totals[of]) for kind, (covered, of) in KINDS.items())
    return ", ".join(f"{kind}: {covered} of {of}, {covered / of:.2%}" for kind, covered, of in shares)


if __name__ == "__main__":
    report = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.stdout.write(f"{words(report['totals'])}\n")
