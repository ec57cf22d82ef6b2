# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The repository of sensor data records. A VM has no sensors, so its one record is about the BMC itself.

With no record at all, ipmitool would take it for one that has to be filled.
"""

from __future__ import annotations

import struct
import time

from nometal_bmc.ipmi.application import DEVICES
from nometal_bmc.ipmi.commands import STORAGE, Code, Command, Declined, Level, Request, Table, named

VERSION = 0x51
CAN_RESERVE = 0b0010
RESERVATION = 1
FIRST, ONLY, LAST = 0x0000, 0x0001, 0xFFFF
WHOLE = 0xFF
LOCATOR, ADDRESS, MANAGEMENT_MODULE, LATIN_1 = 0x12, 0x20, 0x06, 0xC0
NAME = b"BMC"
BODY = bytes([ADDRESS, 0, 0, DEVICES, 0, 0, 0, MANAGEMENT_MODULE, 1, 0, LATIN_1 | len(NAME)]) + NAME
RECORD = struct.pack("<HBBB", ONLY, VERSION, LOCATOR, len(BODY)) + BODY
INFO = struct.pack("<BHHIIB", VERSION, 1, 0, 0, 0, CAN_RESERVE)


def _get(request: Request) -> bytes:
    reservation, number, offset, count = struct.unpack("<HHBB", request.data[:6])
    if offset and reservation != RESERVATION:
        raise Declined(Code.RESERVATION_CANCELED)
    if number not in (FIRST, ONLY, LAST):
        raise Declined(Code.NOT_PRESENT)
    if offset >= len(RECORD):
        raise Declined(Code.PARAMETER_OUT_OF_RANGE)
    return struct.pack("<H", LAST) + RECORD[offset : len(RECORD) if count == WHOLE else offset + count]


def table() -> Table:
    user = Level.USER
    return {
        (STORAGE, 0x20): Command(user, lambda _request: INFO, named("sensors")),
        (STORAGE, 0x22): Command(user, lambda _request: struct.pack("<H", RESERVATION)),
        (STORAGE, 0x23): Command(user, _get, least=6),
        (STORAGE, 0x28): Command(user, lambda _request: struct.pack("<I", int(time.time())), named("time")),
    }
