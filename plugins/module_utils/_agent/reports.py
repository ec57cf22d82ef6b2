# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bootstrap VM's web server: the nodes' image, and the desk where nodes report."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .letter import LETTER_BYTES, LETTER_MARK, packed

if TYPE_CHECKING:
    from collections.abc import Callable

    Answer = Callable[[str, str, Any], "dict[str, Any] | None"]

BLOCK = 256 * 1024
TOGETHER_SECONDS = 50
"""Less than a node waits for an answer, which grows with the patience of the rehearsal as this does."""


class Reports:
    """What nodes have said, by the node's UUID and where they said it."""

    def __init__(self, uuids: list[str], together: float = TOGETHER_SECONDS) -> None:
        self._expected = set(uuids)
        self._together = together
        self._lost: dict[str, str] = {}
        self.up: set[str] = set()
        """Nodes that have been started from their medium."""
        self._looked: set[str] = set()
        self._said: dict[tuple[str, str], dict[str, Any]] = {}
        self._news = threading.Condition()

    def add(self, uuid: str, place: str, what: dict[str, Any]) -> None:
        with self._news:
            self._said[uuid, place] = what
            if place == "seen":
                self._looked.add(uuid)
            self._news.notify_all()

    def wait(self, uuid: str, places: tuple[str, ...], seconds: float) -> tuple[str, dict[str, Any] | None]:
        """At which of the places it has been heard, and what. Each report is handed out once. Empty: it was not."""

        def come() -> str:
            return next((place for place in places if (uuid, place) in self._said), "")

        with self._news:
            self._news.wait_for(lambda: come() or uuid in self._lost, seconds)
            came = come()
            return (came, self._said.pop((uuid, came))) if came else ("", None)

    def lose(self, uuid: str, why: str) -> None:
        """What is to be heard of a node will not come: who waits for it waits no more."""
        with self._news:
            self._lost[uuid] = why
            self._news.notify_all()

    def why_lost(self, uuid: str) -> str:
        return self._lost.get(uuid, "")

    def gather(self, uuid: str) -> None:
        """Counts a node among those that are up, and keeps it a while until all are."""
        with self._news:
            self.up.add(uuid)
            self._news.notify_all()
            self._news.wait_for(lambda: self.up >= self._expected, self._together)

    def wait_for_lookers(self) -> None:
        """Until no node that is up is still looking for others, which may be switched off then."""
        with self._news:
            self._news.wait_for(lambda: self._looked >= self.up & self._expected, self._together)

    def give_up(self, uuid: str) -> None:
        """A node that is not to be waited for any longer."""
        with self._news:
            self._expected.discard(uuid)
            self._news.notify_all()


class Image:
    """The medium that this VM was started from, with a letter to its readers in the place that is kept for one."""

    def __init__(self, device: str, letter: dict[str, Any]) -> None:
        self._device = device
        with open(device, "rb") as file:  # noqa: PTH123 - a device
            self.size = file.seek(0, os.SEEK_END)
            self._place = _place_of_letter(file)
        self._letter = packed(letter)

    def blocks(self, start: int = 0) -> Any:
        with open(self._device, "rb") as file:  # noqa: PTH123 - a device
            file.seek(start)
            place = start
            while block := file.read(min(BLOCK, self.size - place)):
                yield self._with_letter(block, place)
                place += len(block)

    def _with_letter(self, block: bytes, place: int) -> bytes:
        begin, end = max(place, self._place), min(place + len(block), self._place + LETTER_BYTES)
        if begin >= end:
            return block
        part = self._letter[begin - self._place : end - self._place]
        return block[: begin - place] + part + block[end - place :]


def _place_of_letter(file: Any) -> int:
    file.seek(0)
    place = 0
    while head := file.read(BLOCK):
        found = head.find(LETTER_MARK)  # in the first sector of a file, so that no two blocks share it
        if found >= 0:
            return place + found
        place += len(head)
    raise ValueError("The medium has no place for a letter.")


class Server(ThreadingHTTPServer):
    """Listens on all addresses: the virtual ones come later."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, answer: Answer, image: Image, path: str, files: Path | None = None) -> None:
        self.address_family = socket.AF_INET6
        self.answer, self.image, self.path, self.files = answer, image, path, files
        super().__init__(("::", port), Desk)

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A node that goes away in the middle is nothing to write home about."""


class Desk(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        is_image = self.path == self.server.path
        self._begin(200 if is_image else 404, self.server.image.size if is_image else 0)

    def do_GET(self) -> None:
        if self.path == self.server.path:
            self._begin(200, self.server.image.size)
            for block in self.server.image.blocks():
                self.wfile.write(block)
        elif file := self._file():
            self._begin(200, file.stat().st_size)
            with file.open("rb") as source:
                shutil.copyfileobj(source, self.wfile, BLOCK)
        else:
            self._answer(self.server.answer("GET", self.path, None))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer(self.server.answer("POST", self.path, json.loads(body)))

    def log_message(self, *_words: Any) -> None:
        """The console is for what matters."""

    def _file(self) -> Path | None:
        """What whoever boots from the network asks for."""
        if self.server.files is None or self.path == "/" or ".." in self.path:
            return None
        file = self.server.files / self.path.lstrip("/")
        return file if file.is_file() else None

    def _begin(self, status: int, size: int, kind: str = "application/octet-stream") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(size))
        self.send_header("Content-Type", kind)
        self.end_headers()

    def _answer(self, answer: dict[str, Any] | None) -> None:
        data = json.dumps(answer or {}).encode()
        self._begin(404 if answer is None else 200, len(data), "application/json")
        self.wfile.write(data)
