"""Graceful restarts and the time that guests have for them; the time is given."""

from __future__ import annotations

import pytest

from nometal_bmc.vms.restarts import Restarts

ONE, TWO = "one", "two"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_who_has_not_restarted_in_time_is_due_once(clock: Clock) -> None:
    restarts = Restarts(clock)
    restarts.expect(ONE, 10)
    clock.now += 5
    restarts.expect(TWO, 10)
    assert restarts.take_due() == []
    clock.now += 5
    assert restarts.take_due() == [ONE]
    clock.now += 5
    assert restarts.take_due() == [TWO]
    assert restarts.take_due() == []


def test_who_has_restarted_is_not_due(clock: Clock) -> None:
    restarts = Restarts(clock)
    restarts.expect(ONE, 10)
    restarts.forget(ONE)
    restarts.forget(TWO)
    clock.now += 10
    assert restarts.take_due() == []


def test_asking_again_gives_no_more_time(clock: Clock) -> None:
    restarts = Restarts(clock)
    restarts.expect(ONE, 10)
    clock.now += 9
    restarts.expect(ONE, 10)
    clock.now += 1
    assert restarts.take_due() == [ONE]
