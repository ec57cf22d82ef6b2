"""Waiting and locking: how often one looks and how long, and that nothing waits or locks in any other way."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core import lock, wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator

UTILS = Path(__file__).parents[3] / "plugins" / "module_utils"
# They cannot import the helpers: programs of their own on hosts, and what runs in guests.
ON_THEIR_OWN = {"_bmc/supervisor.py", "_cluster/run/runner.py", "_resources/resolver/host_server.py"}
IN_GUESTS = "_agent/"
OWNERS = {"sleep": {"_core/wait.py"}, "flock": {"_core/lock.py"}}


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def clock(self) -> wait.Clock:
        return wait.Clock(lambda: self.time, self.sleep)

    def sleep(self, seconds: float) -> None:
        self.time += seconds


def test_what_is_true_is_not_waited_for() -> None:
    clock = Clock()
    assert wait.comes_true(lambda: True, 0, 1, clock.clock())
    assert clock.time == 100


def test_it_is_looked_at_until_it_is_true() -> None:
    clock = Clock()
    wait.require(lambda: clock.time >= 103, 10, lambda: "late", 1, clock.clock())
    assert clock.time == 103


def test_when_the_time_is_over_it_says_so_once() -> None:
    clock = Clock()
    with pytest.raises(OperatorError, match=r"^after 6 s$"):
        wait.require(lambda: False, 5, lambda: f"after {clock.time - 100:.0f} s", 1, clock.clock())


def test_a_look_that_takes_long_is_the_last() -> None:
    clock = Clock()
    looked = []
    for look in wait.looks(5, 1, clock.clock()):
        clock.sleep(3)
        looked.append(look.seconds)
    assert looked == [3, 7]


def test_a_timer_counts_from_when_it_was_made() -> None:
    clock = Clock()
    timer = wait.Timer(5, clock.clock())
    clock.sleep(5)
    assert (timer.seconds, timer.left, timer.is_over) == (5, 0, False)
    clock.sleep(1)
    assert timer.is_over


def test_a_lock_is_shared_or_not(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with lock.locked(file) as has_lock:
        assert not has_lock
    with lock.locked(file, file.touch, shared=True) as one, lock.locked(file, shared=True) as other:
        assert (one, other) == (True, True)
        with lock.locked(file) as alone:
            assert not alone
    with lock.locked(file) as alone, file.open(encoding="ascii") as opened:
        assert alone
        assert lock.is_taken(opened, shared=True)


def test_a_lock_that_others_keep_is_waited_for_and_they_are_asked(tmp_path: Path) -> None:
    file, asked = tmp_path / "file", []
    file.touch()
    with lock.locked(file), file.open("a", encoding="ascii") as opened, pytest.raises(OperatorError, match="busy"):
        lock.take(opened, 0.02, lambda: "busy", meanwhile=lambda: asked.append(1), pause=0.01)
    assert asked
    with file.open("a", encoding="ascii") as opened:
        lock.take(opened, 0, lambda: "busy")
        with lock.locked(file) as has_lock:
            assert not has_lock


def calls(tree: ast.Module) -> Iterator[str]:
    """Also of what is handed on without being called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("time", "fcntl"):
            yield node.attr
        elif isinstance(node, ast.ImportFrom) and node.module in ("time", "fcntl"):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("name", sorted(OWNERS))
def test_nothing_waits_or_locks_in_another_way(name: str) -> None:
    found = {
        str(path.relative_to(UTILS))
        for path in UTILS.rglob("*.py")
        if name in calls(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert {path for path in found if not path.startswith(IN_GUESTS)} - ON_THEIR_OWN == OWNERS[name]
