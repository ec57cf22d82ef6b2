# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the application in threads, each of which gets a whole request: a slow client occupies none."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from nometal_bmc.answers import Answer, Refused, unavailable
from nometal_bmc.cancellation import CANCELLATION, Cancellation
from nometal_bmc.faults.requests import RESET
from nometal_bmc.front import heads
from nometal_bmc.front.door import LOGGED_IN
from nometal_bmc.front.guard import MOST_BODY_BYTES
from nometal_bmc.front.streams import STREAM
from nometal_bmc.redfish.wishes import NOTED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterable
    from typing import Callable

    from nometal_bmc.faults.requests import FaultyRequests
    from nometal_bmc.front.guard import Guard

    Scope = dict[str, Any]
    Receive = Callable[[], Awaitable[dict[str, Any]]]
    Send = Callable[[dict[str, Any]], Awaitable[None]]
    Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

__all__ = ["Bridge"]

LOG = logging.getLogger(__name__)
ACCESS = logging.getLogger("nometal_bmc.access")
BODY_SECONDS = 10
READERS, WRITERS, LOGINS, CANCELS = 16, 64, 2, 2  # inserting media takes minutes, and no reader waits for it
READING = frozenset({"GET", "HEAD"})
WITHOUT_BODY = frozenset({204, 304})
LONGEST_PATH = 200
ROOT = "/redfish/v1/"
PLAIN_NAMES = {"content-type": "CONTENT_TYPE", "content-length": "CONTENT_LENGTH"}


class Bridge:
    """An ASGI application around a WSGI one."""

    def __init__(self, app: Wsgi, guard: Guard, faults: FaultyRequests) -> None:
        self._app = app
        self._guard = guard
        self._faults = faults
        self._readers = ThreadPoolExecutor(READERS, "read")
        self._writers = ThreadPoolExecutor(WRITERS, "write")
        self._logins = ThreadPoolExecutor(LOGINS, "login")
        self._cancels = ThreadPoolExecutor(CANCELS, "cancel")
        self._running: dict[Cancellation, asyncio.Task[Any] | None] = {}
        self._has_given_up = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = time.perf_counter()
        environ = _environ(scope)
        try:
            heads.check(environ)
            body = await _body(environ, receive)
            serve = partial(self._answer, note_login=scope["state"][LOGGED_IN])
            async with self._cancellable(environ, receive):
                answer = await self._faults.meet(environ, body, serve)
        except Refused as refused:
            answer = _answer_to(refused)
        except ConnectionError:
            return
        except asyncio.CancelledError:
            if not self._has_given_up:
                raise
            answer = _answer_to(_stopping())
        if STREAM in environ:
            await send({"type": "http.response.start", "status": answer.status, "headers": _encoded(answer.headers)})
            await environ[STREAM].run(receive, send)
        else:
            await _send(answer, send)
        _log(environ, answer.status, time.perf_counter() - start)

    async def _answer(self, environ: dict[str, Any], body: bytes, note_login: Callable[[], None]) -> Answer:
        """Those whose password must still be verified wait for that without occupying a thread that others need."""
        loop, pool = asyncio.get_running_loop(), self._writers
        if environ["REQUEST_METHOD"] in READING:
            pool = self._readers
        elif self._guard.is_login(environ):
            pool = self._logins
        known = self._guard.knows(environ)
        if not known and (unproven := self._guard.unproven(environ)):
            await loop.run_in_executor(self._logins, self._guard.credentials.verify, *unproven)
            known = self._guard.knows(environ)
        if known:
            note_login()  # now already, for an answer may take minutes
        return await loop.run_in_executor(pool, self._call, environ, body)

    @asynccontextmanager
    async def _cancellable(self, environ: dict[str, Any], receive: Receive) -> AsyncIterator[None]:
        """Meanwhile what is done for a request ends when its client goes away, or the service stops."""
        request = environ[CANCELLATION] = Cancellation()
        self._running[request] = asyncio.current_task()
        watching = None if environ["REQUEST_METHOD"] in READING else asyncio.create_task(self._watch(receive, request))
        try:
            yield
        finally:
            del self._running[request]
            if watching:
                watching.cancel()

    async def _watch(self, receive: Receive, request: Cancellation) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._cancel(request, unavailable("The client is gone."))

    def _cancel(self, request: Cancellation, why: Refused) -> None:
        """Whom that calls may wait for others, for which the loop has no time."""
        self._cancels.submit(request.cancel, why)

    def _call(self, environ: dict[str, Any], body: bytes) -> Answer:
        started: list[Any] = []
        environ["wsgi.input"] = io.BytesIO(body)
        try:
            output = self._app(environ, lambda status, headers, _error=None: started.extend((status, headers)))
            content = b"".join(output)
            if hasattr(output, "close"):
                output.close()
            return Answer(int(started[0][:3]), started[1], content)
        except Exception:
            LOG.exception("The application has failed")
            return _answer_to(Refused(500, "InternalError", "The service has failed; its log says why."))

    def stop(self) -> None:
        """End what can be ended, such as downloads and streams; the rest goes on until it is done, or `give_up`."""
        self._guard.streams.end()
        for request in tuple(self._running):
            self._cancel(request, _stopping())

    def give_up(self) -> None:
        """Answer all that are still running."""
        self._has_given_up = True
        for task in self._running.values():
            if task:
                task.cancel()

    def close(self) -> None:
        """Take no more requests."""
        for pool in (self._readers, self._writers, self._logins, self._cancels):
            pool.shutdown(wait=False)


def _stopping() -> Refused:
    return unavailable("The service stops before this is done. Try again in a few seconds.")


async def _body(environ: dict[str, Any], receive: Receive) -> bytes:
    """What the client sends with its request, which has an end in size and time."""
    if "CONTENT_LENGTH" not in environ and "HTTP_TRANSFER_ENCODING" not in environ:
        return b""
    if int(environ.get("CONTENT_LENGTH") or 0) > MOST_BODY_BYTES:
        raise _too_large()
    try:
        body = await asyncio.wait_for(_read(receive), BODY_SECONDS)
    except asyncio.TimeoutError:
        text = f"The body did not come within {BODY_SECONDS} seconds."
        raise Refused(408, "OperationTimeout", text, headers={"Connection": "close"}) from None
    environ["CONTENT_LENGTH"] = str(len(body))
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    return body


async def _read(receive: Receive) -> bytes:
    body, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise ConnectionError
        body += message["body"]
        if len(body) > MOST_BODY_BYTES:
            raise _too_large()
        more = message["more_body"]
    return bytes(body)


def _too_large() -> Refused:
    return Refused(413, "PayloadTooLarge", f"The body is larger than {MOST_BODY_BYTES} bytes.")


def _answer_to(refused: Refused) -> Answer:
    body = json.dumps(refused.body).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **refused.headers}
    return Answer(refused.status, list(headers.items()), body)


def _environ(scope: Scope) -> dict[str, Any]:
    environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": _routed(scope["path"]).encode().decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": scope["server"][0],
        "SERVER_PORT": str(scope["server"][1]),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": scope["client"][0],
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        RESET: scope["state"][RESET],
    }
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        if "_" not in name:  # or it would be taken for the one with a hyphen
            key = PLAIN_NAMES.get(name) or "HTTP_" + name.upper().replace("-", "_")
            environ[key] = f"{environ[key]},{value}" if key in environ else value
    return environ


def _routed(path: str) -> str:
    """Without the slash at the end, that clients write or not; Flask knows only the service root by one."""
    if path + "/" == ROOT:
        return ROOT
    return path if path == ROOT or path.endswith("//") else path.removesuffix("/")


async def _send(answer: Answer, send: Send) -> None:
    headers = _encoded(answer.headers)
    if answer.status not in WITHOUT_BODY and not any(name == b"content-length" for name, _value in headers):
        headers.append((b"content-length", str(len(answer.body)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def _encoded(headers: list[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def _log(environ: dict[str, Any], status: int, seconds: float) -> None:
    """One line; a path has no way to make it two, and what follows the question mark is left out."""
    path = environ["PATH_INFO"][:LONGEST_PATH].encode("unicode_escape").decode()
    account = environ.get("nometal_bmc.account", "-")
    method, source = environ["REQUEST_METHOD"], environ["REMOTE_ADDR"]
    noted = f": {environ[NOTED]}" if environ.get(NOTED) else ""
    ACCESS.info("%s %s %d %.0f ms %s from %s%s", method, path, status, seconds * 1000, account, source, noted)
