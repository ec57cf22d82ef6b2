"""The lock that keeps processes apart: nobody enters beside another, and nothing of it is left."""

from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core import lock
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import alone

if TYPE_CHECKING:
    from pathlib import Path

PROCESSES, ROUNDS = 6, 50


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(lock, "RUN", tmp_path / "nometal")
    monkeypatch.setattr(lock, "LOCKS", tmp_path / "nometal" / "locks")
    return tmp_path / "nometal" / "locks"


def count_up(path: Path, counter: Path) -> None:
    for _round in range(ROUNDS):
        with alone(path):
            counter.write_text(str(int(counter.read_text()) + 1))


def test_one_at_a_time_although_the_files_come_and_go(locks: Path, tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    fork = multiprocessing.get_context("fork")
    counters = [fork.Process(target=count_up, args=(locks / ".one", counter)) for _process in range(PROCESSES)]
    for process in counters:
        process.start()
    for process in counters:
        process.join()
    assert [process.exitcode for process in counters] == [0] * PROCESSES
    assert int(counter.read_text()) == PROCESSES * ROUNDS
    assert not locks.parent.exists()


def test_it_is_given_back_when_what_it_protects_fails(locks: Path) -> None:
    with pytest.raises(ZeroDivisionError), alone(locks / ".one"):
        raise ZeroDivisionError
    assert not locks.parent.exists()
    with alone(locks / ".one"):
        assert (locks / ".one").stat().st_mode & 0o777 == 0o600
        assert locks.stat().st_mode & 0o777 == 0o700


def test_what_others_have_beside_it_stays(locks: Path) -> None:
    locks.mkdir(parents=True)
    (locks / "demo").touch()
    with alone(locks / ".one"):
        pass
    assert [path.name for path in locks.iterdir()] == ["demo"]
