"""When VMs may be started; load and time are given."""

from __future__ import annotations

import threading

import pytest

from nometal_bmc.answers import Refused
from nometal_bmc.vms.starts import GAP_SECONDS, LONGEST_WAIT_SECONDS, MOST_LOAD, Starts, load_per_core

VM, OTHER = "one", "two"
VMS = 20


class Host:
    """`now` and `load` are what it says of them."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.load = 0.0
        self.starts = Starts(lambda: self.load, lambda: self.now)

    def seconds_until_all_start(self, count: int) -> list[float]:
        """How long each of so many waits who come at once."""
        since = self.now
        waits: list[float] = []
        while len(waits) < count:
            while len(waits) < count and self.starts.take(since):
                waits.append(self.now - since)
            self.now += 0.25
        return waits


@pytest.fixture
def host() -> Host:
    return Host()


def test_on_a_host_with_time_to_spare_none_waits(host: Host) -> None:
    host.load = MOST_LOAD
    assert host.seconds_until_all_start(VMS) == [0] * VMS


def test_on_an_overloaded_host_they_start_one_after_another(host: Host) -> None:
    host.load = MOST_LOAD + 0.1
    assert host.seconds_until_all_start(3) == [0, GAP_SECONDS, 2 * GAP_SECONDS]
    host.now += GAP_SECONDS
    assert host.seconds_until_all_start(1) == [0]


def test_none_waits_longer_than_clients_do(host: Host) -> None:
    host.load = 100
    waits = host.seconds_until_all_start(2 * VMS)
    assert max(waits) == LONGEST_WAIT_SECONDS
    assert waits.count(LONGEST_WAIT_SECONDS) == 2 * VMS - LONGEST_WAIT_SECONDS // GAP_SECONDS


def test_an_overload_that_ends_holds_nobody_up_any_more(host: Host) -> None:
    host.load = 100
    assert host.starts.take(host.now)
    assert not host.starts.take(host.now)
    host.load = 0
    assert host.starts.take(host.now)


def test_after_a_start_of_the_host_they_start_one_after_another_and_wait_for_an_overload_to_end(host: Host) -> None:
    since = host.now
    assert host.starts.take(since, patiently=True)
    assert not host.starts.take(since, patiently=True)
    host.now += GAP_SECONDS
    assert host.starts.take(since, patiently=True)
    host.load = 100
    host.now += GAP_SECONDS
    assert not host.starts.take(host.now, patiently=True)
    assert host.starts.take(host.now - LONGEST_WAIT_SECONDS, patiently=True)


def waiting(host: Host, uuid: str, outcomes: list[str]) -> threading.Thread:
    def start() -> None:
        try:
            with host.starts.turn(uuid):
                outcomes.append("started")
        except Refused as refused:
            outcomes.append(str(refused.status))

    thread = threading.Thread(target=start)
    thread.start()
    return thread


def test_a_start_that_waits_is_given_up_when_its_vm_is_switched_off(host: Host) -> None:
    host.load = 100
    host.starts.cancel(VM)  # before: of no account
    with host.starts.turn(OTHER):
        outcomes: list[str] = []
        thread = waiting(host, VM, outcomes)
        host.starts.cancel(OTHER)
        while thread.is_alive():
            host.starts.cancel(VM)
            thread.join(0.01)
    assert outcomes == ["409"]


def test_the_load_is_measured_without_proc() -> None:
    assert load_per_core() >= 0
