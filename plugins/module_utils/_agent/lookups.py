# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asking name servers and time servers."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
import time

A, PTR, AAAA = 1, 12, 28
NTP_CLIENT = b"\x23" + bytes(47)  # version 4
NTP_SIZE = 48
TRIES = 3
NO_ANSWER = "no answer"
NO_SUCH_NAME = 3


def addresses_of(name: str, server: str, seconds: float = 2.0) -> tuple[list[str], str]:
    """What a name server says: addresses of both families, sorted; and why there are none, if there are none."""
    found: list[str] = []
    trouble = ""
    for kind in (A, AAAA):
        answers, said = _ask(_question(name, kind), server, kind, seconds)
        found += [str(ipaddress.ip_address(answer)) for answer in answers]
        trouble = trouble or said
    return sorted(found), "" if found else trouble


def names_of(address: str, server: str, seconds: float = 2.0) -> tuple[list[str], str]:
    reverse = ipaddress.ip_address(address).reverse_pointer
    answers, trouble = _ask(_question(reverse, PTR), server, PTR, seconds)
    return sorted(answer.decode() for answer in answers), trouble


def answers_dns(server: str, name: str, seconds: float = 2.0) -> bool:
    """Whether it answers at all, whatever it says."""
    return _ask(_question(name, A), server, A, seconds)[1] != NO_ANSWER


def clock_of(server: str, seconds: float = 2.0) -> float | None:
    """What a time server says that it is; None: no answer."""
    for _try in range(TRIES):
        data = _asked(server, 123, NTP_CLIENT, seconds)
        if data and len(data) >= NTP_SIZE and struct.unpack_from("!I", data, 40)[0]:
            return struct.unpack_from("!I", data, 40)[0] - 2208988800.0  # from 1900 to 1970
    return None


def _question(name: str, kind: int) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.strip(".").split("."))
    return (
        struct.pack("!HHHHHH", int.from_bytes(os.urandom(2), "big"), 0x0100, 1, 0, 0, 0)
        + labels
        + struct.pack("!BHH", 0, kind, 1)
    )


def _ask(question: bytes, server: str, kind: int, seconds: float) -> tuple[list[bytes], str]:
    for _try in range(TRIES):
        data = _asked(server, 53, question, seconds)
        if data and data[:2] == question[:2]:
            code = data[3] & 15
            answers = _answers(data, kind)
            if answers:
                return answers, ""
            return [], "no such name" if code in (0, NO_SUCH_NAME) else f"refused with code {code}"
    return [], NO_ANSWER


def _asked(server: str, port: int, message: bytes, seconds: float) -> bytes | None:
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as speaker:
        speaker.settimeout(seconds)
        try:
            speaker.connect((server, port))
            speaker.send(message)
            return speaker.recv(4096)
        except OSError:
            time.sleep(0.1)
            return None


def _answers(data: bytes, kind: int) -> list[bytes]:
    """Of each answer of this kind its value: addresses as they are packed, names as text."""
    count = struct.unpack_from("!H", data, 6)[0]
    place = _after_name(data, 12) + 4
    found = []
    for _answer in range(count):
        place = _after_name(data, place)
        its_kind, _class, _age, size = struct.unpack_from("!HHIH", data, place)
        place += 10
        if its_kind == kind:
            found.append(_name(data, place).encode() if kind == PTR else data[place : place + size])
        place += size
    return found


def _after_name(data: bytes, place: int) -> int:
    while data[place] and data[place] < 0xC0:
        place += 1 + data[place]
    return place + (2 if data[place] else 1)


def _name(data: bytes, place: int) -> str:
    labels: list[str] = []
    while data[place]:
        if data[place] >= 0xC0:
            place = struct.unpack_from("!H", data, place)[0] & 0x3FFF
            continue
        labels.append(data[place + 1 : place + 1 + data[place]].decode(errors="replace"))
        place += 1 + data[place]
    return ".".join(labels)
