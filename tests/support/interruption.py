"""Is a playbook that was killed at any point completed by the next run?

For each task: a fresh host, a run that is killed there, a run to the end, and a comparison with a host on which
nothing was interrupted. A host costs a second; the rest is the playbook's own time, about one and a half times a task.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Callable

from support import processes, snapshot

if TYPE_CHECKING:
    from support.lab_host import LabHost
    from support.snapshot import Snapshot

CALLBACKS = Path(__file__).with_name("ansible_callbacks")


class PlaybookFailed(Exception):  # noqa: N818 - reads as a sentence in `pytest.raises(PlaybookFailed)`
    """The uninterrupted run did not end well, so there is nothing to compare with."""


@dataclass(frozen=True)
class Playbook:
    """How to run a playbook on a host: the command line for that host, and where."""

    command: Callable[[LabHost], Sequence[str]]
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 600


@dataclass(frozen=True)
class Task:
    """A task as it went in an uninterrupted run."""

    number: int
    name: str
    outcome: str
    seconds: float


Points = Callable[[Sequence[Task]], Sequence[Task]]


def every_task(tasks: Sequence[Task]) -> Sequence[Task]:
    """Every task that did something. (A skipped one leaves the host as the task before it left it.)"""
    return [task for task in tasks if task.outcome != "skipped"]


def changing_tasks(tasks: Sequence[Task]) -> Sequence[Task]:
    """Only those that report a change: enough as far as the others are to be believed when they report none."""
    return [task for task in tasks if task.outcome == "changed"]


def every_nth(step: int, points: Points = every_task, first: int = 0) -> Points:
    """A sample of them."""
    return lambda tasks: list(points(tasks))[first::step]


def interrupt_everywhere(  # noqa: PLR0913 - by keyword, and mostly left out
    playbook: Playbook,
    make_host: Callable[[], LabHost],
    *,
    points: Points = every_task,
    during: bool = False,
    without: Collection[str] = (),
    leave_out: Collection[str] = (),
    workers: int = 2,
) -> str:
    """Interrupt at every point; returns what went wrong, "" when nothing did.

    during: killed in the middle of the task (after half of the time it took), on both ends; else when it has ended.
    without, leave_out: what the comparison passes over; see snapshot.py.
    """
    tasks, reference = _uninterrupted(playbook, make_host, leave_out)
    chosen = points(tasks)

    def attempt(task: Task) -> str:
        problem = _interrupted(playbook, make_host, task, during, reference, without, leave_out)
        moment = "during" if during else "after"
        sys.stderr.write(f"  killed {moment} {task.number}/{len(tasks)} {task.name}: {'WRONG' if problem else 'ok'}\n")
        sys.stderr.flush()
        return f"Killed {moment} task {task.number} ({task.name}), then run again:\n{problem}\n" if problem else ""

    with ThreadPoolExecutor(workers) as pool:
        return "\n".join(filter(None, pool.map(attempt, chosen)))


def run(
    playbook: Playbook, host: LabHost, at: Task | None = None, *, during: bool = False, after_changes: int = 0
) -> tuple[int, str, list[Task]]:
    """One run: exit code (-9 when killed), output, tasks. It is killed at a task, or after so many tasks' changes."""
    # What is being killed may still write there for a moment.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        record = Path(directory) / "tasks"
        record.touch()
        # A killed run clears nothing away.
        settings = {"ANSIBLE_LOCAL_TEMP": directory, **_callback_settings(record, at, during)}
        settings["INTERRUPTION_AFTER_CHANGES"] = str(after_changes)
        environment = {**os.environ, **playbook.environment, **settings}
        done = subprocess.run(
            list(playbook.command(host)),
            cwd=playbook.directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=playbook.timeout,
            start_new_session=True,  # the group that the callback kills
        )
        tasks = [Task(**json.loads(line)) for line in record.read_text().splitlines()]
    return done.returncode, done.stdout, tasks


def end_sessions(host: LabHost) -> None:
    """Kill what a killed run has left running on the host: sshd's sessions with all that has not detached itself."""
    for pid in filter(_is_session, list(processes.all_pids())):
        with suppress(OSError):
            if processes.in_same_pid_namespace(pid, host.leader):
                for victim in [*processes.descendants(pid), pid]:
                    os.kill(victim, signal.SIGKILL)


def _is_session(pid: int) -> bool:
    title = " ".join(processes.command_line(pid))
    return title.startswith(("sshd: ", "sshd-session: ", "/usr/sbin/sshd -i")) and "listener" not in title


def _callback_settings(record: Path, at: Task | None, during: bool) -> dict[str, str]:
    plugins = os.pathsep.join(filter(None, [str(CALLBACKS), os.environ.get("ANSIBLE_CALLBACK_PLUGINS")]))
    settings = {
        "ANSIBLE_CALLBACK_PLUGINS": plugins,
        "ANSIBLE_CALLBACKS_ENABLED": "interruption",
        "INTERRUPTION_RECORD": str(record),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    if at:
        settings["INTERRUPTION_AT"] = str(at.number)
    if at and during:
        settings["INTERRUPTION_DELAY"] = f"{at.seconds / 2:.3f}"
    return settings


def _uninterrupted(
    playbook: Playbook, make_host: Callable[[], LabHost], leave_out: Collection[str]
) -> tuple[list[Task], Snapshot]:
    with make_host() as host:
        code, output, tasks = run(playbook, host)
        if code != 0:
            raise PlaybookFailed(f"The uninterrupted run ended with {code}:\n{output[-6000:]}")
        return tasks, snapshot.take(host, leave_out)


def _interrupted(  # noqa: PLR0913, PLR0917 - what interrupt_everywhere was given
    playbook: Playbook,
    make_host: Callable[[], LabHost],
    task: Task,
    during: bool,
    reference: Snapshot,
    without: Collection[str],
    leave_out: Collection[str],
) -> str:
    with make_host() as host:
        code, output, _tasks = run(playbook, host, task, during=during)
        if code != -signal.SIGKILL:
            return f"It was to be killed but ended with {code}:\n{output[-3000:]}"
        end_sessions(host)
        code, output, _tasks = run(playbook, host)
        if code != 0:
            return f"The next run ended with {code}:\n{output[-3000:]}"
        return snapshot.take(host, leave_out).diff(reference, without)
