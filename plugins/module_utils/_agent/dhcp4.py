# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A DHCP client for IPv4 that hears out every server on the link: a second one is what a rehearsal looks for."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADER = struct.Struct("!BBBBIHH4s4s4s4s16s64s128s4s")
COOKIE = b"\x63\x82\x53\x63"
BROADCAST_FLAG = 0x8000
DISCOVER, OFFER, REQUEST, ACK, NAK = 1, 2, 3, 5, 6
MASK, ROUTER, DNS, HOSTNAME, DOMAIN, MTU, NTP, ADDRESS, TYPE, SERVER, WANTED, ROUTES = (
    *(1, 3, 6, 12, 15, 26, 42, 50, 53, 54, 55, 121),
)
ASKED_FOR = bytes([MASK, ROUTER, DNS, HOSTNAME, DOMAIN, MTU, NTP, ROUTES])
RETRY_SECONDS = 1.0


@dataclass(frozen=True)
class Lease:
    """What a server has offered, or given."""

    kind: int
    address: str
    server: str
    prefix: int = 32
    routers: list[str] = field(default_factory=list)
    dns: list[str] = field(default_factory=list)
    ntp: list[str] = field(default_factory=list)
    hostname: str = ""
    domain: str = ""
    mtu: int = 0
    routes: list[list[str]] = field(default_factory=list)
    """Classless static routes: destination and gateway."""


def ask(link: str, mac: str, seconds: float, listen_on: float = 0.0) -> tuple[Lease | None, list[Lease]]:
    """The lease, if there is one, and all offers; listening on for some time after the first."""
    number = int.from_bytes(os.urandom(4), "big")
    with _conversation(link) as speaker:
        offers = _offers(speaker, mac, number, seconds, listen_on)
        if not offers:
            return None, []
        wanted = {ADDRESS: socket.inet_aton(offers[0].address), SERVER: socket.inet_aton(offers[0].server)}
        given = _exchange(speaker, _message(REQUEST, mac, number, wanted), (ACK, NAK), number, seconds)
    return (given if given and given.kind == ACK else None), offers


def _offers(speaker: socket.socket, mac: str, number: int, seconds: float, listen_on: float) -> list[Lease]:
    first = _exchange(speaker, _message(DISCOVER, mac, number, {}), (OFFER,), number, seconds)
    if first is None:
        return []
    offers, deadline = [first], time.monotonic() + listen_on
    while time.monotonic() < deadline:
        offer = _heard(speaker, (OFFER,), number, deadline)
        if offer and offer.server not in [known.server for known in offers]:
            offers.append(offer)
    return offers


def servers(link: str, mac: str, seconds: float) -> list[str]:
    """Who offers addresses, also those who look first whether they are in use."""
    number = int.from_bytes(os.urandom(4), "big")
    with _conversation(link) as speaker:
        offers = _offers(speaker, mac, number, seconds, seconds)
    return sorted(offer.server for offer in offers)


@contextmanager
def _conversation(link: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as speaker:
        speaker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        speaker.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        speaker.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, link.encode())
        speaker.bind(("0.0.0.0", 68))  # noqa: S104 - it has no address yet
        yield speaker


def _exchange(
    speaker: socket.socket, message: bytes, kinds: tuple[int, ...], number: int, seconds: float
) -> Lease | None:
    """Say it until there is an answer."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        speaker.sendto(message, ("255.255.255.255", 67))
        answer = _heard(speaker, kinds, number, min(deadline, time.monotonic() + RETRY_SECONDS))
        if answer:
            return answer
    return None


def _heard(speaker: socket.socket, kinds: tuple[int, ...], number: int, deadline: float) -> Lease | None:
    while (left := deadline - time.monotonic()) > 0:
        speaker.settimeout(left)
        try:
            data = speaker.recv(4096)
        except OSError:
            return None
        lease = parse(data, number)
        if lease and lease.kind in kinds:
            return lease
    return None


def _message(kind: int, mac: str, number: int, more: dict[int, bytes]) -> bytes:
    hardware = bytes.fromhex(mac.replace(":", ""))
    none = bytes(4)
    head = HEADER.pack(1, 1, 6, 0, number, 0, BROADCAST_FLAG, none, none, none, none, hardware, b"", b"", COOKIE)
    options = {TYPE: bytes([kind]), WANTED: ASKED_FOR, **more}
    body = b"".join(bytes([code, len(value)]) + value for code, value in options.items())
    return (head + body + b"\xff").ljust(300, b"\0")


def parse(data: bytes, number: int) -> Lease | None:
    """None for what does not answer us."""
    if len(data) < HEADER.size:
        return None
    head = HEADER.unpack_from(data)
    if head[0] != 2 or head[4] != number or head[-1] != COOKIE:
        return None
    options = _options(data[HEADER.size :])
    return Lease(
        kind=options.get(TYPE, b"\0")[0],
        address=socket.inet_ntoa(head[8]),
        server=socket.inet_ntoa(options.get(SERVER, bytes(4))),
        prefix=bin(int.from_bytes(options.get(MASK, b"\xff" * 4), "big")).count("1"),
        routers=_addresses(options.get(ROUTER, b"")),
        dns=_addresses(options.get(DNS, b"")),
        ntp=_addresses(options.get(NTP, b"")),
        hostname=options.get(HOSTNAME, b"").decode(errors="replace"),
        domain=options.get(DOMAIN, b"").decode(errors="replace"),
        mtu=int.from_bytes(options.get(MTU, b""), "big"),
        routes=_routes(options.get(ROUTES, b"")),
    )


def _options(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    place = 0
    while place + 1 < len(data) and data[place] != 0xFF:
        if data[place] == 0:
            place += 1
            continue
        code, size = data[place], data[place + 1]
        found[code] = found.get(code, b"") + data[place + 2 : place + 2 + size]
        place += 2 + size
    return found


def _addresses(data: bytes) -> list[str]:
    return [socket.inet_ntoa(data[place : place + 4]) for place in range(0, len(data) - 3, 4)]


def _routes(data: bytes) -> list[list[str]]:
    """RFC 3442: the destination's prefix, as many of its bytes as that needs, the gateway."""
    found, place = [], 0
    while place < len(data):
        prefix = data[place]
        size = (prefix + 7) // 8
        network = data[place + 1 : place + 1 + size].ljust(4, b"\0")
        gateway = data[place + 1 + size : place + 5 + size]
        if len(gateway) != 4:
            break
        found.append([str(ipaddress.IPv4Network((network, prefix), strict=False)), socket.inet_ntoa(gateway)])
        place += 5 + size
    return found
