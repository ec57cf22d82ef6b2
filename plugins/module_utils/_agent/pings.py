# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Echo requests, also in frames as large as the link takes; and telling everybody that an address has moved here."""

from __future__ import annotations

import os
import socket
import struct
import time
from dataclasses import dataclass

ECHO4, REPLY4, ECHO6, REPLY6 = 8, 0, 128, 129
HEADERS = {socket.AF_INET: 28, socket.AF_INET6: 48}
"""Of IP and ICMP, in bytes."""
IP_MTU_DISCOVER, IPV6_MTU_DISCOVER, ALWAYS = 10, 23, 2
ARP, IPV6 = 0x0806, 0x86DD
BROADCAST = b"\xff" * 6
ALL_NODES = "ff02::1"
ALL_NODES_MAC = bytes.fromhex("333300000001")
OVERRIDE = 0x20000000


@dataclass(frozen=True)
class Ping:
    """An answer took so many milliseconds; or there was none, for this reason."""

    milliseconds: float | None
    trouble: str = ""


def family_of(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def ping(address: str, seconds: float = 3.0, frame: int = 0) -> Ping:
    """Ask until there is an answer. Frame: the size in bytes of a packet that must not be cut up on the way."""
    family = family_of(address)
    protocol = socket.IPPROTO_ICMPV6 if family == socket.AF_INET6 else socket.IPPROTO_ICMP
    deadline = time.monotonic() + seconds
    trouble = "no answer"
    with socket.socket(family, socket.SOCK_RAW, protocol) as speaker:
        if frame:
            _never_cut(speaker, family)
        while time.monotonic() < deadline:
            mark = os.urandom(8)
            try:
                started = time.monotonic()
                speaker.sendto(_echo(family, mark, max(frame - HEADERS[family], 56)), (address, 0))
                if _answered(speaker, family, mark, min(deadline, started + 1)):
                    return Ping(round((time.monotonic() - started) * 1000, 1))
            except OSError as error:
                trouble = error.strerror or str(error)
                time.sleep(0.2)
    return Ping(None, trouble)


def _never_cut(speaker: socket.socket, family: socket.AddressFamily) -> None:
    if family == socket.AF_INET6:
        speaker.setsockopt(socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, ALWAYS)
    else:
        speaker.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, ALWAYS)


def _echo(family: socket.AddressFamily, mark: bytes, size: int) -> bytes:
    body = mark.ljust(size, b"\0")
    flow = int.from_bytes(mark[:2], "big")  # or a NAT would do as it did with the one before
    if family == socket.AF_INET6:
        return struct.pack("!BBHHH", ECHO6, 0, 0, flow, 0) + body  # the kernel sums it up
    head = struct.pack("!BBHHH", ECHO4, 0, 0, flow, 0)
    return struct.pack("!BBHHH", ECHO4, 0, _checksum(head + body), flow, 0) + body


def _answered(speaker: socket.socket, family: socket.AddressFamily, mark: bytes, deadline: float) -> bool:
    while (left := deadline - time.monotonic()) > 0:
        speaker.settimeout(left)
        try:
            data = speaker.recv(65536)
        except socket.timeout:
            return False
        message = data if family == socket.AF_INET6 else data[(data[0] & 15) * 4 :]
        if message[0] in (REPLY4, REPLY6) and message[8 : 8 + len(mark)] == mark:
            return True
    return False


def _checksum(data: bytes) -> int:
    padded = data + b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def announce(link: str, mac: str, address: str) -> None:
    """As keepalived does when it takes an address: a gratuitous ARP, or an unsolicited neighbour advertisement."""
    hardware = bytes.fromhex(mac.replace(":", ""))
    if family_of(address) == socket.AF_INET:
        packed = socket.inet_aton(address)
        arp = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + hardware + packed + bytes(6) + packed
        _send(link, BROADCAST + hardware + struct.pack("!H", ARP) + arp)
    else:
        packed = socket.inet_pton(socket.AF_INET6, address)
        everybody = socket.inet_pton(socket.AF_INET6, ALL_NODES)
        target = struct.pack("!I", OVERRIDE) + packed + b"\x02\x01" + hardware
        pseudo = packed + everybody + struct.pack("!II", len(target) + 4, socket.IPPROTO_ICMPV6)
        checksum = _checksum(pseudo + b"\x88\0\0\0" + target)
        message = b"\x88\0" + struct.pack("!H", checksum) + target
        head = struct.pack("!IHBB", 6 << 28, len(message), socket.IPPROTO_ICMPV6, 255) + packed + everybody
        _send(link, ALL_NODES_MAC + hardware + struct.pack("!H", IPV6) + head + message)


def _send(link: str, frame: bytes) -> None:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as speaker:
        speaker.bind((link, 0))
        speaker.send(frame)
