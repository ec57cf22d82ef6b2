# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor import compute
from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor.examination import EXAMINATIONS, Examination
from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor.finding import blocker, ok, warning
from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor.table import WIDTH, table
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs

DOCUMENT = Path(__file__).parents[3] / "docs" / "doctor.md"


def impossible(_needs: Needs) -> int:
    raise PermissionError(13, "Permission denied", "/secret")


def test_a_measurement_that_fails_is_a_warning_that_says_why() -> None:
    finding = Examination("x", impossible, compute.judge_cpus).of(Needs(), lambda measure: measure(Needs()))
    assert finding.status == "warning"
    assert finding.measured == "could not be measured: PermissionError: [Errno 13] Permission denied: '/secret'"


def test_names_are_unique() -> None:
    names = [examination.name for examination in EXAMINATIONS]
    assert len(names) == len(set(names))


def test_every_check_is_documented_in_the_same_order() -> None:
    rows = [line.split("`")[1] for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert rows == [examination.name for examination in EXAMINATIONS]


def test_the_table_can_be_read() -> None:
    long = "a measured thing " * 10
    lines = table({"one": ok("fine"), "another": warning(long, "do " * 60), "third": blocker("bad", "stop")})
    assert lines[0] == "ok       one      fine"
    assert lines[1].startswith("warning  another  a measured thing a measured thing")
    assert lines[2].startswith(" " * 18)
    assert lines[-3:] == ["BLOCKER  third    bad", " " * 18 + "-> stop", "1 blocker, 1 warning, 1 of 3 checks ok"]
    assert max(map(len, lines)) <= WIDTH
