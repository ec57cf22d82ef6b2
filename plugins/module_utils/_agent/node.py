# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node: reports what it is and sees to the bootstrap VM, and writes a bootable system to its disk when asked to."""

from __future__ import annotations

import http.client
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from . import disks, links, lookups, machine, network, pings
from .letter import read_letter

REPORT_SECONDS = 60
ANSWER_SECONDS = 60
AT_ONCE = 16
PEER_SECONDS = 8.0


def play() -> None:
    letter, medium = started_with()
    patience = letter.get("patience", 1.0)
    machine.say(f"node started from {medium or 'nothing that says for which rehearsal'}")
    cards = network.join(letter.get("families", ["ipv4", "ipv6"]))
    machine.set_hostname(_name_given(cards) or "unnamed")
    urls = letter.get("urls", [])
    orders = _tell(urls, patience, "/report", {"play": letter.get("play"), "medium": medium, **_self(cards)})
    machine.say("node reported")
    if orders.get("write"):
        _tell(urls, patience, "/seen", {"uuid": machine.uuid(), "seen": _looks(orders)})
        _tell(urls, patience, "/written", {"uuid": machine.uuid(), **_write(urls, orders)})
        machine.say("node has written its disk")


def started_with() -> tuple[dict[str, Any], str]:
    """What the bootstrap VM says, and what this guest was started from.

    By PXE it is in the kernel's command line. From a medium, the boot loader has taken it into memory.
    """
    words = machine.command_line()
    if "rehearsal.letter" in words:
        return json.loads(bytes.fromhex(words["rehearsal.letter"])), "network"
    try:
        return read_letter(), disks.started_from(words["rehearsal.medium"])
    except (OSError, ValueError):
        return {}, ""


def _name_given(cards: list[dict[str, Any]]) -> str:
    names = [(card[kind] or {}).get("hostname", "") for card in cards for kind in ("dhcp4", "dhcp6")]
    return next(filter(None, names), "")


def _self(cards: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "uuid": machine.uuid(),
        "cards": cards,
        "hostname": socket.gethostname(),
        "routes": links.routes(),
        "firmware": machine.firmware(),
        "secure_boot": machine.secure_boot(),
        "vcpus": machine.vcpus(),
        "memory_mib": machine.memory_mib(),
        "disks": disks.all_disks(),
    }


def _looks(orders: dict[str, Any]) -> dict[str, Any]:
    """All questions at once: one that is not answered takes seconds."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        names = [(name, server) for name in orders["names"] for server in orders["dns"]]
        found = pool.map(lambda pair: lookups.addresses_of(*pair), names)
        peers = pool.map(lambda address: pings.ping(address, PEER_SECONDS), orders["peers"])
        vips = pool.map(_answers_as(orders["play"]), orders["vips"])
        return {
            "names": [[name, server, *answer] for (name, server), answer in zip(names, found)],
            "peers": {address: answer.trouble for address, answer in zip(orders["peers"], peers)},
            "vips": dict(zip(orders["vips"], vips)),
        }


def _answers_as(play: str) -> Any:
    def trouble_of(url: str) -> str:
        try:
            answer = json.loads(_request("GET", url, None))
        except (OSError, ValueError, http.client.HTTPException) as error:
            return str(error) or type(error).__name__
        return "" if answer.get("play") == play else "something else answers there"

    return trouble_of


def _write(urls: list[str], orders: dict[str, Any]) -> dict[str, Any]:
    device = disks.meant(disks.all_disks(), orders["hints"])
    if not device:
        return {"device": "", "trouble": "no disk is as the root device hints say"}
    try:
        with _opened(urls[0] + orders["image"]) as source:
            written = disks.write(device, source)
        return {"device": device, "bytes": written, "syncs": disks.sync_milliseconds(device, written)}
    except (OSError, http.client.HTTPException) as error:
        return {"device": device, "trouble": str(error), "errno": getattr(error, "errno", None)}


def _tell(urls: list[str], patience: float, path: str, what: dict[str, Any]) -> dict[str, Any]:
    """Say it until it is heard, by any of the addresses."""
    deadline = time.monotonic() + REPORT_SECONDS * patience
    while time.monotonic() < deadline:
        for url in urls:
            heard = _heard(url + path, what, ANSWER_SECONDS * patience)
            if heard is not None:
                return heard
        time.sleep(0.3)
    machine.say(f"no answer to this node at {' or '.join(urls)}")
    return {}


def _heard(url: str, what: dict[str, Any], seconds: float) -> dict[str, Any] | None:
    with suppress(OSError, ValueError, http.client.HTTPException):
        return json.loads(_request("POST", url, json.dumps(what).encode(), seconds))
    return None


def _request(method: str, url: str, body: bytes | None, seconds: float = ANSWER_SECONDS) -> bytes:
    with _opened(url, method, body, seconds) as response:
        return response.read()


def _opened(
    url: str, method: str = "GET", body: bytes | None = None, seconds: float = ANSWER_SECONDS
) -> http.client.HTTPResponse:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=seconds)
    connection.request(method, parts.path or "/", body)
    response = connection.getresponse()
    if response.status != http.client.OK:
        raise OSError(f"{url} answers {response.status}")
    return response
