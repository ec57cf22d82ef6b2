"""Labs that were really broken, as recorded on a whole host: today's code says of them what it must."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from support import rehearsal_lab, rehearsal_recorder, rehearsal_recording
from support.rehearsal_faults import FAULTS


@pytest.mark.parametrize("name", FAULTS)
def test_of_what_was_recorded_the_rehearsal_says_what_it_must(name: str) -> None:
    recording = rehearsal_recording.read(rehearsal_recorder.path(name).read_text(encoding="utf-8"))
    FAULTS[name](rehearsal_lab.checks({"checks": [asdict(check) for check in recording.explained()]}))


def test_every_fault_has_a_recording_and_every_recording_a_fault() -> None:
    assert rehearsal_recorder.names() == set(FAULTS), "run `make recordings`"


@pytest.mark.parametrize("name", sorted(rehearsal_recorder.names()))
def test_nothing_of_a_recording_is_lost_when_it_is_read(name: str) -> None:
    text = rehearsal_recorder.path(name).read_text(encoding="utf-8")
    again = rehearsal_recording.written(rehearsal_recording.read(text))
    assert json.loads(json.dumps(again)) == json.loads(text)
