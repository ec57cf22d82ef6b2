# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

SIGN_OF_LIFE = b"KVM runs"

SIZE = 0x10000
RESET_VECTOR = 0xFFF0  # where the CPU begins, 16 bytes below the end of the firmware
SERIAL_PORT = 0x3F8
RESET_PORT = 0xCF9


def firmware() -> bytes:
    """A firmware image in place of SeaBIOS, in 16-bit code: it writes to the serial port and resets the machine."""
    code = _cli() + b"".join(_out(SERIAL_PORT, letter) for letter in SIGN_OF_LIFE) + _out(RESET_PORT, 6) + _halt()
    return code.ljust(RESET_VECTOR, b"\xf4") + _jump_far(segment=0xF000, offset=0).ljust(SIZE - RESET_VECTOR, b"\0")


def _cli() -> bytes:
    return b"\xfa"


def _out(port: int, value: int) -> bytes:
    return b"\xba" + port.to_bytes(2, "little") + b"\xb0" + bytes([value]) + b"\xee"  # mov dx; mov al; out dx, al


def _halt() -> bytes:
    return b"\xf4\xeb\xfd"  # hlt; jmp to it


def _jump_far(segment: int, offset: int) -> bytes:
    return b"\xea" + offset.to_bytes(2, "little") + segment.to_bytes(2, "little")
