"""What of IPMI is numbers: names for the log, cipher suites, envelopes; and logins, with the time given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from nometal_bmc.answers import Refused, not_found
from nometal_bmc.config.settings import Ipmi
from nometal_bmc.events.log import BOOT, LOG, LOGIN, POWER, Event, EventLog
from nometal_bmc.ipmi import boot_options, chassis, fru, logins, messages, sel, suites
from nometal_bmc.ipmi.commands import Code, Command, Commands, Declined, Level, Request, Table
from nometal_bmc.ipmi.journal import Journal
from nometal_bmc.ipmi.logins import Logins

if TYPE_CHECKING:
    from pathlib import Path

NODE = Ipmi("22222222-2222-4222-8222-222222222222", "node-0", ("127.0.0.1",), 6230, "admin", "secret")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Login:
    number: int
    source: str = "172.22.0.9"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x00", "power off"),
        (b"\x05", "soft power off"),
        (b"\x09", "chassis control"),
        (b"", "chassis control"),
    ],
)
def test_power_has_names(data: bytes, text: str) -> None:
    assert chassis.described(data) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x05\x80\x04\x00\x00\x00", "boot from network once"),
        (b"\x05\xc0\x08\x00\x00\x00", "boot from disk always"),
        (b"\x05\x80\x18\x00\x00\x00", "boot from device 6 once"),
        (b"\x05\x00\x00\x00\x00\x00", "boot as usual"),
        (b"\x05\x80", "set boot options"),
        (b"\x03\x00", "set boot options"),
        (b"", "set boot options"),
    ],
)
def test_boot_options_have_names(data: bytes, text: str) -> None:
    assert boot_options.described(data) == text


def answer(level: Level, data: bytes = b"ok", *, command: int = 1) -> tuple[int, bytes]:
    """Of a BMC whose one command takes an operator and one byte, and may fail."""

    def obey(request: Request) -> bytes:
        if request.data == b"busy":
            raise Refused(503, "GeneralError", "not now")
        if request.data == b"gone":
            raise not_found("System 4c4c4544")
        if request.data == b"declined":
            raise Declined(Code.NOT_NOW)
        return request.data.upper()

    table: Table = {(0, 1): Command(Level.OPERATOR, obey, least=1)}
    return Commands("node-0", table).answer(Request(0, command, data, level, "admin", "172.22.0.9"))


@pytest.mark.parametrize(
    ("level", "code"),
    [
        (Level.NONE, Code.INSUFFICIENT_PRIVILEGE),
        (Level.CALLBACK, Code.INSUFFICIENT_PRIVILEGE),
        (Level.USER, Code.INSUFFICIENT_PRIVILEGE),
        (Level.OPERATOR, Code.DONE),
        (Level.ADMINISTRATOR, Code.DONE),
    ],
)
def test_a_command_takes_a_level(level: Level, code: Code) -> None:
    assert answer(level) == (code, b"" if code else b"OK")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"declined", Code.NOT_NOW),
        (b"busy", Code.BUSY),
        (b"gone", Code.DESTINATION_UNAVAILABLE),
        (b"", Code.WRONG_LENGTH),
    ],
)
def test_whatever_goes_wrong_has_a_code(data: bytes, code: Code) -> None:
    assert answer(Level.ADMINISTRATOR, data) == (code, b"")


def test_who_has_not_logged_in_does_not_learn_which_commands_there_are() -> None:
    assert answer(Level.USER, command=2) == (Code.UNKNOWN_COMMAND, b"")
    assert answer(Level.NONE, command=2) == (Code.INSUFFICIENT_PRIVILEGE, b"")


def proposal(*algorithms: int | None) -> bytes:
    """None leaves the choice to the BMC."""
    return b"".join(
        bytes([kind, 0, 0, 0 if number is None else 8, number or 0, 0, 0, 0]) for kind, number in enumerate(algorithms)
    )


@pytest.mark.parametrize(
    ("algorithms", "number"),
    [
        ((1, 1, 1), 3),
        ((3, 4, 1), 17),
        ((None, None, None), 17),
        ((1, None, None), 3),
        ((None, None, 1), 17),
        ((0, 0, 0), None),
        ((1, 4, 1), None),
        ((2, 2, 1), None),
        ((3, 4, 0), None),
    ],
)
def test_the_best_suite_that_is_proposed_is_taken(algorithms: tuple[int | None, ...], number: int | None) -> None:
    suite = suites.chosen(proposal(*algorithms))
    assert (suite and suite.number) == number


def test_a_message_is_read_and_answered_in_its_own_envelope() -> None:
    body = bytes.fromhex("2018c8810438 8e04 b1")
    for envelope in (
        messages.RMCP + bytes(9) + bytes([len(body)]) + body,
        messages.packet(messages.PAYLOAD_MESSAGE, body),
    ):
        message = messages.read(envelope)
        assert message is not None
        assert (message.function, message.command, message.data) == (6, 0x38, b"\x8e\x04")
        answer = messages.read(message.answer(0xC1, b"\x01"))
        assert answer is not None
        assert (answer.envelope, answer.function, answer.sequence) == (message.envelope, 7, message.sequence)
        assert (answer.command, answer.data) == (0x38, b"\xc1\x01")
        assert messages.read(envelope[:-1]) is None
        assert messages.read(envelope[:-9] + b"\x21" + envelope[-8:]) is None


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(EventLog(lambda: tmp_path), NODE)


def test_a_login_that_is_not_finished_counts_as_a_wrong_password(journal: Journal) -> None:
    clock = Clock()
    bmc = Logins(NODE, journal, clock)
    for number in range(8):
        assert not bmc.must_wait(Login(0).source, NODE.username)
        bmc.begun(Login(number))
    assert bmc.give_up()
    assert not bmc.must_wait(Login(0).source, NODE.username)
    clock.now += logins.FINISH_SECONDS
    assert not bmc.give_up()
    assert bmc.must_wait(Login(0).source, NODE.username)
    assert not bmc.must_wait("172.22.0.10", NODE.username)
    clock.now += 1
    assert not bmc.must_wait(Login(0).source, NODE.username)


def test_no_client_has_more_than_so_many_logins_unfinished(journal: Journal) -> None:
    bmc = Logins(NODE, journal, Clock())
    for number in range(logins.MOST_UNFINISHED):
        bmc.begun(Login(number))
        bmc.begun(Login(number))  # sent again, for the answer was lost
    for number in range(8):
        assert not bmc.must_wait(Login(0).source, NODE.username)
        bmc.begun(Login(100 + number))
    assert bmc.must_wait(Login(0).source, NODE.username)


def test_clients_that_log_in_at_the_same_time_do_not_have_to_wait(journal: Journal) -> None:
    clock = Clock()
    bmc = Logins(NODE, journal, clock)
    for _turn in range(20):
        for number in range(logins.MOST_UNFINISHED):
            assert not bmc.must_wait(Login(0).source, NODE.username)
            assert bmc.knows(Login(0).source, NODE.username)
            bmc.begun(Login(number))
        for number in range(logins.MOST_UNFINISHED):
            bmc.succeeded(Login(number))
            bmc.failed(Login(number))  # as when its session ends
    clock.now += logins.FINISH_SECONDS
    assert not bmc.give_up()
    assert not bmc.must_wait(Login(0).source, NODE.username)


def test_names_that_are_guessed_count_too(journal: Journal) -> None:
    bmc = Logins(NODE, journal, Clock())
    for _try in range(8):
        assert not bmc.knows(Login(0).source, "root")
    assert bmc.must_wait(Login(0).source, "root")
    assert not bmc.must_wait(Login(0).source, NODE.username)


@pytest.mark.parametrize(
    ("kind", "text", "failed", "meaning"),
    [
        (POWER, "Reset ForceOff", False, sel.POWER_OFF),
        (POWER, "Reset On failed (no disk)", True, sel.POWER_FAILED),
        (POWER, "Started again, as it was on before", False, sel.RECONFIGURED),
        (BOOT, "Boot settings changed: boot from disk once", False, sel.RECONFIGURED),
        (LOGIN, "Login", False, sel.LOGGED_IN),
        (LOGIN, "Login refused", True, sel.LOGIN_REFUSED),
        (LOG, "Event log cleared", False, sel.LOG_CLEARED),
    ],
)
def test_an_event_has_a_meaning_in_ipmi(kind: str, text: str, failed: bool, meaning: sel.Meaning) -> None:
    event = Event(1, "2026-11-20T10:00:00+00:00", kind, text, failed=failed)
    assert sel.meaning_of(event) == meaning
    head = "01 00 02 20 1a 00 6b 20 00 04"
    assert sel.record(event).hex(" ") == f"{head} {meaning.sensor:02x} 00 6f {meaning.offset:02x} ff ff"


def test_records_have_numbers_however_many_events_there_were() -> None:
    def number(event: int) -> int:
        return sel.number_of(Event(event, "", POWER, ""))

    assert [number(1), number(0xFFFE), number(0xFFFF), number(2 * 0xFFFE)] == [1, 0xFFFE, 1, 0xFFFE]


def test_an_inventory_is_whole_whatever_the_texts_are() -> None:
    for serial in ("", "x", "s" * 100, "é\u4e16"):
        content = fru.inventory(serial, "node-0")
        assert len(content) % 8 == 0
        assert sum(content[:8]) % 256 == 0
        for place in content[2:5]:
            start = place * 8
            assert sum(content[start : start + content[start + 1] * 8]) % 256 == 0
