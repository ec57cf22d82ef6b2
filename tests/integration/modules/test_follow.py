"""Jobs that are followed as a role does it, on this machine: in a pipe, on a terminal, and when they go wrong."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.checkout import ROOT
from support.waiting import PATIENCE
from unit.follow.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH, HEIGHT = 100, 30
BANNER = "TASK [play | Follow it]"
EVENTS = "{{ directory }}/{{ inventory_hostname }}.jsonl"
SAY = f"""say() {{ printf '{{"at": %s, "who": "%s", "state": "%s"%s}}\\n' "$@" >>{EVENTS}; }}; """
GOOD = """
say 0.1 host 'makes the disks' ''
until [ -e {{ directory }}/go ]; do sleep 0.05; done
say 2.1 worker-0 'boots from its medium' ''
say 2.1 worker-1 'does not answer' ', "trouble": true'
say 2.2 host 'is ready' ''
sleep 0.5
echo done
"""
# How each host's job goes wrong.
BAD = {
    "failing": "say 1 worker-0 'is off' ''; exit 3",
    "crashing": "say 1 worker-0 'is off' ''; kill -9 $PPID",
    "killed": "say 1 worker-0 'is off' ''; kill -9 0",
    "stopped": "say 1 worker-0 'is off' ''; sleep 600",
    "late": "say 1 worker-0 'is off' ''; sleep 60",
    "vanished": "true",
    "secret": "say 1 worker-0 'is off' ''; exit 3",
}


def playbook(directory: Path, jobs: dict[str, str]) -> list[str]:
    """A run of all jobs, each on a host of its own."""
    variables = {
        "ansible_connection": "local",
        "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_async_dir": str(directory / "jobs"),
        "ansible_remote_tmp": str(directory / "tmp"),
        "directory": str(directory),
        "jobs": jobs,
    }
    start = {
        "name": "play | Start it",
        "ansible.builtin.shell": SAY + "{{ jobs[inventory_hostname] }}",
        "async": "{{ 12 if inventory_hostname == 'stopped' else 300 }}",
        "poll": 0,
        "register": "job",
    }
    follow = {
        "name": "play | Follow it",
        "nometal.ipi.follow": {
            "job": "{{ 'j1.2' if inventory_hostname == 'vanished' else job.ansible_job_id }}",
            "events": EVENTS,
            "limit": "{{ 1 if inventory_hostname in ['late', 'vanished'] else 120 }}",
        },
        "no_log": "{{ inventory_hostname == 'secret' }}",
        "register": "played",
    }
    show = {"name": "play | Show it", "ansible.builtin.debug": {"msg": "RESULT {{ played | to_json }}"}}
    play = {"hosts": "all", "gather_facts": False, "vars": variables, "tasks": [start, follow, show]}
    file = directory / "play.yml"
    file.write_text(yaml.safe_dump([play]), encoding="utf-8")
    program = Path(sys.executable).with_name("ansible-playbook")
    return [str(program), "-i", ",".join([*jobs, ""]), "--forks", "9", str(file)]


def environment(directory: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key != "CI" and not key.startswith("ANSIBLE")}
    collections = str(ROOT / "playbooks" / "collections")
    own = {"ANSIBLE_COLLECTIONS_PATH": collections, "ANSIBLE_LOCAL_TEMP": str(directory / "local"), "TERM": "xterm"}
    return {**kept, **own, "ANSIBLE_CALLBACK_RESULT_FORMAT": "json", "ANSIBLE_LOG_PATH": str(directory / "log")}


def piped(directory: Path, jobs: dict[str, str]) -> Iterator[str]:
    """Each line when it comes."""
    with subprocess.Popen(
        playbook(directory, jobs),
        cwd=directory,
        env=environment(directory),
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        for line in process.stdout or ():
            yield line.rstrip("\n")


def on_a_terminal(directory: Path, jobs: dict[str, str]) -> str:
    """All that was written to it; the job goes on when it is seen at work for a second."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    command, variables = playbook(directory, jobs), environment(directory)
    with subprocess.Popen(
        command, cwd=directory, env=variables, stdin=its, stdout=its, stderr=its, start_new_session=True
    ) as process:
        os.close(its)
        written = b""
        while part := _read(ours):
            written += part
            if b"makes the disks" in written and re.search(rb"elapsed [1-9]\d* s", written):
                (directory / "go").touch()
        process.wait(PATIENCE)
    os.close(ours)
    return written.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how a pseudo-terminal ends
        return b""


def result(text: str) -> dict[str, Any]:
    shown = re.search(r'"msg": ("RESULT .*")', text)
    assert shown
    return dict(json.loads(json.loads(shown[1]).removeprefix("RESULT ")))


def left(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / "jobs").iterdir())


def test_in_a_pipe_each_change_is_a_line_at_once(tmp_path: Path) -> None:
    """The first is there while the job waits for what follows it."""
    lines = []
    for line in piped(tmp_path, {"localhost": GOOD}):
        lines.append(line)
        if line.endswith("makes the disks"):
            (tmp_path / "go").touch()
    begin = next(place for place, line in enumerate(lines) if line.startswith(BANNER))
    assert lines[begin + 1 : begin + 6] == [
        "[   0.1 s] host             makes the disks",
        "[   2.1 s] worker-0         boots from its medium",
        "[   2.1 s] worker-1         TROUBLE: does not answer",
        "[   2.2 s] host             is ready",
        "changed: [localhost]",
    ]
    played = result("\n".join(lines))
    assert (played["stdout"], played["rc"], played["changed"], played["failed"]) == ("done", 0, True, False)
    assert not {"ansible_job_id", "started", "finished", "results_file"} & played.keys()
    assert left(tmp_path) == []


def test_on_a_terminal_there_is_a_table(tmp_path: Path) -> None:
    written = on_a_terminal(tmp_path, {"localhost": GOOD})
    terminal = Terminal(WIDTH, HEIGHT)
    task = written[written.index(BANNER) : written.index("TASK [play | Show it]")]
    terminal.write(task)
    lines = terminal.text.splitlines()
    assert lines[1:5] == [
        "who          since  state",
        "host         2.2 s  is ready",
        "worker-0     2.1 s  boots from its medium",
        "worker-1     2.1 s  TROUBLE: does not answer",
    ]
    assert re.fullmatch(r"elapsed \d+ s", lines[5])
    assert lines[6] == "changed: [localhost]"
    assert "makes the disks" in task
    assert re.search(r"elapsed [1-9]\d* s", task)
    log = (tmp_path / "log").read_text(encoding="utf-8")
    assert "| [   2.1 s] worker-0         boots from its medium" in log
    assert "\x1b" not in log


@pytest.fixture(scope="module")
def went_wrong(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    directory = tmp_path_factory.mktemp("wrong")
    return "\n".join(piped(directory, BAD)), directory


@pytest.mark.parametrize(
    ("host", "says"),
    [
        ("failing", r".*non-zero return code.*"),
        ("crashing", r"The job j\d+\.\d+ died and left no result: .* Last seen: worker-0, is off, at 1\.0 s\."),
        ("killed", r"The job j\d+\.\d+ died and left no result: .* Last seen: worker-0, is off, at 1\.0 s\."),
        ("stopped", r"The job j\d+\.\d+ was stopped: .* Last seen: worker-0, is off, at 1\.0 s\."),
        ("late", r"The job j\d+\.\d+ has not ended within the limit of 1 s\. It goes on\. Last seen: worker-0, .*"),
        ("vanished", r"The job j1\.2 is not known on this host: there is no /.*/jobs/j1\.2\. .* Nothing was heard .*"),
    ],
)
def test_a_job_that_goes_wrong_fails_the_task(went_wrong: tuple[str, Path], host: str, says: str) -> None:
    told = re.search(rf"^fatal: \[{host}\]: FAILED! => (.*)$", went_wrong[0], re.MULTILINE)
    assert told
    assert re.fullmatch(says, json.loads(told[1])["msg"])


def test_hosts_side_by_side_are_told_apart_and_secrets_kept(went_wrong: tuple[str, Path]) -> None:
    begun = {
        line.partition(": [")[0] for line in went_wrong[0].splitlines() if line.endswith("worker-0         is off")
    }
    assert begun == set(BAD) - {"vanished", "secret"}


def test_a_job_that_ended_is_forgotten_on_the_host(went_wrong: tuple[str, Path]) -> None:
    output, directory = went_wrong
    late = re.search(r"The job (j\d+\.\d+) has not ended", output)
    assert late
    assert late[1] in left(directory)
    assert len(left(directory)) == 2  # and the one that was started in the place of the vanished
