# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor import compute
from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor.examination import CHECKS
from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor.table import WIDTH, table
from ansible_collections.nometal.ipi.plugins.module_utils._core.checks import Check, examine
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import BLOCKER, OK, WARNING, Finding
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs
from ansible_collections.nometal.ipi.plugins.modules import host_doctor

DOCUMENT = Path(__file__).parents[3] / "docs" / "doctor.md"


def impossible(_needs: Needs) -> int:
    raise PermissionError(13, "Permission denied", "/secret")


def test_a_measurement_that_fails_is_a_warning_that_says_why() -> None:
    [finding] = examine([Check("x", impossible, compute.judge_cpus)], Needs())
    reason = "PermissionError: [Errno 13] Permission denied: '/secret'"
    assert (finding.code, finding.subject, finding.severity) == ("x.not-measured", "x", "warning")
    assert finding.facts == {"reason": reason}
    assert finding.message == f"could not be measured: {reason}"


def test_what_two_checks_measure_is_measured_once() -> None:
    measured: list[Needs] = []

    def measure(needs: Needs) -> int:
        measured.append(needs)
        return 4

    found = examine([Check("x", measure, compute.judge_cpus), Check("y", measure, compute.judge_cpus)], Needs())
    assert [finding.subject for finding in found] == ["x", "y"]
    assert measured == [Needs()]


def test_names_are_unique() -> None:
    names = [check.name for check in CHECKS]
    assert len(names) == len(set(names))


def test_every_check_is_documented_in_the_same_order() -> None:
    rows = [line.split("`")[1] for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert rows == [check.name for check in CHECKS]


def test_the_table_can_be_read() -> None:
    long = "a measured thing " * 10
    lines = table(
        [
            Finding("one.fine", "one", "fine", severity=OK),
            Finding("another.long", "another", long, "do " * 60, severity=WARNING),
            Finding("third.bad", "third", "bad", "stop"),
        ]
    )
    assert lines[0] == "ok       one      fine"
    assert lines[1].startswith("warning  another  a measured thing a measured thing")
    assert lines[2].startswith(" " * 18)
    assert lines[-3:] == ["BLOCKER  third    bad", " " * 18 + "-> stop", "1 blocker, 1 warning, 1 of 3 checks ok"]
    assert max(map(len, lines)) <= WIDTH


def test_the_modules_results_are_for_people_and_for_programs() -> None:
    found = {
        "kvm": Finding("kvm.no-device", "kvm", "there is no /dev/kvm", "Load it.", {"cpu_flag": "vmx"}, WARNING),
        "kvm_access": Finding("kvm_access.no-device", "kvm_access", "there is no /dev/kvm", severity=OK),
        "memory": Finding("memory.exceeds-host", "memory", "9 MiB needed, 3 MiB in all", "Use less.", {"total_mib": 3}),
    }
    result = host_doctor.result_of(list(found.values()))
    assert [found["memory"].severity, result["blockers"], result["warnings_found"]] == [BLOCKER, ["memory"], ["kvm"]]
    assert result["blocking"] == ["memory: 9 MiB needed, 3 MiB in all. Use less."]
    assert result["checks"][0] == {
        "check": "kvm",
        "status": "warning",
        "code": "kvm.no-device",
        "measured": "there is no /dev/kvm",
        "advice": "Load it.",
        "facts": {"cpu_flag": "vmx"},
    }
    assert (result["kvm_works"], result["domain_type"]) == (False, "qemu")
