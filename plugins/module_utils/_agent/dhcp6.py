# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A DHCP client for IPv6, that identifies itself by its MAC address (DUID-LL), as RHCOS does."""

from __future__ import annotations

import os
import socket
import struct
import time
from dataclasses import dataclass, field

SERVERS = "ff02::1:2"
SOLICIT, ADVERTISE, REQUEST, REPLY = 1, 2, 3, 7
CLIENT_ID, SERVER_ID, IA_NA, IA_ADDRESS, WANTED, ELAPSED, STATUS, DNS, DOMAINS, FQDN, NTP = (
    *(1, 2, 3, 5, 6, 8, 13, 23, 24, 39, 56),
)
RETRY_SECONDS = 1.0
MAX_NAME = 63


@dataclass(frozen=True)
class Lease:
    kind: int
    address: str
    server: str
    """The server's DUID, in hexadecimal."""
    dns: list[str] = field(default_factory=list)
    ntp: list[str] = field(default_factory=list)
    domain: str = ""
    hostname: str = ""
    answered_from: str = ""
    """The server's link-local address."""


def ask(link: str, mac: str, seconds: float, listen_on: float = 0.0) -> tuple[Lease | None, list[Lease]]:
    """The lease, if there is one, and all offers; listening on for some time after the first."""
    index = socket.if_nametoindex(link)
    identity = bytes.fromhex("00030001" + mac.replace(":", ""))
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as speaker:
        speaker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        speaker.bind(("::", 546, 0, index))
        speaker.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
        offers = _all(speaker, _message(SOLICIT, identity, b""), ADVERTISE, seconds, listen_on)
        offers = [offer for offer in offers if offer.address]
        if not offers:
            return None, []
        server = _option(SERVER_ID, bytes.fromhex(offers[0].server))
        given = _all(speaker, _message(REQUEST, identity, server), REPLY, seconds, 0)
    return (given[0] if given and given[0].address else None), offers


def _all(speaker: socket.socket, message: bytes, kind: int, seconds: float, listen_on: float) -> list[Lease]:
    found: list[Lease] = []
    deadline = time.monotonic() + seconds
    while not found and time.monotonic() < deadline:
        speaker.sendto(message, (SERVERS, 547))
        found = _heard(speaker, message[1:4], kind, time.monotonic() + RETRY_SECONDS, listen_on)
    return found


def _heard(speaker: socket.socket, number: bytes, kind: int, deadline: float, listen_on: float) -> list[Lease]:
    found: dict[str, Lease] = {}
    while (left := deadline - time.monotonic()) > 0:
        speaker.settimeout(left)
        try:
            data, sender = speaker.recvfrom(4096)
        except OSError:
            break
        if data[0] != kind or data[1:4] != number:
            continue
        lease = parse(data, sender[0])
        if not found:
            deadline = time.monotonic() + listen_on
        found.setdefault(lease.server, lease)
    return list(found.values())


def _message(kind: int, identity: bytes, more: bytes) -> bytes:
    identity_association = struct.pack("!4sII", identity[-4:], 0, 0)
    wanted = struct.pack("!HHHH", DNS, DOMAINS, NTP, FQDN)
    return (
        bytes([kind])
        + os.urandom(3)
        + _option(CLIENT_ID, identity)
        + more
        + _option(IA_NA, identity_association)
        + _option(ELAPSED, b"\0\0")
        + _option(WANTED, wanted)
    )


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("!HH", code, len(value)) + value


def parse(data: bytes, sender: str = "") -> Lease:
    options = _options(data[4:])
    association = _options(options.get(IA_NA, b"")[12:])
    address = association.get(IA_ADDRESS, b"")[:16]
    domains = _names(options.get(DOMAINS, b""))
    return Lease(
        kind=data[0],
        address=socket.inet_ntop(socket.AF_INET6, address) if len(address) == 16 else "",
        server=options.get(SERVER_ID, b"").hex(),
        dns=_addresses(options.get(DNS, b"")),
        ntp=_time_servers(options.get(NTP, b"")),
        domain=domains[0] if domains else "",
        hostname=".".join(_names(options.get(FQDN, b"")[1:])[:1]),
        answered_from=sender.partition("%")[0],
    )


def _options(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    place = 0
    while place + 4 <= len(data):
        code, size = struct.unpack_from("!HH", data, place)
        found.setdefault(code, data[place + 4 : place + 4 + size])
        place += 4 + size
    return found


def _addresses(data: bytes) -> list[str]:
    return [socket.inet_ntop(socket.AF_INET6, data[place : place + 16]) for place in range(0, len(data) - 15, 16)]


def _time_servers(data: bytes) -> list[str]:
    """RFC 5908: suboption 1 is a server's address."""
    return _addresses(_options(data).get(1, b""))


def _names(data: bytes) -> list[str]:
    names, labels, place = [], [], 0
    while place < len(data):
        size = data[place]
        if size > MAX_NAME:
            break
        if size:
            labels.append(data[place + 1 : place + 1 + size].decode(errors="replace"))
        elif labels:
            names.append(".".join(labels))
            labels = []
        place += 1 + size
    return names + ([".".join(labels)] if labels else [])
