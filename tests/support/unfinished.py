"""Connections to a Redfish service that never come to what they are for: half a head, half a handshake, silence."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from support.redfish_service import ADDRESS, PORT, tls_socket
from support.waiting import PATIENCE

if TYPE_CHECKING:
    from typing import Callable

    from support.redfish_service import Service

GIB = 1 << 30
PROMISE = b"POST /redfish/v1/SessionService/Sessions HTTP/1.1\r\nHost: x\r\n"


@dataclass(frozen=True)
class Unfinished:
    """So many connections that say how something begins and then, again and again, a little more."""

    count: int
    head: bytes = b""
    drop: bytes = b""
    tls: bool = True


# By their source address.
GROUPS = {
    "127.0.2.1": Unfinished(200, b"GET /redfish/v1/ HTTP/1.1\r\n", b"X: y\r\n"),
    "127.0.2.2": Unfinished(200, b"\x16\x03\x01\x02\x00\x01", tls=False),  # how a ClientHello begins
    "127.0.2.3": Unfinished(50, PROMISE + b"Content-Length: 1000\r\n\r\n", b" "),
    "127.0.2.4": Unfinished(50),
}


async def attack(service: Service, count_open: Callable[[int], None] = lambda _more: None) -> dict[str, int]:
    """How many connections of each source the service has ended. Only for threads inside.

    count_open: is told of each that is open now, and again when it has ended.
    """

    async def one(group: Unfinished, source: str) -> bool:
        context = service.authority.client_context() if group.tls else None
        reader, writer = await asyncio.open_connection(ADDRESS, PORT, ssl=context, local_addr=(source, 0))
        count_open(1)
        try:
            await asyncio.wait_for(drip(reader, writer, group), PATIENCE)
        finally:
            count_open(-1)
        return True

    async def is_ended(group: Unfinished, source: str) -> bool:
        try:
            return await one(group, source)
        except asyncio.TimeoutError:
            return False
        except OSError:  # without a farewell
            return True

    every = {
        source: asyncio.gather(*(is_ended(group, source) for _ in range(group.count)))
        for source, group in GROUPS.items()
    }
    return {source: sum(await ended) for source, ended in every.items()}


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, group: Unfinished) -> None:
    """Until the other side has had enough."""
    writer.write(group.head)
    ended = asyncio.create_task(reader.read())
    while not ended.done():
        writer.write(group.drop)
        await asyncio.wait([ended], timeout=1)
    await ended


def send_without_end(service: Service, head: bytes) -> tuple[bytes, int]:
    """Send without end until the connection ends; what came back, and how much was sent."""
    received, sent = b"", 0
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    with closing(tls_socket(service)) as connection, suppress(ConnectionError, ssl.SSLError):
        connection.sendall(head)
        connection.settimeout(0.01)
        while sent < 10 * GIB:
            with suppress(TimeoutError):
                sent += connection.send(chunk)
                received += connection.recv(65536)
    return received, sent
