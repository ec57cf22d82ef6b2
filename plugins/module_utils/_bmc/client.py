# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of a lab's BMC service, as any other, for many systems at once."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.credentials import Login
    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.endpoint import Endpoint

SECONDS = 10
AT_ONCE = 4
OK, NO_CONTENT = 200, 204
UNAUTHORIZED, TOO_MANY = 401, 429
"""The latter where a login was refused too often."""
LOGIN_REFUSED, TIMEOUT = "login-refused", "timeout"


@dataclass(frozen=True)
class Answer:
    """Of a request that was answered, its status and content; of another, the trouble."""

    status: int = 0
    body: dict[str, Any] = field(default_factory=dict)
    trouble: str = ""
    failure: str = ""
    """What kind of trouble it is, where that matters."""

    @property
    def is_ok(self) -> bool:
        return self.status in (OK, NO_CONTENT)


class Client:
    """Keeps one connection for each of its threads."""

    def __init__(self, endpoint: Endpoint, ca: Path | None, login: Login, seconds: float = SECONDS) -> None:
        self._endpoint = endpoint
        self._seconds = seconds
        self._tls = None if ca is None else ssl.create_default_context(cafile=str(ca))
        secret = base64.b64encode(f"{login.username}:{login.password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {secret}", "Accept": "application/json"}
        self._own = threading.local()

    def get_all(self, paths: Iterable[str]) -> list[Answer]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(self.get, paths))

    def post_all(self, paths: Iterable[str], body: Mapping[str, Any]) -> list[Answer]:
        """The same to each."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda path: self._ask("POST", path, body), paths))

    def get(self, path: str) -> Answer:
        return self._ask("GET", path)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        connection = self._connection()
        headers = {**self._headers, **({} if body is None else {"Content-Type": "application/json"})}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            return _answer(response.status, response.read())
        except (OSError, http.client.HTTPException) as error:
            connection.close()  # the next request opens it again
            # Python 3.9 has a class of its own for time-outs of sockets.
            failure = TIMEOUT if isinstance(error, (TimeoutError, socket.timeout)) else ""
            return Answer(trouble=f"{type(error).__name__}: {error}", failure=failure)

    def _connection(self) -> http.client.HTTPConnection:
        if not hasattr(self._own, "connection"):
            self._own.connection = self._new_connection()
        return self._own.connection

    def _new_connection(self) -> http.client.HTTPConnection:
        address, port = self._endpoint.address, self._endpoint.port
        if self._tls is None:
            return http.client.HTTPConnection(address, port, timeout=self._seconds)
        return http.client.HTTPSConnection(address, port, timeout=self._seconds, context=self._tls)


def _answer(status: int, data: bytes) -> Answer:
    failure = LOGIN_REFUSED if status in (UNAUTHORIZED, TOO_MANY) else ""
    if status == NO_CONTENT:
        return Answer(status)
    try:
        body = json.loads(data)
    except ValueError:
        return Answer(status, {}, f"{status}, and what it says is not JSON", failure)
    if status != OK:
        return Answer(status, {}, f"{status}: {_reason(body)}", failure)
    return Answer(status, body)


def _reason(body: Any) -> str:
    try:
        return str(body["error"]["@Message.ExtendedInfo"][0]["Message"])
    except (KeyError, TypeError, IndexError):
        return json.dumps(body)[:200]
