"""The page of a report, made by Ansible on this machine as for a managed host."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any

import pytest
from support import modules
from unit.rehearsal import reports

if TYPE_CHECKING:
    from pathlib import Path

INVENTORY = (
    "hypervisor ansible_connection=local ansible_python_interpreter=/usr/bin/python3 ansible_remote_tmp={}/tmp\n"
)
SAID = "Loading <kernel> {{ no_such_variable }}"


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """The directory of a lab that was rehearsed, of which a node was silent."""
    report = reports.report()
    reports.fail(report, "boots from its medium", "worker-0", advice="See {{ its_console }}.")
    report["consoles"] = {"worker-0": [SAID]}
    directory = tmp_path / "demo"
    directory.mkdir()
    (directory / "rehearsal.json").write_text(json.dumps(report), encoding="utf-8")
    (tmp_path / "hosts").write_text(INVENTORY.format(tmp_path), encoding="utf-8")
    return directory


def made(lab: Path, **options: Any) -> dict[str, Any]:
    arguments = {"report": str(lab / "rehearsal.json")}
    return modules.run_on(lab.parent / "hosts", "rehearsal_page", arguments, **options)


def test_it_is_written_once_beside_the_report_and_shows_nothing_of_it_in_ansibles_output(lab: Path) -> None:
    page = lab / "rehearsal.html"
    assert made(lab, check_mode=True)["changed"]
    assert not page.exists()
    result = made(lab)
    assert result == {"changed": True, "page": str(page), "failed": False, "shown_diff": "", "warned": result["warned"]}
    assert stat.S_IMODE(page.stat().st_mode) == 0o644
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "Loading &lt;kernel&gt; {{ no_such_variable }}" in text
    assert "See {{ its_console }}." in text
    assert not made(lab)["changed"]
    assert sorted(path.name for path in lab.iterdir()) == ["rehearsal.html", "rehearsal.json"]


def test_before_there_is_a_report_only_check_mode_goes_on(lab: Path) -> None:
    (lab / "rehearsal.json").unlink()
    assert made(lab, check_mode=True)["page"] == str(lab / "rehearsal.html")
    result = made(lab)
    assert result["failed"]
    assert "There is no report that can be read" in result["msg"]
    assert str(lab / "rehearsal.json") in result["msg"]


def test_what_is_no_report_is_refused(lab: Path) -> None:
    (lab / "rehearsal.json").write_text("{", encoding="utf-8")
    result = made(lab)
    assert result["failed"]
    assert result["msg"].startswith(f"{lab}/rehearsal.json must be the JSON of a report: ")
    assert not (lab / "rehearsal.html").exists()
