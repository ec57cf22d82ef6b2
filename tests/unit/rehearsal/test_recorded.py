"""Labs that were really broken, as recorded on a whole host: today's code says of them what it must."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import golden, rehearsal_lab, rehearsal_recorder, rehearsal_recording
from support.rehearsal_faults import FAULTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import Check

MESSAGES = Path(__file__).with_name("messages.txt")
HEAD = """\
# The wording of what recorded rehearsals found: by fault, of each check that failed its code and that of the cause.
# To write it anew, after a change that is meant: NOMETAL_UPDATE_GOLDEN=1 pytest tests/unit/rehearsal -k recorded
"""


@pytest.mark.parametrize("name", FAULTS)
def test_of_what_was_recorded_the_rehearsal_says_what_it_must(name: str) -> None:
    recording = rehearsal_recording.read(rehearsal_recorder.path(name).read_text(encoding="utf-8"))
    FAULTS[name](rehearsal_lab.checks({"checks": [check.to_dict() for check in recording.explained()]}))


def test_messages() -> None:
    blocks = []
    for name in sorted(rehearsal_recorder.names()):
        recording = rehearsal_recording.read(rehearsal_recorder.path(name).read_text(encoding="utf-8"))
        blocks += [
            "",
            name,
            *(line for check in recording.explained() if check.state == "failed" for line in of(check)),
        ]
    golden.compare("\n".join([HEAD.rstrip(), *blocks, ""]), MESSAGES)


def of(check: Check) -> Iterator[str]:
    yield f"  {check.code} {check.cause.code if check.cause else '-'}"
    yield f"    {check.who}, {check.check}: expected {check.expected}; seen {check.seen}"
    yield f"    {check.advice}"


def test_every_fault_has_a_recording_and_every_recording_a_fault() -> None:
    assert rehearsal_recorder.names() == set(FAULTS), "run `make recordings`"


@pytest.mark.parametrize("name", sorted(rehearsal_recorder.names()))
def test_nothing_of_a_recording_is_lost_when_it_is_read(name: str) -> None:
    text = rehearsal_recorder.path(name).read_text(encoding="utf-8")
    again = rehearsal_recording.written(rehearsal_recording.read(text))
    assert json.loads(json.dumps(again)) == json.loads(text)
