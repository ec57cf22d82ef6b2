# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A session of RMCP+: pyghmi's packets and their encryption, with our logins, privilege levels and cipher suites."""

from __future__ import annotations

import hmac
import logging
import secrets
import time
from typing import TYPE_CHECKING, Any

from pyghmi.ipmi.private import constants
from pyghmi.ipmi.private.serversession import ServerSession
from pyghmi.ipmi.private.session import Session

from nometal_bmc.ipmi import messages, suites
from nometal_bmc.ipmi.commands import APPLICATION, Code, Level, Request

if TYPE_CHECKING:
    from nometal_bmc.ipmi.bmc import Listener

LOG = logging.getLogger(__name__)
SET_LEVEL, CLOSE = 0x3B, 0x3C
LEVEL_MASK = 0b1111
LONGEST_NAME = 16
OPEN_LENGTH, RAKP_1_LENGTH, RAKP_3_LENGTH = 32, 28, 8
PROTECTED = 0b1100_0000
"""Of a packet: it is encrypted and proves its sender."""

# What an attempt to log in is refused with.
NO_RESOURCES, INVALID_SESSION, UNAUTHORIZED_ROLE, UNAUTHORIZED_NAME = 0x01, 0x02, 0x09, 0x0D
INVALID_PROOF, NO_SUITE = 0x0F, 0x11


def refusal(tag: int, status: int, client_session: bytes) -> bytes:
    """What takes the place of any step of a login."""
    return bytes([tag, status, 0, 0]) + client_session


class NodeSession(ServerSession):
    """A session, or the beginning of one, of a client at one of a BMC's addresses.

    pyghmi knows sessions by the client's address and port, so that whoever forges those could end them. Here they are
    known by the number that was drawn for them (see Listener).
    """

    def __new__(cls, *_arguments: Any) -> NodeSession:
        """pyghmi's takes its own arguments only."""
        return object.__new__(cls)

    def __init__(self, listener: Listener, peer: tuple[Any, ...], request: bytes, suite: suites.Suite) -> None:
        self.last_used = time.monotonic()
        self.suite = suite
        self.established = False
        self._listener = listener
        self._logins = listener.logins
        self._level, self._most = Level.USER, Level.ADMINISTRATOR
        self._last_request: tuple[object, ...] | None = None
        self._last_answer: tuple[Code, bytes] | None = None
        self._proof = b""
        self._last_login: tuple[bytes, bytes] | None = None  # the client's third message, and our answer
        self.managedsessionid = bytearray(secrets.token_bytes(4))
        super().__init__({}, None, peer, listener.socket, request, self._logins.guid, listener)
        Session.bmc_handlers.pop(peer, None)
        self.currhashlib, self.currhashlen = suite.hash, suite.code_length

    @property
    def worth(self) -> tuple[bool, float]:
        """Of two sessions the one to keep is greater: one that is logged in, or else the one used later."""
        return (self.established, self.last_used)

    @property
    def source(self) -> str:
        return str(self.sockaddr[0])

    def create_open_session_response(self, request: bytes) -> bytes:
        self.clientsessionid = bytearray(request[4:8])
        self._most = Level(request[1] & LEVEL_MASK or Level.ADMINISTRATOR)
        head = bytes([request[0], 0, self._most, 0])
        return head + bytes(self.clientsessionid + self.managedsessionid) + self.suite.payloads()

    def take(self, packet: bytearray) -> None:
        """A packet that is for this session, as it says."""
        kind = packet[5] & messages.TYPE_MASK
        payload = packet[messages.HEADER :]
        if kind == messages.PAYLOAD_RAKP_1 and not self.established and len(payload) >= RAKP_1_LENGTH:
            self._begin_login(payload)
        elif kind == messages.PAYLOAD_RAKP_3 and len(payload) >= RAKP_3_LENGTH:
            self._finish_login(payload)
        elif kind == messages.PAYLOAD_MESSAGE and packet[5] & PROTECTED == PROTECTED:
            self._handle_ipmi_packet(packet, sockaddr=self.sockaddr)

    def handle_client_request(self, request: dict[str, Any]) -> None:
        """Obey once; a client that has waited too long for the answer sends the same again, with the same number."""
        self.last_used = time.monotonic()
        asked = (self.seqlun, request["netfn"], request["command"], bytes(request["data"]))
        if asked != self._last_request or self._last_answer is None:
            self._last_request = asked
            self._last_answer = self._answer(request["netfn"], request["command"], bytes(request["data"]))
        code, data = self._last_answer
        self.send_ipmi_response(data=data, code=code)
        if asked[1:3] == (APPLICATION, CLOSE):
            self._listener.forget(self)

    def _answer(self, function: int, command: int, data: bytes) -> tuple[Code, bytes]:
        if function == APPLICATION and command == SET_LEVEL:
            return self._set_level(data)
        if function == APPLICATION and command == CLOSE:
            ours = data[:4] == bytes(self.managedsessionid)
            return (Code.DONE if ours else Code.INVALID_SESSION), b""
        name = self.username.decode(errors="replace")
        return self._listener.commands.answer(Request(function, command, data, self._level, name, self.source))

    def _set_level(self, data: bytes) -> tuple[Code, bytes]:
        if not data:
            return Code.WRONG_LENGTH, b""
        wanted = data[0] & LEVEL_MASK
        if wanted == Level.CALLBACK or wanted > Level.ADMINISTRATOR:
            return Code.INVALID_FIELD, b""
        if wanted > self._most:
            return Code.LEVEL_EXCEEDED, b""
        self._level = Level(wanted or self._level)
        return Code.DONE, bytes([self._level])

    def _begin_login(self, data: bytearray) -> None:
        """Prove that we know the password, if the name is correct and this client has not guessed too often."""
        name = bytes(data[28 : 28 + min(data[27], LONGEST_NAME)])
        status = self._refused(name.decode(errors="replace"), data[24] & LEVEL_MASK)
        if status:
            self._send(messages.PAYLOAD_RAKP_2, refusal(data[0], status, bytes(self.clientsessionid)))
            return
        self.username, self.rolem = name, data[24]
        self._most = Level(data[24] & LEVEL_MASK or Level.ADMINISTRATOR)
        self._level = min(Level.USER, self._most)
        self.kuid = self._logins.password.encode()
        self.Rm, self.Rc = bytes(data[8:24]), secrets.token_bytes(16)
        ours, theirs, guid = bytes(self.managedsessionid), bytes(self.clientsessionid), self._logins.guid.bytes
        role = bytes([self.rolem, len(name)]) + name
        proof = self._code(self.kuid, theirs + ours + self.Rm + self.Rc + guid + role)
        self._proof = self._code(self.kuid, self.Rc + theirs + role)
        self.sik = self._code(self.kuid, self.Rm + self.Rc + role)
        self._logins.begun(self)
        answer = bytes([data[0], 0, 0, 0]) + theirs + self.Rc + guid + proof
        self._send(messages.PAYLOAD_RAKP_2, answer)

    def _refused(self, name: str, role: int) -> int:
        if self._logins.must_wait(self.source, name):
            return NO_RESOURCES
        if not self._logins.knows(self.source, name):
            return UNAUTHORIZED_NAME
        return UNAUTHORIZED_ROLE if role > Level.ADMINISTRATOR else 0

    def _finish_login(self, data: bytearray) -> None:
        """The client proves that it knows the password."""
        if self._last_login is not None:
            if self._last_login[0] == bytes(data):  # our answer was lost
                self.socket.sendto(self._last_login[1], self.sockaddr)
        elif data[1] == 0 and self._proof and hmac.compare_digest(bytes(data[8:]), self._proof):
            self._logins.succeeded(self)
            self._establish(data)
        else:
            if data[1] == 0:
                answer = refusal(data[0], INVALID_PROOF, bytes(self.clientsessionid))
                self._send(constants.payload_types["rakp4"], answer)
            self._listener.forget(self)

    def _establish(self, data: bytearray) -> None:
        proof = self._code(self.sik, self.Rm + bytes(self.managedsessionid) + self._logins.guid.bytes)
        answer = bytes([data[0], 0, 0, 0]) + bytes(self.clientsessionid) + proof[: self.suite.code_length]
        self._send(constants.payload_types["rakp4"], answer)
        self._last_login = (bytes(data), bytes(self.netpacket))
        self.established = True
        # What pyghmi protects packets by, and knows them by.
        self.k1, k2 = (self._code(self.sik, bytes([number]) * 20) for number in (1, 2))
        self.aeskey = k2[:16]
        self.confalgo = self.integrityalgo = self.suite.number
        self.sequencenumber = 1
        self.localsid = int.from_bytes(self.managedsessionid, "little")
        self.sessionid = int.from_bytes(self.clientsessionid, "little")
        self.ipmicallback = self.handle_client_request

    def _send(self, kind: int, payload: bytes) -> None:
        self.send_payload(payload, kind, retry=False)

    def _code(self, key: bytes, data: bytes) -> bytes:
        return hmac.new(key, data, self.suite.hash).digest()
