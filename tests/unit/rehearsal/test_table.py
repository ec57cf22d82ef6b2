"""The report of a rehearsal as lines of text."""

from __future__ import annotations

import re

import pytest
from unit.rehearsal import reports

from ansible_collections.nometal.ipi.plugins.module_utils._core.wording import cut, line_of, listed
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report.table import WIDTH, about_faults, lines


def cells(line: str) -> list[str]:
    return re.split(r" {2,}", line)


def test_a_small_lab_that_is_well() -> None:
    shown = lines(reports.checks())
    assert shown[0].split() == ["check", "who", "state", "expected", "seen"]
    assert cells(shown[5]) == ["address", "bootstrap", "ok", "it does", "as expected"]
    assert cells(shown[19]) == ["address", "all 4 nodes", "ok", "192.168.126.20 and 3 more", "as expected"]
    assert shown[-1] == "0 failed, 0 skipped, 80 of 80 checks ok"
    assert len(shown) == len(reports.HOST_CHECKS + reports.BOOTSTRAP_CHECKS + reports.NODE_CHECKS) + 3


@pytest.mark.parametrize("nodes", [4, 100])
def test_the_number_of_nodes_does_not_matter_as_long_as_all_is_well(nodes: int) -> None:
    shown = lines(reports.checks(nodes))
    assert len(shown) <= 40
    assert f"all {nodes} nodes" in "\n".join(shown)
    assert max(map(len, shown)) <= WIDTH


def test_what_failed_comes_first_with_what_to_do() -> None:
    report = reports.report()
    reports.fail(report, "address", "worker-0", seen="192.168.126.99", advice="Correct the MAC. " * 20)
    shown = lines(report["checks"])
    assert shown[1].split() == ["address", "worker-0", "FAILED", "192.168.126.23", "192.168.126.99"]
    assert shown[2].startswith("      -> Correct the MAC. Correct")
    assert shown[3].startswith("         Correct")
    assert ["address", "3 of 4 nodes", "ok", "192.168.126.20 and 2 more", "as expected"] in map(cells, shown)
    assert max(map(len, shown)) <= WIDTH


def test_causes_come_before_what_follows_from_them() -> None:
    report = reports.report()
    reports.fail(report, "other nodes", "control-plane-0", advice="See there.")
    reports.fail(report, "boots from its medium", "worker-0")
    assert [line.split("  ")[0] for line in lines(report["checks"])[1:4:2]] == ["boots from its medium", "other nodes"]


def test_the_same_cause_on_many_nodes_is_told_once() -> None:
    report = reports.report(100)
    reports.fail(report, "BMC answers", *reports.names(90), advice="The port is filtered.")
    shown = lines(report["checks"])
    assert "90 of 100 nodes" in shown[1]
    assert "who: control-plane-0, control-plane-1" in shown[2]
    assert sum("filtered" in line for line in shown) == 1


def test_many_causes_are_not_all_told() -> None:
    report = reports.report(100)
    for name in reports.names(100):
        reports.fail(report, "root disk", name, advice=f"The hints of {name} are wrong.")
    shown = lines(report["checks"])
    assert sum("FAILED" in line for line in shown) == 8
    assert "... and 92 more that failed or were skipped: the page and the JSON report have all" in shown


def test_what_is_cut_stands_below_in_full() -> None:
    report = reports.report()
    reports.fail(report, "disks", "worker-0", seen="a disk that is long to tell " * 5)
    shown = lines(report["checks"])
    assert "..." in shown[1]
    assert shown[2].startswith("      seen: a disk that is long to tell a disk")


def test_skipped_for_one_reason_is_one_row() -> None:
    checks = [
        reports.check(name, who, "skipped", expected="", seen="no network")
        for who in reports.names(4)
        for name in reports.NODE_CHECKS
    ]
    assert lines(checks)[1].split() == ["17", "checks", "all", "4", "nodes", "skipped", "no", "network"]


def test_nothing_steers_the_terminal() -> None:
    hostile = "\x1b[31mred\x1b[0m\r\n\x07\x9b2J\u202eabc \udcff"
    report = reports.report()
    reports.fail(report, "names", "worker-0", seen=hostile, advice=hostile)
    assert all(line.isprintable() for line in lines(report["checks"]))


def test_no_checks() -> None:
    assert lines([])[-1] == "0 failed, 0 skipped, 0 of 0 checks ok"


@pytest.mark.parametrize(
    ("names", "most", "told"),
    [
        ([], 3, ""),
        (["a"], 3, "a"),
        (["a", "b", "c"], 3, "a, b and c"),
        (["a", "b", "c", "d"], 3, "a, b and 2 others"),
    ],
)
def test_listed(names: list[str], most: int, told: str) -> None:
    assert listed(names, most) == told


def test_values_of_any_kind_are_one_line() -> None:
    assert line_of(["a", None, 3]) == "a, , 3"
    assert line_of("two\nlines\x1b]0;title\x07") == "two lines"
    assert cut("abcdefgh", 6) == "abc..."


def test_faults_of_bmcs_are_named_below() -> None:
    assert about_faults([]) == []
    assert about_faults(["status 503 (30 %)"])[2:] == ["- status 503 (30 %)"]
