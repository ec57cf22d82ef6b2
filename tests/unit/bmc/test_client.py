# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kind of trouble a client of the BMC service has, as programs are told it."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import client
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.credentials import Login
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def answering(status: int, body: bytes) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_words: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def asked(port: int) -> client.Answer:
    return client.Client(Endpoint("127.0.0.1", port), None, Login("operator", "secret")).get("/redfish/v1")


@pytest.mark.parametrize(
    ("status", "body", "failure", "trouble"),
    [
        (200, b"{}", "", ""),
        (401, b"{}", "login-refused", "401: {}"),
        (429, b"slow down", "login-refused", "429, and what it says is not JSON"),
        (503, b"{}", "", "503: {}"),
    ],
)
def test_answers(status: int, body: bytes, failure: str, trouble: str) -> None:
    with answering(status, body) as port:
        answer = asked(port)
    assert (answer.status, answer.failure, answer.trouble) == (status, failure, trouble)


def test_no_answer_in_time_and_none_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "SECONDS", 0.1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        assert asked(port).failure == "timeout"
    answer = asked(port)
    assert (answer.failure, "refused" in answer.trouble) == ("", True)
