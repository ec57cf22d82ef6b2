# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages to and from the kernel about its network, with Python alone: neither pyroute2 nor iproute2 is needed."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUEST, ACKNOWLEDGE, DUMP = 0x1, 0x4, 0x300
ERROR, DONE = 2, 3
INTERRUPTED = 0x10
"""Something was changed while it was listed, so something may be missing."""
ATTEMPTS = 5
SECONDS = 2
HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
ATTRIBUTE = struct.Struct("=HH")  # length, type
ATTRIBUTE_TYPES = 0x3FFF
NUMBER = struct.Struct("=I")
NOTHING = b"\0\0\0\0"
RECEIVED = 1 << 16


def dump(kind: int, body: bytes) -> list[bytes]:
    """What the kernel lists when it is asked so: the bodies of its messages."""
    found: list[bytes] = []
    for _attempt in range(ATTEMPTS):
        answers = list(_answers(kind, DUMP, body))
        found = [answer for _flags, answer in answers if answer]
        if not any(flags & INTERRUPTED for flags, _answer in answers):
            break
    return found


def change(kind: int, body: bytes) -> None:
    list(_answers(kind, ACKNOWLEDGE, body))


def attributes(data: bytes) -> dict[int, bytes]:
    found = {}
    while len(data) >= ATTRIBUTE.size:
        length, kind = ATTRIBUTE.unpack_from(data)
        found[kind & ATTRIBUTE_TYPES] = data[ATTRIBUTE.size : length]
        data = data[_aligned(length) :]
    return found


def attribute(kind: int, value: bytes) -> bytes:
    return ATTRIBUTE.pack(ATTRIBUTE.size + len(value), kind) + value


def text_in(value: bytes | None) -> str:
    return (value or b"").rstrip(b"\0").decode(errors="replace")


def number_in(value: bytes | None) -> int:
    return int(NUMBER.unpack(value or NOTHING)[0])


def address_in(value: bytes | None) -> str:
    return str(ipaddress.ip_address(value)) if value else ""


def mac_in(value: bytes | None) -> str:
    return (value or b"").hex(":")


def link_numbered(index: int) -> str:
    try:
        return socket.if_indextoname(index)
    except OSError:
        return "a link that has gone"


def _answers(kind: int, how: int, body: bytes) -> Iterator[tuple[int, bytes]]:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.settimeout(SECONDS)
        kernel.send(HEADER.pack(HEADER.size + len(body), kind, REQUEST | how, 1, 0) + body)
        while True:
            for answer, flags, content in _messages(kernel.recv(RECEIVED)):
                if answer == ERROR:
                    _refuse_error(content)
                if answer in (ERROR, DONE):
                    yield flags, b""
                    return
                yield flags, content


def _refuse_error(content: bytes) -> None:
    number = -struct.unpack_from("=i", content)[0]
    if number:
        raise OSError(number, f"the kernel says: {os.strerror(number)}")


def _messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    while len(data) >= HEADER.size:
        length, kind, flags = HEADER.unpack_from(data)[:3]
        yield kind, flags, data[HEADER.size : length]
        data = data[_aligned(length) :]


def _aligned(length: int) -> int:
    return (length + 3) & ~3
