from __future__ import annotations

import multiprocessing
import os
from typing import TYPE_CHECKING

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.host_baseline import HostMemory

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier
    from pathlib import Path

WRITERS, ROUNDS = 8, 25


@pytest.fixture
def memory(tmp_path: Path) -> HostMemory:
    return HostMemory(tmp_path / "home" / "host.json", tmp_path / "run" / "locks" / ".host.json")


def test_nothing_is_remembered_at_first(memory: HostMemory) -> None:
    assert memory.recall() == {}


def test_the_first_note_on_a_thing_stays(memory: HostMemory) -> None:
    memory.note({"kvm_device": {"mode": "0600"}})
    memory.note({"kvm_device": {"mode": "0660", "group": "root"}, "packages": {"ovmf": "missing"}})
    assert memory.recall() == {"kvm_device": {"mode": "0600", "group": "root"}, "packages": {"ovmf": "missing"}}


def written(path: Path) -> tuple[int, int]:
    """Which file, and when: not when it was read, which a look changes."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


def test_nothing_new_writes_nothing(memory: HostMemory) -> None:
    memory.note({"packages": {}})
    assert not memory.path.exists()
    memory.note({"packages": {"ovmf": "missing"}})
    before = written(memory.path)
    memory.note({"packages": {"ovmf": "there"}})
    assert written(memory.path) == before


def test_a_damaged_memory_is_told_and_not_overwritten(memory: HostMemory) -> None:
    memory.path.parent.mkdir()
    memory.path.write_text("{", encoding="utf-8")
    with pytest.raises(OperatorError, match=r"host\.json, which remembers what the host was like before"):
        memory.note({"packages": {"ovmf": "missing"}})
    assert memory.path.read_text(encoding="utf-8") == "{"


def test_of_notes_made_at_the_same_time_none_is_lost(memory: HostMemory) -> None:
    """Each process begins when all are there, and has a topic of its own and one that it shares."""
    fork = multiprocessing.get_context("fork")
    barrier = fork.Barrier(WRITERS)
    writers = [fork.Process(target=write_notes, args=(memory, barrier, writer)) for writer in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * WRITERS
    own = {f"writer {writer}": dict.fromkeys(map(str, range(ROUNDS)), writer) for writer in range(WRITERS)}
    shared = {"shared": {f"{writer} {turn}": turn for writer in range(WRITERS) for turn in range(ROUNDS)}}
    assert memory.recall() == {**own, **shared}
    assert not list(memory.lock.parent.glob("*"))


def write_notes(memory: HostMemory, barrier: Barrier, writer: int) -> None:
    barrier.wait()
    for turn in range(ROUNDS):
        memory.note({f"writer {writer}": {str(turn): writer}, "shared": {f"{writer} {turn}": turn}})


@pytest.mark.parametrize("mask", [0o000, 0o027, 0o077])
def test_its_files_have_modes_of_their_own_whatever_the_umask(memory: HostMemory, mask: int) -> None:
    before = os.umask(mask)
    try:
        memory.note({"packages": {"ovmf": "missing"}})
    finally:
        os.umask(before)
    assert memory.path.stat().st_mode & 0o777 == 0o644
