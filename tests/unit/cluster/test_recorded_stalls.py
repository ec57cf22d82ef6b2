"""Installations that really stood still or failed, as recorded on a whole host: today's code finds what it must."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support import dataclass_json, golden, stall_faults, stall_recorder, stall_recording

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.evidence import HostSeen

NAMES = sorted(stall_recorder.names())
MESSAGES = Path(__file__).with_name("stalls.txt")
HEAD = """\
# The wording of what is found to be wrong with recorded installations, by fault: code and text of each finding.
# To write it anew, after a change that is meant: NOMETAL_UPDATE_GOLDEN=1 pytest tests/unit/cluster -k recorded
"""


def recorded(name: str) -> stall_recording.Recording:
    return stall_recording.read(json.loads(stall_recorder.path(name).read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", stall_faults.FAULTS)
def test_of_what_was_recorded_the_diagnosis_finds_what_it_must(name: str) -> None:
    stall_faults.judge(name, recorded(name).findings())


def test_messages() -> None:
    golden.compare(golden.wording(HEAD, {name: recorded(name).findings() for name in NAMES}), MESSAGES)


@pytest.mark.parametrize("name", NAMES)
def test_findings_are_data(name: str) -> None:
    data = [finding.to_dict() for finding in recorded(name).findings()]
    assert json.loads(json.dumps(data)) == data


def test_every_fault_has_a_recording_and_every_recording_a_fault() -> None:
    assert {*NAMES} == set(stall_faults.FAULTS), "run `make recordings`"


@pytest.mark.parametrize(("seconds", "found"), [(0.0, []), (3600.0, ["host"])])
def test_a_busy_host_is_blamed_only_for_what_took_long(seconds: float, found: list[str]) -> None:
    failed = recorded("failed_at_once")
    host = replace(failed.evidence.host, load=99.0)
    progress = replace(failed.progress, last=failed.progress.last + seconds)
    busy = replace(failed, progress=progress, evidence=replace(failed.evidence, host=host), patience=1.0)
    assert [finding.subject for finding in busy.findings()] == found


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_a_recording_is_lost_when_it_is_read(name: str) -> None:
    again = dataclass_json.written(recorded(name))
    assert json.loads(json.dumps(again)) == json.loads(stall_recorder.path(name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_holds_nothing_of_the_machine_and_no_login(name: str) -> None:
    evidence = recorded(name).evidence
    none = HostSeen()
    seen = evidence.host
    assert (seen.load, seen.cores, seen.memory_available) == (none.load, none.cores, none.memory_available)
    assert seen.pressure == none.pressure
    assert {key for bmc in evidence.bmcs.values() for key in bmc} <= {*stall_recording.JUDGED_OF_BMCS}
