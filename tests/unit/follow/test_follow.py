"""What the module sees of a job and of the lines that it writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.nometal.ipi.plugins.modules import follow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STARTED = {"started": 1, "finished": 0, "ansible_job_id": "j12.34"}
RESULT = {"changed": True, "started": True}


@pytest.fixture
def wrapper() -> Iterator[str]:
    """The name of a job that a process carries, as Ansible's own wrapper does."""
    name = f"j{os.getpid()}77"
    program = [sys.executable, "-c", "print(flush=True); input()", name]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        yield f"{name}.34"
        process.kill()


def seen(directory: Path, job: str = "j12.34", wait: float = 0) -> dict[str, Any]:
    look = {"directory": str(directory), "offset": 0, "wait": wait}
    return follow.run({"job": job, "events": str(directory / "events"), "_look": look})


@pytest.mark.parametrize(
    ("written", "state"),
    [
        (None, "gone"),
        (STARTED, "died"),
        ("", "died"),
        (RESULT, "ended"),
        ({"failed": True, "msg": "no", "cmd": "false"}, "ended"),
        (
            {"failed": True, "msg": "Traceback", "cmd": "x", "data": "", "stderr": "", "ansible_job_id": "j12.34"},
            "died",
        ),
        ({"failed": True, "msg": "Timeout exceeded", "child_pid": 3}, "stopped"),
    ],
)
def test_what_became_of_a_job_without_a_process(tmp_path: Path, written: Any, state: str) -> None:
    if written is not None:
        (tmp_path / "j12.34").write_text(json.dumps(written) if written else "", encoding="utf-8")
    assert seen(tmp_path)["job"] == state


def test_a_job_runs_while_its_process_does(tmp_path: Path, wrapper: str) -> None:
    (tmp_path / wrapper).write_text(json.dumps({**STARTED, "finished": False}), encoding="utf-8")
    answer = seen(tmp_path, wrapper, wait=0.3)
    assert (answer["job"], answer["lines"]) == ("running", [])
    assert 0.3 <= answer["elapsed"] < 10


def test_lines_of_an_earlier_job_are_not_shown(tmp_path: Path, wrapper: str) -> None:
    events = tmp_path / "events"
    events.write_text("old\n", encoding="utf-8")
    os.utime(events, (1, 1))
    (tmp_path / wrapper).write_text(json.dumps(STARTED), encoding="utf-8")
    assert (seen(tmp_path, wrapper)["lines"], seen(tmp_path, wrapper)["offset"]) == ([], 0)
    events.write_text("new\n", encoding="utf-8")
    assert seen(tmp_path, wrapper)["lines"] == ["new"]


@pytest.mark.parametrize(
    ("text", "offset", "running", "expected"),
    [
        (b"a\nb\n", 0, True, (["a", "b"], 4)),
        (b"a\nb\n", 2, True, (["b"], 4)),
        (b"a\nb\n", 4, True, ([], 4)),
        (b"a\nhalf", 0, True, (["a"], 2)),
        (b"half", 0, True, ([], 0)),
        (b"a\nhalf", 0, False, (["a", "half"], 6)),
        (b"a\n", 40, True, (["a"], 2)),
        (b"\xff\n\n\xe2\x80\xa8\n", 0, True, (["\ufffd", "\u2028"], 7)),
        (None, 7, True, ([], 0)),
    ],
)
def test_lines_are_read_when_they_are_complete(
    tmp_path: Path, text: bytes | None, offset: int, *, running: bool, expected: tuple[list[str], int]
) -> None:
    events = tmp_path / "events"
    if text is not None:
        events.write_bytes(text)
    assert follow.new_lines(events, offset, since=0, to_the_end=not running) == expected
