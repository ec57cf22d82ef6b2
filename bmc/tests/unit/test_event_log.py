"""The event log in its files, and logins that become events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from nometal_bmc.config import passwords
from nometal_bmc.config.settings import Account
from nometal_bmc.events.log import LOGIN, MOST_EVENTS, POWER, SPARE, By, Event, EventLog
from nometal_bmc.events.logins import QUIET_SECONDS, Logins

if TYPE_CHECKING:
    from pathlib import Path

VM = "0b3f8f4e-8c1d-4f5e-9d5a-000000000001"
OTHER_VM = "0b3f8f4e-8c1d-4f5e-9d5a-000000000002"
SOMEBODY = By("operator", "192.0.2.1")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    return EventLog(lambda: tmp_path / "events")


def texts(log: EventLog, system: str | None = VM) -> list[str]:
    return [event.text for event in log.events(system)]


def test_an_event_says_what_and_who(log: EventLog) -> None:
    log.add(VM, POWER, "Reset ForceOff", SOMEBODY)
    log.add(VM, POWER, "Switched off by its guest")
    assert [event.message for event in log.events(VM)] == [
        "Reset ForceOff by operator from 192.0.2.1",
        "Switched off by its guest",
    ]
    assert log.events(None) == []


def test_the_oldest_go_and_no_number_is_given_twice(log: EventLog, tmp_path: Path) -> None:
    for number in range(1, MOST_EVENTS + SPARE + 2):
        log.add(VM, POWER, str(number))
    events = log.events(VM)
    assert [event.text for event in events] == [str(event.id) for event in events]
    assert [events[0].id, events[-1].id] == [SPARE + 2, MOST_EVENTS + SPARE + 1]
    assert len((tmp_path / "events" / f"{VM}.jsonl").read_text().splitlines()) == MOST_EVENTS
    log.clear(VM, SOMEBODY)
    [cleared] = log.events(VM)
    assert cleared.id == MOST_EVENTS + SPARE + 2
    assert cleared.message == "Event log cleared by operator from 192.0.2.1"


def test_two_processes_write_into_one_log(log: EventLog, tmp_path: Path) -> None:
    other = EventLog(lambda: tmp_path / "events")
    log.add(VM, POWER, "one")
    other.add(VM, POWER, "two")
    log.add(VM, POWER, "three")
    assert [(event.id, event.text) for event in other.events(VM)] == [(1, "one"), (2, "two"), (3, "three")]


def test_a_line_that_was_cut_takes_no_other_with_it(log: EventLog, tmp_path: Path) -> None:
    log.add(VM, POWER, "before")
    with (tmp_path / "events" / f"{VM}.jsonl").open("a") as file:
        file.write('{"id": 2, "ti')
    log.add(VM, POWER, "after")
    assert [(event.id, event.text) for event in log.events(VM)] == [(1, "before"), (2, "after")]


def test_what_is_no_event_is_passed_over(log: EventLog, tmp_path: Path) -> None:
    log.add(VM, POWER, "before")
    (tmp_path / "events" / f"{VM}.jsonl").write_text("[]\n{}\nnonsense\n" + json.dumps({"id": 7}) + "\n")
    assert texts(log) == []
    log.add(VM, POWER, "after")
    assert texts(log) == ["after"]


def test_a_log_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    log = EventLog(lambda: tmp_path / "file" / "events")
    log.add(VM, POWER, "nowhere")
    assert log.events(VM) == []


def test_who_listens_is_told(log: EventLog) -> None:
    heard: list[Event] = []
    log.listen(heard.append)
    log.add(VM, POWER, "Reset On", SOMEBODY)
    assert [(event.system, event.message) for event in heard] == [(VM, "Reset On by operator from 192.0.2.1")]


def test_an_account_that_was_given_another_system_is_noted_there(log: EventLog) -> None:
    password = passwords.HashedPassword(16, 1, 1, b"salt", bytes(32))
    logins = Logins(log, Clock())
    for system in (VM, OTHER_VM):
        logins.succeeded(Account("node", password, frozenset({system})), "192.0.2.1")
        assert [event.message for event in log.events(system)] == ["Login by node from 192.0.2.1"]


def test_a_login_is_noted_in_the_log_of_whom_it_concerns_and_not_each_time(log: EventLog) -> None:
    password = passwords.HashedPassword(16, 1, 1, b"salt", bytes(32))
    own, operator = Account("node", password, frozenset({VM})), Account("operator", password, None)
    clock = Clock()
    logins = Logins(log, clock)
    for _again in range(3):
        logins.succeeded(own, "192.0.2.1")
        logins.failed(own, "192.0.2.2")
        logins.succeeded(operator, "192.0.2.1")
        logins.failed(None, "192.0.2.3")
    assert [(event.kind, event.failed, event.message) for event in log.events(VM)] == [
        (LOGIN, False, "Login by node from 192.0.2.1"),
        (LOGIN, True, "Login refused by node from 192.0.2.2"),
    ]
    assert [event.message for event in log.events(None)] == [
        "Login by operator from 192.0.2.1",
        "Login refused by an unknown account from 192.0.2.3",
    ]
    clock.now += QUIET_SECONDS
    logins.succeeded(operator, "192.0.2.1")
    assert texts(log, None)[2:] == ["Login"]
