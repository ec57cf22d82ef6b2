# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The system event log: the VM's event log, an event a record of 16 bytes."""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from nometal_bmc.events.log import LOG, LOGIN, MOST_EVENTS, POWER
from nometal_bmc.ipmi.commands import STORAGE, Code, Command, Declined, Level, Request, Table, named

if TYPE_CHECKING:
    from nometal_bmc.events.log import Event
    from nometal_bmc.ipmi.journal import Journal

VERSION = 0x51  # 1.5, as IPMI 2.0 has it
RECORD_LENGTH, MOST_FREE = 16, 0xFFFE
SYSTEM_EVENT, BMC, FORMAT = 0x02, 0x20, 0x04  # of IPMI 2.0
SENSOR_SPECIFIC, UNSPECIFIED = 0x6F, 0xFF
FIRST, LAST = 0x0000, 0xFFFF
NEVER = 0xFFFF_FFFF
CAN_RESERVE = 0b0010
WHOLE = 0xFF
CLEAR, START, STATUS, CLEARED = b"CLR", 0xAA, 0x00, bytes([0x01])
NO_OFFSET = bytes(2)


@dataclass(frozen=True)
class Meaning:
    """A kind of sensor and what it has seen, as table 42-3 of IPMI 2.0 numbers it."""

    sensor: int
    offset: int


POWER_OFF, POWER_CYCLE, POWER_FAILED = Meaning(0x09, 0), Meaning(0x09, 1), Meaning(0x09, 5)
POWER_UP, HARD_RESET = Meaning(0x1D, 0), Meaning(0x1D, 1)
INTERRUPT, BUTTON = Meaning(0x13, 0), Meaning(0x14, 0)
RECONFIGURED = Meaning(0x12, 0)
LOGGED_IN, LOGIN_REFUSED = Meaning(0x2A, 0), Meaning(0x2A, 2)
LOG_CLEARED = Meaning(0x10, 2)
RESETS = {
    "On": POWER_UP,
    "ForceOn": POWER_UP,
    "ForceOff": POWER_OFF,
    "PowerCycle": POWER_CYCLE,
    "ForceRestart": HARD_RESET,
    "GracefulRestart": HARD_RESET,
    "GracefulShutdown": BUTTON,
    "PushPowerButton": BUTTON,
    "Nmi": INTERRUPT,
}


class Sel:
    """Records by number: the snapshot that a client reads begins with the first of them, or the log's length."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._records: dict[int, bytes] = {}
        self._reservation = 0

    def table(self) -> Table:
        user, operator = Level.USER, Level.OPERATOR
        return {
            (STORAGE, 0x40): Command(user, self._info, named("event log")),
            (STORAGE, 0x42): Command(user, self._reserve),
            (STORAGE, 0x43): Command(user, self._get, least=6),
            (STORAGE, 0x47): Command(operator, self._clear, named("clear the event log"), least=6),
            (STORAGE, 0x48): Command(user, lambda _request: struct.pack("<I", int(time.time())), named("time")),
            (STORAGE, 0x5C): Command(user, lambda _request: NO_OFFSET, named("time")),
        }

    def _info(self, _request: Request) -> bytes:
        events = self._load()
        free = min((MOST_EVENTS - len(events)) * RECORD_LENGTH, MOST_FREE)
        added = _seconds(events[-1]) if events else NEVER
        cleared = next((_seconds(event) for event in reversed(events) if event.kind == LOG), NEVER)
        return struct.pack("<BHHIIB", VERSION, len(events), free, added, cleared, CAN_RESERVE)

    def _reserve(self, _request: Request) -> bytes:
        self._reservation = self._reservation % 0xFFFF + 1
        return struct.pack("<H", self._reservation)

    def _get(self, request: Request) -> bytes:
        reservation, number, offset, count = struct.unpack("<HHBB", request.data[:6])
        if offset:
            self._check(reservation)
        if number in (FIRST, LAST) or number not in self._records:
            self._load()
        numbers = list(self._records)
        if not numbers:
            raise Declined(Code.NOT_PRESENT)
        number = {FIRST: numbers[0], LAST: numbers[-1]}.get(number, number)
        if number not in self._records:
            raise Declined(Code.NOT_PRESENT)
        if offset >= RECORD_LENGTH:
            raise Declined(Code.PARAMETER_OUT_OF_RANGE)
        following = numbers[numbers.index(number) + 1 :]
        end = RECORD_LENGTH if count == WHOLE else offset + count
        return struct.pack("<H", following[0] if following else LAST) + self._records[number][offset:end]

    def _clear(self, request: Request) -> bytes:
        self._check(struct.unpack("<H", request.data[:2])[0])
        if request.data[2:5] != CLEAR or request.data[5] not in (START, STATUS):
            raise Declined(Code.INVALID_FIELD)
        if request.data[5] == START:
            self._journal.clear(request.user, request.source)
        return CLEARED

    def _check(self, reservation: int) -> None:
        if reservation != self._reservation:
            raise Declined(Code.RESERVATION_CANCELED)

    def _load(self) -> list[Event]:
        events = self._journal.events()
        self._records = {number_of(event): record(event) for event in events}
        return events


def number_of(event: Event) -> int:
    """A record's number has 16 bits, of which the lowest and the highest value mean other things."""
    return (event.id - 1) % (LAST - 1) + 1


def record(event: Event) -> bytes:
    """An event as a record."""
    meaning = meaning_of(event)
    head = struct.pack("<HBIBBB", number_of(event), SYSTEM_EVENT, _seconds(event), BMC, 0, FORMAT)
    return head + bytes([meaning.sensor, 0, SENSOR_SPECIFIC, meaning.offset, UNSPECIFIED, UNSPECIFIED])


def meaning_of(event: Event) -> Meaning:
    if event.kind == LOGIN:
        return LOGIN_REFUSED if event.failed else LOGGED_IN
    if event.kind == LOG:
        return LOG_CLEARED
    if event.kind == POWER:
        return POWER_FAILED if event.failed else RESETS.get(event.text.removeprefix("Reset "), RECONFIGURED)
    return RECONFIGURED


def _seconds(event: Event) -> int:
    return int(datetime.fromisoformat(event.time).timestamp())
