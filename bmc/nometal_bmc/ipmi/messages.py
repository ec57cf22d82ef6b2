# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""IPMI messages outside of a session, and the envelopes in which they come: of IPMI 1.5 and of RMCP+."""

from __future__ import annotations

from dataclasses import dataclass

RMCP = bytes([0x06, 0x00, 0xFF, 0x07])
NO_SESSION = bytes(8)  # sequence number and session
PLAIN, RMCP_PLUS = 0x00, 0x06
PAYLOAD_MESSAGE, PAYLOAD_OPEN, PAYLOAD_RAKP_1, PAYLOAD_RAKP_2, PAYLOAD_RAKP_3 = 0x00, 0x10, 0x12, 0x13, 0x14
PAYLOAD_OPENED = 0x11
TYPE_MASK = 0b0011_1111
HEADER = 16
"""Of RMCP+: what is behind it is the payload."""
PLAIN_HEADER = 14
SHORTEST = 7


@dataclass(frozen=True)
class Message:
    """A request as it comes, and the numbers by which the client knows the answer."""

    envelope: int
    to: int
    function: int
    unit: int
    sender: int
    sequence: int
    command: int
    data: bytes

    def answer(self, code: int, data: bytes) -> bytes:
        """The whole packet."""
        head = bytes([self.sender, (self.function + 1) << 2 | self.sequence & 0b11])
        rest = bytes([self.to, self.sequence & ~0b11 | self.unit, self.command, code]) + data
        message = head + checksum(head) + rest + checksum(rest)
        if self.envelope == PLAIN:
            return RMCP + bytes([PLAIN]) + NO_SESSION + bytes([len(message)]) + message
        return packet(PAYLOAD_MESSAGE, message)


def packet(kind: int, payload: bytes) -> bytes:
    """A payload outside of a session."""
    return RMCP + bytes([RMCP_PLUS, kind]) + NO_SESSION + len(payload).to_bytes(2, "little") + payload


def read(data: bytes) -> Message | None:
    """A message outside of a session, if the packet has one."""
    envelope = data[4]
    start = PLAIN_HEADER if envelope == PLAIN else HEADER
    length = data[13] if envelope == PLAIN else int.from_bytes(data[14:16], "little")
    body = data[start : start + length]
    if len(body) < SHORTEST or len(body) < length or body[2:3] != checksum(body[:2]):
        return None
    return Message(envelope, body[0], body[1] >> 2, body[1] & 0b11, body[3], body[4], body[5], bytes(body[6:-1]))


def checksum(data: bytes) -> bytes:
    return bytes([-sum(data) & 0xFF])
