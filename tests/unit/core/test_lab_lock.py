"""Who has a lab, and when a run that has it can no longer be there."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core import processes
from ansible_collections.nometal.ipi.plugins.module_utils._core.lab_lock import (
    GRACE,
    HELD,
    NOT_OURS,
    RELEASED,
    RENEWED,
    TAKEN,
    WAITING,
    Controller,
    LabLock,
    Process,
    Record,
    Seen,
    described,
    judge,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab import paths
from ansible_collections.nometal.ipi.plugins.modules import lab_lock

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier
    from pathlib import Path

ALICE = Controller("laptop", "m1", "boot-a", "pid:[1]", Process(100, "1000"))
HERE_TOO = replace(ALICE, process=Process(200, "2000"))
REBOOTED = replace(HERE_TOO, boot="boot-b")
CLONE = replace(REBOOTED, name="desktop")  # made from the same disk image
CONTAINER = replace(HERE_TOO, name="awx-1", pid_namespace="pid:[2]")
BOB = Controller("desktop", "m2", "boot-c", "pid:[1]", Process(100, "1000"))
NO_PROC = Controller("mac", "", "", "", Process(1, "Thu"))
RECORD = Record(ALICE, "alice", "site.yml", Process(7, "70"), "boot-h", taken=0.0, renewed=1000.0)
NOW = Seen(boot="boot-h", now=1010.0, has_connection=True)
CUT = replace(NOW, has_connection=False)
PROCESSES = 8
HOLDS_ITS_LOCK = """import fcntl, sys, time
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print(flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("record", "run", "seen", "gone", "wait"),
    [
        (RECORD, BOB, NOW, "", 0),
        (RECORD, HERE_TOO, NOW, "", 0),
        (RECORD, CONTAINER, NOW, "", 0),
        (RECORD, BOB, replace(NOW, boot="boot-i"), "the host was restarted since", 0),
        (RECORD, HERE_TOO, replace(NOW, ended=ALICE), "its process is no longer there", 0),
        (RECORD, HERE_TOO, replace(NOW, ended=replace(ALICE, process=Process(100, "999"))), "", 0),
        (RECORD, REBOOTED, NOW, "its controller was restarted since", 0),
        (RECORD, CLONE, NOW, "", 0),
        (RECORD, BOB, CUT, "", GRACE - 10),
        (RECORD, CONTAINER, CUT, "", GRACE - 10),
        (RECORD, BOB, replace(CUT, now=1000.0 + GRACE), "its connection to the host has ended", 0),
        (RECORD, BOB, replace(CUT, now=1000.0 + GRACE - 1), "", 1),
        # The controller sees for itself whether its own run is there, connected or not.
        (RECORD, HERE_TOO, replace(CUT, now=9999.0), "", 0),
        # Connections that end with each task say nothing.
        (replace(RECORD, connection=None), BOB, replace(CUT, now=9999.0), "", 0),
        (replace(RECORD, controller=NO_PROC), replace(NO_PROC, process=Process(2, "Fri")), CUT, "", 0),
        (replace(RECORD, controller=NO_PROC), BOB, CUT, "", GRACE - 10),
    ],
)
def test_a_run_is_gone_only_when_something_proves_it(
    record: Record, run: Controller, seen: Seen, gone: str, wait: float
) -> None:
    verdict = judge(record, run, seen)
    assert (verdict.gone, verdict.wait) == (gone, wait)


def wanted(run: Controller, renewed: float = 1000.0) -> Record:
    return replace(RECORD, controller=run, taken=renewed, renewed=renewed)


def see(_record: Record) -> Seen:
    return NOW


@pytest.fixture
def lock(tmp_path: Path) -> LabLock:
    return LabLock("demo", tmp_path / "run" / "locks")


def test_it_is_taken_renewed_refused_and_released(lock: LabLock) -> None:
    assert lock.take(wanted(ALICE), see, by_force=False)[0] == TAKEN
    assert lock.take(wanted(ALICE, 1005.0), see, by_force=False)[0] == RENEWED
    record = lock.look()
    assert record
    assert (record.taken, record.renewed) == (1000.0, 1005.0)
    outcome, holder, _verdict = lock.take(wanted(BOB), see, by_force=False)
    assert (outcome, holder) == (HELD, record)
    assert lock.take(wanted(BOB), lambda _record: CUT, by_force=False)[0] == WAITING
    assert lock.release(BOB) == NOT_OURS
    assert lock.look() == record
    assert lock.release(ALICE) == RELEASED
    assert lock.look() is None


def test_it_is_taken_from_a_live_run_by_force_only(lock: LabLock) -> None:
    lock.take(wanted(ALICE), see, by_force=False)
    outcome, holder, verdict = lock.take(wanted(BOB), see, by_force=True)
    assert outcome == TAKEN
    assert holder
    assert holder.controller == ALICE
    assert "lab_lock_take_over" in verdict.gone
    assert lock.take(wanted(ALICE), see, by_force=False)[0] == HELD


def test_check_mode_takes_and_releases_nothing(lock: LabLock, tmp_path: Path) -> None:
    assert lock.take(wanted(ALICE), see, by_force=False, check_mode=True)[0] == TAKEN
    assert list(tmp_path.iterdir()) == []
    lock.take(wanted(ALICE), see, by_force=False)
    assert lock.take(wanted(BOB), see, by_force=False, check_mode=True)[0] == HELD
    assert lock.release(ALICE, check_mode=True) == RELEASED
    assert lock.look()


@pytest.mark.parametrize("damaged", ["", "{", "[]", "{}", '{"controller": 1}'])
def test_a_damaged_record_is_nobodys(lock: LabLock, tmp_path: Path, damaged: str) -> None:
    (tmp_path / "run" / "locks").mkdir(parents=True)
    (tmp_path / "run" / "locks" / "demo").write_text(damaged)
    assert lock.take(wanted(ALICE), see, by_force=False)[0] == TAKEN


def test_of_many_at_once_one_gets_it(lock: LabLock) -> None:
    fork = multiprocessing.get_context("fork")
    barrier, outcomes = fork.Barrier(PROCESSES), fork.SimpleQueue()

    def try_it(barrier: Barrier, number: int) -> None:
        barrier.wait()
        run = replace(BOB, process=Process(number, "1"))
        outcomes.put(lock.take(wanted(run), see, by_force=False)[0])

    runs = [fork.Process(target=try_it, args=(barrier, number)) for number in range(PROCESSES)]
    for run in runs:
        run.start()
    found = [outcomes.get() for _run in runs]
    for run in runs:
        run.join()
    assert sorted(found) == [HELD] * (PROCESSES - 1) + [TAKEN]


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_the_record_is_roots_alone_whatever_the_umask(lock: LabLock, tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        lock.take(wanted(ALICE), see, by_force=False)
    finally:
        os.umask(before)
    directory = tmp_path / "run" / "locks"
    modes = [path.stat().st_mode & 0o777 for path in (directory.parent, directory, directory / "demo")]
    assert modes == [0o755, 0o700, 0o600]


def test_a_holder_is_described_for_people() -> None:
    assert described(RECORD, 90.0) == "alice@laptop, site.yml (process 100), since 1970-01-01 00:00:00 UTC, 90 s ago"
    assert described(RECORD, 200.0).endswith(", 3 min ago")
    assert described(RECORD, -5.0).endswith(", 0 s ago")  # the clock was set back


def test_a_process_has_ended_when_it_is_gone_or_only_waits_to_be_buried() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        since = processes.started(process.pid)
        assert since
        assert not processes.has_ended(process.pid, since)
        assert processes.has_ended(process.pid, "1")
        assert os.getpid() in dict(processes.ancestors(process.pid))
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie now
        assert processes.has_ended(process.pid, since)
    assert processes.has_ended(process.pid, since)


@pytest.mark.parametrize(
    ("boot", "persists", "above", "connection"),
    [
        ("boot-a", True, [(9, "sshd"), (1, "systemd")], ALICE.process),  # the controller itself
        ("boot-h", True, [(30, "sudo"), (20, "sshd"), (10, "sshd")], Process(20, "of 20")),
        ("boot-h", True, [(30, "sudo"), (20, "sshd-session"), (1, "systemd")], Process(20, "of 20")),
        ("boot-h", True, [(30, "sh"), (1, "init")], None),
        ("boot-h", False, [(20, "sshd")], None),
    ],
)
def test_what_ends_on_the_host_with_a_run(
    monkeypatch: pytest.MonkeyPatch,
    boot: str,
    persists: bool,
    above: list[tuple[int, str]],
    connection: Process | None,
) -> None:
    monkeypatch.setattr(lab_lock, "boot_id", lambda: boot)
    monkeypatch.setattr(lab_lock, "pid_namespace", lambda: "pid:[1]")
    monkeypatch.setattr(lab_lock, "ancestors", lambda _pid: iter(above))
    monkeypatch.setattr(lab_lock, "started", "of {}".format)
    assert lab_lock.connection_of(ALICE, persists=persists) == connection


def test_what_changes_nodes_for_a_run_that_is_gone_ends_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would go on by an earlier lab_spec, beside whatever the next run does."""
    monkeypatch.setattr(paths, "RUNS", tmp_path)
    job_lock = paths.Paths("demo").nodes_lock
    job_lock.parent.mkdir()
    ask = {"run": asdict(HERE_TOO), "user": "alice", "playbook": "stop.yml", "persists": False}
    params = {"lab": "demo", "take_over": False, "_ask": ask}
    with subprocess.Popen([sys.executable, "-c", HOLDS_ITS_LOCK, job_lock], stdout=subprocess.PIPE) as job:
        assert job.stdout
        job.stdout.readline()
        lab_lock.take(LabLock("demo", tmp_path / "locks"), params, check_mode=True)
        assert job.poll() is None
        assert lab_lock.take(LabLock("demo", tmp_path / "locks"), params, check_mode=False)["outcome"] == TAKEN
        assert job.wait(10) == -signal.SIGTERM
    with subprocess.Popen([sys.executable, "-c", HOLDS_ITS_LOCK, job_lock], stdout=subprocess.PIPE) as own:
        assert own.stdout
        own.stdout.readline()
        assert lab_lock.take(LabLock("demo", tmp_path / "locks"), params, check_mode=False)["outcome"] == RENEWED
        assert own.poll() is None
        own.kill()
