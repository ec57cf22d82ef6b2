"""The image that nodes boot from, or rather do not: no more than looks like one."""

from __future__ import annotations

import struct

SECTOR, DESCRIPTOR, SIZE = 2048, 16, 1 << 20


def image() -> bytes:
    whole = bytearray(SIZE)
    start = DESCRIPTOR * SECTOR
    whole[start : start + 7] = b"\x01CD001\x01"
    struct.pack_into("<L", whole, start + 80, SIZE // SECTOR)
    struct.pack_into("<H", whole, start + 128, SECTOR)
    return bytes(whole)
