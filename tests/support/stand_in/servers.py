"""What answers at the API VIP: the API server, the image server and Ironic."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Callable
from urllib.parse import urlsplit

from support.stand_in import iso, pki, release, scenario, serving
from support.stand_in.kubernetes import server as kubernetes
from support.stand_in.kubernetes.audit import Audit
from support.stand_in.kubernetes.store import Store
from support.stand_in.lab import Lab
from support.stand_in.world import World

API, MEDIA, MEDIA_BY_TLS, IRONIC = 6443, 6180, 6183, 6385
Answer = tuple[int, str, bytes]
NOT_FOUND: Answer = (http.client.NOT_FOUND, "text/plain", b"404 page not found\n")


def api_servers(lab: Lab, store: Store, own: pki.Pair, clients: str) -> list[kubernetes.Server]:
    """For each of the addresses, with one audit log; they are to be started."""
    play = scenario.read(lab.name)
    audit = Audit(Path(play.audit) if play.audit else None)
    store.removed = audit.note_removal
    version = release.kubernetes(lab.version)
    found = [
        kubernetes.Server(store, one, own, clients, port=API, version=version, audit=audit) for one in lab.api_vips
    ]
    for api in found:
        api.look = lambda: kubernetes.Switches(**scenario.read(lab.name).api)
    return found


def serve_media(address: str, own: pki.Pair | None) -> None:
    image = iso.image()

    def get(handler: Handler) -> Answer:
        is_one = re.fullmatch(r"/images/[^/]+\.iso", urlsplit(handler.path).path)
        return (http.client.OK, "application/octet-stream", image) if is_one else NOT_FOUND

    _serve(address, MEDIA_BY_TLS if own else MEDIA, get, serving.context(own) if own else None)


def serve_ironic(world: World, address: str) -> None:
    """As terraform uses it: GET for the states, POST /v1/nodes/NAME to have one managed, or NAME/active deployed."""

    def answer(handler: Handler) -> Answer:
        _, _, _, name, *rest = [*handler.path.split("/"), "", "", ""]
        if handler.command == "POST" and name in world.hosts:
            world.register(name)
            if rest and rest[0] == "active":
                world.hosts[name].deploy.set()
        return _json({name: host.state for name, host in world.hosts.items()})

    _serve(address, IRONIC, answer, None)


class Handler(BaseHTTPRequestHandler):
    answer: Callable[[Handler], Answer]
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        status, kind, body = type(self).answer(self)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_POST = do_GET  # noqa: N815 - the names that the server asks for

    def log_message(self, *_arguments: Any) -> None:
        """It has nowhere to tell it."""


def _serve(address: str, port: int, answer: Callable[[Handler], Answer], tls: ssl.SSLContext | None) -> None:
    server = serving.server(address, port, type("Own", (Handler,), {"answer": staticmethod(answer)}), tls)
    threading.Thread(target=server.serve_forever, name=f"port-{port}", daemon=True).start()


def _json(body: Any) -> Answer:
    return http.client.OK, "application/json", json.dumps(body).encode()
