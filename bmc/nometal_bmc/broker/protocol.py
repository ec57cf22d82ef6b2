# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the service and the broker talk: JSON objects, each behind its length; one of them may bring a file."""

from __future__ import annotations

import json
import os
import socket
import struct
from typing import Any

__all__ = ["MOST_ANSWER_BYTES", "MOST_REQUEST_BYTES", "Torn", "receive", "send"]

LENGTH = struct.Struct("!I")
MOST_REQUEST_BYTES = 256 * 1024
MOST_ANSWER_BYTES = 64 * 1024 * 1024


class Torn(ConnectionError):  # noqa: N818 - reads as a sentence where it is caught
    """The other side has ended, or what it sends cannot be understood."""


def send(connection: socket.socket, message: dict[str, Any], descriptor: int | None = None) -> None:
    data = json.dumps(message).encode()
    head = LENGTH.pack(len(data))
    if descriptor is None:
        connection.sendall(head + data)
    else:
        socket.send_fds(connection, [head], [descriptor])
        connection.sendall(data)


def receive(connection: socket.socket, most: int, *, files: bool = False) -> tuple[dict[str, Any], int | None] | None:
    """The next message, and the file that it brings if files are wanted. None when the other side has ended."""
    head, descriptor = _head(connection) if files else (_exactly(connection, LENGTH.size), None)
    if not head:
        return None
    try:
        (length,) = LENGTH.unpack(head)
        return _object(connection, length, most), descriptor
    except BaseException:
        if descriptor is not None:
            os.close(descriptor)
        raise


def _object(connection: socket.socket, length: int, most: int) -> dict[str, Any]:
    if length > most:
        raise Torn(f"a message of {length} bytes")
    try:
        message = json.loads(_exactly(connection, length))
    except (ValueError, RecursionError) as error:
        raise Torn("a message that is not JSON") from error
    if not isinstance(message, dict):
        raise Torn("a message must be an object")
    return message


def _head(connection: socket.socket) -> tuple[bytes, int | None]:
    data, descriptors, _flags, _address = socket.recv_fds(connection, LENGTH.size, 1)
    if data and len(data) < LENGTH.size:
        data += _exactly(connection, LENGTH.size - len(data))
    return data, descriptors[0] if descriptors else None


def _exactly(connection: socket.socket, length: int) -> bytes:
    """So many bytes, or none at all at the end."""
    found = bytearray()
    while len(found) < length:
        part = connection.recv(length - len(found))
        if not part:
            if found:
                raise Torn("half a message")
            break
        found += part
    return bytes(found)
