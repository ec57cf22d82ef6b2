# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The server: one process, one loop for all connections, threads for the application."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from email.utils import formatdate
from functools import partial
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.server import ServerState

from nometal_bmc.faults.connections import FaultyConnections
from nometal_bmc.faults.decisions import CurrentFaults
from nometal_bmc.faults.requests import FaultyRequests
from nometal_bmc.faults.rules import FILE
from nometal_bmc.front.door import IDLE_SECONDS, Connection, Door
from nometal_bmc.front.tls import Certificate
from nometal_bmc.front.wsgi import Bridge

if TYPE_CHECKING:
    import flask

    from nometal_bmc.config.reading import CurrentConfig
    from nometal_bmc.config.settings import Listen

__all__ = ["NotServing", "Server"]

LOG = logging.getLogger(__name__)
TICK_SECONDS = 0.5
GRACE_SECONDS = 10.0
FAREWELL_SECONDS = 2.0
BACKLOG = 512
UNACKNOWLEDGED_MS = 30_000
ALWAYS = [(b"odata-version", b"4.0"), (b"cache-control", b"no-store")]
IP_FREEBIND = 15  # Linux's, which Python's socket does not name; for IPv6 as well
IPV6 = ":"


class NotServing(Exception):  # noqa: N818 - reads as a sentence where it is raised
    """The service could not be started."""


class Server:
    """Listens from the beginning: clients that come before the application is there wait for it."""

    def __init__(self, current: CurrentConfig) -> None:
        self._current = current
        config = current.config
        try:
            self._certificate = Certificate(config.tls) if config.tls else None
        except OSError as error:
            raise NotServing(f"The certificate {config.tls} cannot be used: {error}") from error
        self._listeners = [_bound(listen) for listen in config.listen]

    def serve(self, app: flask.Flask) -> None:
        """Serve until SIGTERM, and return when running requests have been answered."""
        guard = app.extensions["nometal_bmc"]
        faults = CurrentFaults(self._current.path.with_name(FILE))
        bridge = Bridge(app, guard, FaultyRequests(faults, self._current, guard))
        asyncio.run(self._serve(bridge, FaultyConnections(faults)))

    async def _serve(self, bridge: Bridge, faults: FaultyConnections) -> None:
        state, stop = ServerState(), _signals(self._current)
        settings = uvicorn.Config(
            bridge,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,  # or a client on this host could say in a header that it is another one
            timeout_keep_alive=IDLE_SECONDS,
        )
        settings.load()
        tls = self._certificate.context if self._certificate else None
        door = Door(partial(Connection, settings, state, {}), tls, faults)
        door.open(self._listeners)
        for listen in self._current.config.listen:
            kind = "https" if self._certificate else "http"
            LOG.info("Serving at %s port %d, %s", listen.address, listen.port, kind)
        ticking = asyncio.create_task(self._tick(state))
        await stop.wait()
        ticking.cancel()
        await self._end(door, bridge)
        bridge.close()

    async def _tick(self, state: ServerState) -> None:
        """What has to be looked at again and again, whether clients ask or not."""
        while True:
            state.default_headers = [(b"date", formatdate(usegmt=True).encode()), *ALWAYS]
            self._current.refresh()
            if self._certificate:
                self._certificate.refresh()
            await asyncio.sleep(TICK_SECONDS)

    async def _end(self, door: Door, bridge: Bridge) -> None:
        """Soon: whoever comes next is served by the next process, which begins when this one has ended."""
        door.close()
        for listener in self._listeners:
            listener.close()
        for connection in door.connections:
            connection.shutdown()
        bridge.stop()
        if await _are_running(door, GRACE_SECONDS):
            LOG.warning("Some requests were still running after %d seconds", GRACE_SECONDS)
            bridge.give_up()
            await _are_running(door, FAREWELL_SECONDS)


async def _are_running(door: Door, seconds: float) -> bool:
    """Whether requests still are after this time, or when the last was answered."""
    running = [connection.gone for connection in door.connections]
    return bool(running and (await asyncio.wait(running, timeout=seconds))[1])


def _signals(current: CurrentConfig) -> asyncio.Event:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, current.refresh)
    return stop


def _bound(listen: Listen) -> socket.socket:
    try:
        return _listener(listen)
    except OSError as error:
        raise NotServing(f"Cannot listen at {listen.address} port {listen.port}: {error.strerror}") from error


def _listener(listen: Listen) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if IPV6 in listen.address else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections have these from their listener: one whose other side takes nothing ends, even in closing.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # The address may come up only after the service.
        listener.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
        listener.bind((listen.address, listen.port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener
