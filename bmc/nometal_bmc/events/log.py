# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The event log: one file for each VM and one for the service, of which the oldest events go when it is full."""

from __future__ import annotations

import fcntl
import json
import logging
import threading
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from nometal_bmc.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = [
    "BOOT",
    "LOG",
    "LOGIN",
    "MEDIA",
    "MOST_EVENTS",
    "POWER",
    "SETTINGS",
    "UNKNOWN",
    "By",
    "Event",
    "EventLog",
    "now",
]

LOGGER = logging.getLogger(__name__)
POWER, BOOT, MEDIA, SETTINGS, LOGIN, LOG = "power", "boot", "media", "settings", "login", "log"
MOST_EVENTS = 1000
SPARE = 250  # by so many events a file outgrows its limit before it is written anew
LONGEST_TEXT = 400
OF_SERVICE = "service"


@dataclass(frozen=True)
class By:
    """Who has asked for something, if anybody is known."""

    account: str = ""
    address: str = ""


UNKNOWN = By()


@dataclass(frozen=True)
class Event:
    """What has happened, and who has wanted it, if anybody is known."""

    id: int
    time: str
    kind: str
    text: str
    system: str | None = None
    account: str = ""
    address: str = ""
    failed: bool = False

    @property
    def message(self) -> str:
        by = f" by {self.account}" if self.account else ""
        place = f" from {self.address}" if self.address else ""
        return f"{self.text}{by}{place}"

    @property
    def arguments(self) -> list[str]:
        """Of its message: its kind, the account and the address, as far as they are known."""
        return [text for text in (self.kind, self.account, self.address) if text]


class EventLog:
    """Threads come in at once, and so does the process of before, which may have something left to do."""

    def __init__(self, directory: Callable[[], Path]) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._listeners: list[Callable[[Event], None]] = []

    def add(self, system: str | None, kind: str, text: str, by: By = UNKNOWN, *, failed: bool = False) -> None:
        """Of a system, by its UUID, or of the service. A disk that is full stops no request."""
        try:
            with self._locked():
                lines = self._lines(system)
                event = Event(_next_id(lines), now(), kind, text[:LONGEST_TEXT], system, by.account, by.address, failed)
                self._write(system, lines, event)
        except OSError as error:
            LOGGER.warning("The event log cannot be written: %s", error)
            return
        self.publish(event)

    def events(self, system: str | None) -> list[Event]:
        """The oldest first."""
        try:
            lines = self._lines(system)
        except OSError as error:
            LOGGER.warning("The event log cannot be read: %s", error)
            return []
        return [event for event in map(_read, lines[-MOST_EVENTS:]) if event]

    def clear(self, system: str | None, by: By) -> None:
        """Forget all events but this one, whose number goes on from theirs."""
        with self._locked():
            number = _next_id(self._lines(system))
            event = Event(number, now(), LOG, "Event log cleared", system, by.account, by.address)
            self._replace(system, [_text(event)])

    def publish(self, event: Event) -> None:
        """Tell those who listen."""
        for listener in list(self._listeners):
            listener(event)

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Have this called with every event, in the thread that adds it."""
        self._listeners.append(listener)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        directory = self._directory()
        directory.mkdir(mode=0o750, parents=True, exist_ok=True)
        with self._lock, (directory / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _file(self, system: str | None) -> Path:
        return self._directory() / f"{system or OF_SERVICE}.jsonl"

    def _lines(self, system: str | None) -> list[bytes]:
        try:
            return self._file(system).read_bytes().splitlines()
        except FileNotFoundError:
            return []

    def _write(self, system: str | None, lines: list[bytes], event: Event) -> None:
        if len(lines) >= MOST_EVENTS + SPARE:
            self._replace(system, [*lines[1 - MOST_EVENTS :], _text(event)])
            return
        with self._file(system).open("ab") as file:
            # A line that was cut by a power failure must not take this one with it.
            torn = file.tell() and lines and _read(lines[-1]) is None
            file.write((b"\n" if torn else b"") + _text(event) + b"\n")

    def _replace(self, system: str | None, lines: list[bytes]) -> None:
        write_whole(self._file(system), b"\n".join(lines) + b"\n")


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _text(event: Event) -> bytes:
    return json.dumps(asdict(event)).encode()


def _read(line: bytes) -> Event | None:
    """None for an invalid line: one that was cut, or edited."""
    try:
        found: dict[str, Any] = json.loads(line)
        return Event(**{field.name: found[field.name] for field in fields(Event)})
    except (ValueError, KeyError, TypeError):
        return None


def _next_id(lines: list[bytes]) -> int:
    """Numbers are never given twice: the last line is never removed."""
    for line in reversed(lines):
        event = _read(line)
        if event:
            return event.id + 1
    return 1
