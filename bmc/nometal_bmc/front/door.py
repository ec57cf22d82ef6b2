# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections that end: what a client may leave undone, and for how long."""

from __future__ import annotations

import asyncio
import http
import json
import logging
import sys
from asyncio import sslproto
from functools import partial
from typing import TYPE_CHECKING, Any

from httptools import HttpParserInvalidMethodError
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from nometal_bmc.answers import Refused
from nometal_bmc.faults.connections import reset_when_closed
from nometal_bmc.faults.requests import RESET
from nometal_bmc.front import heads
from nometal_bmc.front.crowd import Crowd, Visitor

if TYPE_CHECKING:
    import socket
    import ssl
    from typing import Callable

    from nometal_bmc.faults.connections import FaultyConnections

__all__ = ["IDLE_SECONDS", "LOGGED_IN", "Connection", "Door"]

LOG = logging.getLogger(__name__)
HANDSHAKE_SECONDS = 10.0
HEAD_SECONDS = 10.0
IDLE_SECONDS = 60
LOGGED_IN = "logged_in"  # what is to be called then, in the state of an ASGI scope
WRITE_SECONDS = 20.0
CLOSE_SECONDS = 5.0
LINGER_SECONDS = 2.0  # to read on after a refusal, or the client would see a reset instead of it
MOST_HEAD_BYTES, MOST_HEADERS = 32 * 1024, 100
MOST_BYTES = 8 * 1024 * 1024
MOST_PIPELINED = 8
TOO_LARGE = Refused(
    431, "GeneralError", f"The request's head is larger than {MOST_HEAD_BYTES} bytes or has too many headers."
)
# The buffer that each connection has. Python's own is of 256 KiB, too much for so many.
sslproto.SSLProtocol.max_size = 16 * 1024  # type: ignore[attr-defined]


class TooMuch(Exception):  # noqa: N818 - reads as what it is
    """More headers or requests at once than any client of ours sends."""


class Connection(HttpToolsProtocol):
    """uvicorn's, with an end for every state in which the other side may keep it waiting."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.gone = self.loop.create_future()
        self._deadline: asyncio.TimerHandle | None = None
        self._in_head = False
        self._bytes = 0
        self._received = b""
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._give(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._give(None)
        self._unset_keepalive_if_required()
        # For want of an error, uvicorn would close once more, and asyncio's TLS fail at an answer that is on its way.
        super().connection_lost(exc or ConnectionResetError())
        self.gone.set_result(None)

    def data_received(self, data: bytes) -> None:
        self._bytes += len(data)
        if not self._refused:
            self._received = data
            super().data_received(data)
        if self._bytes > MOST_BYTES:
            self.transport.abort()
        elif self._in_head and self._bytes > MOST_HEAD_BYTES:
            self._refuse(TOO_LARGE)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._bytes = True, 0
        self._give(HEAD_SECONDS)

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self.headers) >= MOST_HEADERS:
            self._refuse(TOO_LARGE)
            raise TooMuch
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= MOST_PIPELINED:
            raise TooMuch
        self._in_head = False
        self._give(None)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if self.cycle.response_complete:
            self._give(IDLE_SECONDS)

    async def reset(self) -> None:
        """End as with a server that has crashed; returns when it has ended."""
        reset_when_closed(self.transport.get_extra_info("socket"))
        self.transport.abort()
        await asyncio.wait([self.gone])

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn while it handles the parser's error."""
        unknown = isinstance(sys.exc_info()[1], HttpParserInvalidMethodError)
        self._refuse(heads.refusal_of(self._received if unknown else b"", msg))

    def _refuse(self, refused: Refused) -> None:
        """Answer an invalid request; what still comes is not looked at."""
        if self._refused:
            return
        self._refused = True
        if self.cycle is not None and not self.cycle.response_complete:  # an answer is on its way
            self.transport.abort()
            return
        body = json.dumps(refused.body).encode()
        own = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        head = b"".join(b"%s: %s\r\n" % header for header in [*self.server_state.default_headers, *own])
        status = http.HTTPStatus(refused.status)
        self.transport.write(b"HTTP/1.1 %d %s\r\n%s\r\n%s" % (status, status.phrase.encode(), head, body))
        self._give(LINGER_SECONDS)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._give(CLOSE_SECONDS)
        elif self.cycle.response_complete:
            self._give(LINGER_SECONDS if self.cycle.more_body else IDLE_SECONDS)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._give(WRITE_SECONDS)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._give(IDLE_SECONDS)

    def _give(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)


class Door:
    """Lets connections in; when there are too many, strangers have to make room."""

    def __init__(self, make: Callable[[], Connection], tls: ssl.SSLContext | None, faults: FaultyConnections) -> None:
        self._make = make
        self._tls = tls
        self._faults = faults
        self._crowd = Crowd()
        self.connections: set[Connection] = set()
        self._tasks: dict[Visitor, asyncio.Task[None]] = {}
        self._ends: dict[Visitor, Callable[[], object]] = {}
        self._listening: list[asyncio.Task[None]] = []

    def open(self, listeners: list[socket.socket]) -> None:
        self._listening = [asyncio.create_task(self._listen(listener)) for listener in listeners]

    def close(self) -> None:
        for task in self._listening:
            task.cancel()

    async def _listen(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(listener)
            except OSError as error:
                LOG.warning("Cannot accept a connection: %s", error)
                await asyncio.sleep(0.1)
                continue
            if not self._faults.refuse(accepted):
                self._admit(accepted, Visitor(address[0]))

    def _admit(self, accepted: socket.socket, visitor: Visitor) -> None:
        task = self._tasks[visitor] = asyncio.create_task(self._serve(accepted, visitor))
        self._ends[visitor] = task.cancel
        task.add_done_callback(lambda _task: self._leave(accepted, visitor))
        surplus = self._crowd.enter(visitor)
        if surplus:
            self._ends[surplus]()

    def _leave(self, accepted: socket.socket, visitor: Visitor) -> None:
        accepted.close()  # which nobody else has done if the task never came to run
        del self._tasks[visitor], self._ends[visitor]
        self._crowd.leave(visitor)

    async def _serve(self, accepted: socket.socket, visitor: Visitor) -> None:
        loop, limit = asyncio.get_running_loop(), HANDSHAKE_SECONDS if self._tls else None
        try:
            _transport, connection = await loop.connect_accepted_socket(
                partial(self._made, visitor),
                accepted,
                ssl=self._faults.context(self._tls),
                ssl_handshake_timeout=limit,
            )
        except OSError:  # no handshake, or none in time
            return
        self._ends[visitor] = connection.transport.abort
        self.connections.add(connection)
        await connection.gone
        self.connections.discard(connection)

    def _made(self, visitor: Visitor) -> Connection:
        connection = self._make()
        connection.app_state = {LOGGED_IN: partial(self._crowd.recognise, visitor), RESET: connection.reset}
        return connection
