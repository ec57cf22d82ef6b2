# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory of the chassis, its board and the product: which VM this is."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from nometal_bmc.ipmi.commands import STORAGE, Code, Command, Declined, Level, Request, Table, named
from nometal_bmc.ipmi.messages import checksum

if TYPE_CHECKING:
    from nometal_bmc.ipmi.vm import Vm

FORMAT, ENGLISH, OTHER_CHASSIS = 1, 25, 1
UNIT = 8
LATIN_1, END = 0xC0, 0xC1
LONGEST_FIELD, LONGEST_ANSWER = 63, 64
NO_DATE = bytes(3)
DEVICE = 0
MAKER, PRODUCT = "nometal.ipi", "Virtual machine"
BY_BYTES = 0


class Fru:
    """Reads the inventory, which is written anew whenever a client begins to read."""

    def __init__(self, vm: Vm, name: str) -> None:
        self._vm = vm
        self._name = name
        self._content = b""

    def table(self) -> Table:
        return {
            (STORAGE, 0x10): Command(Level.USER, self._info, named("inventory"), least=1),
            (STORAGE, 0x11): Command(Level.USER, self._read, least=4),
        }

    def _info(self, request: Request) -> bytes:
        _check(request.data[0])
        self._content = inventory(self._vm.serial(), self._name)
        return struct.pack("<HB", len(self._content), BY_BYTES)

    def _read(self, request: Request) -> bytes:
        device, offset, count = struct.unpack("<BHB", request.data[:4])
        _check(device)
        if not self._content:
            self._info(request)
        if offset >= len(self._content):
            raise Declined(Code.PARAMETER_OUT_OF_RANGE)
        found = self._content[offset : offset + min(count, LONGEST_ANSWER)]
        return bytes([len(found)]) + found


def inventory(serial: str, name: str) -> bytes:
    """The areas, each on a multiple of eight bytes, and where each begins."""
    chassis = _area(bytes([OTHER_CHASSIS]), "", serial)
    board = _area(bytes([ENGLISH]) + NO_DATE, MAKER, PRODUCT, serial, "", "")
    product = _area(bytes([ENGLISH]), MAKER, PRODUCT, "", "", serial, name, "")
    places = (1, 1 + len(chassis) // UNIT, 1 + (len(chassis) + len(board)) // UNIT)
    head = bytes([FORMAT, 0, *places, 0, 0])
    return head + checksum(head) + chassis + board + product


def _area(start: bytes, *fields: str) -> bytes:
    content = start + b"".join(map(_field, fields)) + bytes([END])
    length = -(-(len(content) + 3) // UNIT)  # with the format, the length and the checksum
    area = (bytes([FORMAT, length]) + content).ljust(length * UNIT - 1, b"\0")
    return area + checksum(area)


def _field(text: str) -> bytes:
    value = text.encode("latin-1", "replace")[:LONGEST_FIELD]
    if len(value) == 1:  # that length says that there are no more fields
        value += b" "
    return bytes([LATIN_1 | len(value)]) + value


def _check(device: int) -> None:
    if device != DEVICE:
        raise Declined(Code.NOT_PRESENT)
