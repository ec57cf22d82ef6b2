# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of a BMC: a table of who may give which, and the answer to each, whatever comes."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from enum import IntEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Callable

from nometal_bmc.answers import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

LOG = logging.getLogger(__name__)
ACCESS = logging.getLogger("nometal_bmc.access")

CHASSIS, SENSOR, APPLICATION, STORAGE = 0x00, 0x04, 0x06, 0x0A


class Level(IntEnum):
    """What a session may do; NONE is a client that has not logged in."""

    NONE = 0
    CALLBACK = 1
    USER = 2
    OPERATOR = 3
    ADMINISTRATOR = 4


class Code(IntEnum):
    """How a command has ended."""

    DONE = 0x00
    PARAMETER_NOT_SUPPORTED = 0x80
    LEVEL_EXCEEDED = 0x81
    INVALID_SESSION = 0x87
    BUSY = 0xC0
    UNKNOWN_COMMAND = 0xC1
    RESERVATION_CANCELED = 0xC5
    WRONG_LENGTH = 0xC7
    PARAMETER_OUT_OF_RANGE = 0xC9
    NOT_PRESENT = 0xCB
    INVALID_FIELD = 0xCC
    DESTINATION_UNAVAILABLE = 0xD3
    INSUFFICIENT_PRIVILEGE = 0xD4
    NOT_NOW = 0xD5
    UNSPECIFIED = 0xFF


class Declined(Exception):  # noqa: N818 - reads as a sentence: raise Declined(Code.INVALID_FIELD)
    """A request that is answered with a completion code. Nothing was changed."""

    def __init__(self, code: Code) -> None:
        super().__init__(f"completion code {code:#x}")
        self.code = code


@dataclass(frozen=True)
class Request:
    """What a client asks for, with how much it may."""

    function: int
    command: int
    data: bytes
    level: Level = Level.NONE
    user: str = ""
    source: str = ""


@dataclass(frozen=True)
class Command:
    """One row of the table."""

    level: Level
    """That it takes at least."""
    obey: Callable[[Request], bytes]
    """Returns the data of the answer, or raises Declined."""
    name: Callable[[bytes], str] = lambda _data: ""
    """For the log, by the request's data; empty for what clients ask all the time."""
    least: int = 0
    """Bytes of data that it takes at least."""
    outcome: str = "done"
    """For the log, too."""


Table = dict[tuple[int, int], Command]
"""By network function and number."""


def named(name: str) -> Callable[[bytes], str]:
    """A name that does not depend on the data."""
    return lambda _data: name


class Commands:
    """All commands of a BMC."""

    def __init__(self, node: str, *tables: Mapping[tuple[int, int], Command]) -> None:
        self._node = node
        self._table = {kind: command for table in tables for kind, command in table.items()}

    def answer(self, request: Request) -> tuple[Code, bytes]:
        """The completion code and the data, of any request."""
        command = self._table.get((request.function, request.command))
        started = time.monotonic()
        code, data = self._obey(command, request)
        name = command.name(request.data) if command else f"command {request.function:#04x} {request.command:#04x}"
        if name and request.user:
            outcome = f"declined ({code:#04x})" if code else command.outcome if command else ""
            milliseconds = (time.monotonic() - started) * 1000
            text = "%s: %s: %s %.0f ms %s from %s"
            ACCESS.info(text, self._node, name, outcome, milliseconds, request.user, request.source)
        return code, data

    def _obey(self, command: Command | None, request: Request) -> tuple[Code, bytes]:
        code = _refusal(command, request)
        if code or command is None:
            return code, b""
        try:
            return Code.DONE, command.obey(request)
        except Declined as declined:
            return declined.code, b""
        except Refused as error:
            LOG.error("The BMC of %s: %s", self._node, error)  # noqa: TRY400 - the text says it all
            return Code.DESTINATION_UNAVAILABLE if error.status == HTTPStatus.NOT_FOUND else Code.BUSY, b""
        except Exception:
            LOG.exception("The BMC of %s has failed at a command", self._node)
            return Code.UNSPECIFIED, b""


def _refusal(command: Command | None, request: Request) -> Code:
    if command is None:
        # Who has not logged in does not learn which commands there are.
        return Code.UNKNOWN_COMMAND if request.level else Code.INSUFFICIENT_PRIVILEGE
    if request.level < command.level:
        return Code.INSUFFICIENT_PRIVILEGE
    return Code.WRONG_LENGTH if len(request.data) < command.least else Code.DONE
