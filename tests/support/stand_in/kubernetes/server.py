"""The API server on a port.

with Server(store, "127.0.0.1", pair, authority) as server:
    server.url, server.audit.changes()
    server.switches.unavailable = True
"""

from __future__ import annotations

import http.client
import json
import select
import socket
import struct
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from support.stand_in import serving
from support.stand_in.kubernetes import errors, users
from support.stand_in.kubernetes.api import JSON, Answer, Api
from support.stand_in.kubernetes.audit import Audit, Entry
from support.stand_in.kubernetes.requests import Request
from support.stand_in.kubernetes.users import User

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Callable

    from support.stand_in import pki
    from support.stand_in.kubernetes.store import Store

VERSION = "1.33.4"
IDLE_SECONDS = 60
SECRETS = "secrets"
NAMESPACES = ("default", "kube-system", "kube-node-lease", "openshift-etcd", "openshift-machine-api")


@dataclass
class Switches:
    """What is wrong with the server."""

    refuse: bool = False
    """Connections are reset. What `stop` leaves refuses them."""
    unavailable: bool = False
    """All is answered by 503."""
    delay: float = 0
    """Seconds before each answer."""


class Server:
    """Administrators and nodes show certificates that the authority `clients` has signed."""

    def __init__(  # noqa: PLR0913 - what a server has
        self,
        store: Store,
        address: str,
        own: pki.Pair,
        clients: str,
        *,
        port: int = 0,
        version: str = VERSION,
        audit: Audit | None = None,
        look: Callable[[], Switches] | None = None,
    ) -> None:
        self.store = store
        _add_namespaces(store)
        self.address, self.port = address, port
        self.audit = audit or Audit()
        self.switches = Switches()
        """Used unless `look` finds others."""
        self.look = look or (lambda: self.switches)
        self.api = Api(store, version)
        self._tls = serving.context(own, clients)
        self._server: serving.Server | None = None
        self._connections: set[socket.socket] = set()

    @property
    def url(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"https://{host}:{self.port}"

    def start(self) -> None:
        """After `stop`, on the same port again."""
        handler = type("Own", (Handler,), {"owner": self})
        self._server = serving.server(self.address, self.port, handler, self._tls)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="kube-apiserver", daemon=True).start()

    def stop(self) -> None:
        """Connections are refused, and those that there are end."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        for connection in list(self._connections):
            _end(connection)

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.store.close()
        self.stop()

    def joined(self, connection: socket.socket) -> None:
        self._connections.add(connection)

    def left(self, connection: socket.socket) -> None:
        self._connections.discard(connection)

    def note(self, request: Request, code: int) -> None:
        target, kind = request.target, ""
        body: Any = None
        if target:
            kind = "/".join(filter(None, (target.kind.name, target.subresource)))
            if target.kind.name != SECRETS and request.body:
                body = _readable(request)
        namespace, name = (target.namespace, target.name) if target else ("", "")
        user = request.user.name if request.user else ""
        manager = request.manager
        made = Entry(time.time(), request.verb, request.path, kind, namespace, name, user, manager, int(code), body)
        self.audit.note(made)


def _add_namespaces(store: Store) -> None:
    there = {item["metadata"]["name"] for item in store.list("namespaces")}
    for name in NAMESPACES:
        if name not in there:
            store.create("namespaces", {"metadata": {"name": name}, "status": {"phase": "Active"}})


def _readable(request: Request) -> Any:
    try:
        return request.content()
    except errors.ApiError:
        return None


def _end(connection: socket.socket) -> None:
    """At once, and so that the other side notices."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # it has gone by itself
        return


class Handler(BaseHTTPRequestHandler):
    owner: Server
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS

    def setup(self) -> None:
        super().setup()
        self.owner.joined(self.connection)

    def finish(self) -> None:
        self.owner.left(self.connection)
        super().finish()

    def do_GET(self) -> None:
        body = self._body()
        user = User.of(self.connection.getpeercert())
        request = Request(self.command, self.path, dict(self.headers), body, user)
        switches = self.owner.look()
        if switches.refuse:
            self.close_connection = True
            _end(self.connection)
            return
        time.sleep(switches.delay)
        try:
            if switches.unavailable:
                raise errors.ServiceUnavailable("the server is currently unable to handle the request")
            if request.verb == "watch" and request.target and request.user:
                self._watch(request)
                return
            self._send(request, self.owner.api.answer(request))
        except errors.ApiError as error:
            self._send(request, Answer(error.code, error.status()))
        except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
            failed = errors.ApiError(f"Internal error occurred: {error!r}")  # of the stand-in, so that it is seen
            self._send(request, Answer(failed.code, failed.status()))

    do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_GET  # noqa: N815 - the names that the server asks for

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():  # trailers
            pass
        return found

    def _send(self, request: Request, answer: Answer) -> None:
        self.owner.note(request, answer.code)
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.code)
        self.send_header("Content-Type", answer.media_type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _watch(self, request: Request) -> None:
        """Lines of JSON, until its time is over or the client has gone."""
        target, user = request.target, request.user
        if target is None or user is None:
            return
        wanted = request.attributes(target)
        if not users.may(user, wanted):
            raise errors.Forbidden(users.refusal(user, wanted), errors.of(target.kind, target.name))
        seconds = int(request.query.get("timeoutSeconds") or 0)
        deadline = time.monotonic() + seconds if seconds else None
        events = self.owner.api.watch(request, target)
        self.owner.note(request, http.client.OK)
        self.send_response(http.client.OK)
        self.send_header("Content-Type", JSON)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in _until_too_old(events):
            if event is not None:
                self._chunk(json.dumps(event).encode() + b"\n")
            if self._has_gone() or (deadline is not None and time.monotonic() > deadline):
                break
        self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _has_gone(self) -> bool:
        """Whoever watches sends nothing more, so there is only an end to read."""
        return bool(select.select([self.connection], [], [], 0)[0]) or self.owner.look().refuse

    def log_message(self, *_arguments: Any) -> None:
        """The audit log has it."""


def _until_too_old(events: Iterator[dict[str, Any] | None]) -> Iterator[dict[str, Any] | None]:
    try:
        yield from events
    except errors.ApiError as error:
        yield {"type": "ERROR", "object": error.status()}
