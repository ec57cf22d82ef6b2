"""What `make test` says in the end."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import summary

if TYPE_CHECKING:
    from pathlib import Path

CASE = "<testcase classname='tests.unit.test_{name}' name='test_it' time='{seconds}'>{cost}{failure}</testcase>"
COST = "<properties><property name='cpu_seconds' value='30.5'/></properties>"


def record(directory: Path, part: str, order: int, *cases: str) -> None:
    file = directory / f"{part}.xml"
    file.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>", encoding="utf-8")
    os.utime(file, (order, order))


def test_it_counts_and_names_the_slowest_first(tmp_path: Path) -> None:
    fast = [CASE.format(name=f"fast{number}", seconds=number / 100, cost="", failure="") for number in range(20)]
    slow = CASE.format(name="slow", seconds=61.25, cost=COST, failure="<failure>no</failure>")
    record(tmp_path, "unit", 1, *fast)
    record(tmp_path, "integration", 2, slow)
    told = summary.lines(summary.tests_in(tmp_path))
    assert told[0] == "the 10 slowest, with their CPU seconds:"
    assert told[1] == "    61.2 s   30.5  tests/unit/test_slow.py::test_it"
    assert told[11] == "the 10 slowest files, with their CPU seconds:"
    assert told[-2:] == ["FAILED tests/unit/test_slow.py::test_it", "20 passed, 1 failed"]
    record(tmp_path, "again", 3, CASE.format(name="slow", seconds=60, cost="", failure=""))
    assert summary.lines(summary.tests_in(tmp_path))[-1] == "21 passed, 0 failed"


def test_what_could_not_be_set_up_has_failed(tmp_path: Path) -> None:
    record(tmp_path, "unit", 1, CASE.format(name="one", seconds=0, cost="", failure="<error>no</error>"))
    assert summary.lines(summary.tests_in(tmp_path))[-1] == "0 passed, 1 failed"


def test_the_tests_of_a_file_are_summed_up(tmp_path: Path) -> None:
    case = CASE.format(name="one", seconds=2, cost=COST, failure="")
    record(tmp_path, "unit", 1, case, case.replace("test_it", "test_another"))
    assert "     4.0 s   61.0  tests/unit/test_one.py" in summary.lines(summary.tests_in(tmp_path))
