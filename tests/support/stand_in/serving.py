"""Servers of HTTP with or without TLS, a thread for each connection."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from support.stand_in import pki

HANDSHAKE_SECONDS = 10


class Server(ThreadingHTTPServer):
    daemon_threads = True
    tls: ssl.SSLContext | None = None

    def finish_request(self, request: Any, client_address: Any) -> None:
        """The handshake is the request's thread's: whoever does not shake hands keeps nobody waiting."""
        if not self.tls:
            super().finish_request(request, client_address)
            return
        request.settimeout(HANDSHAKE_SECONDS)
        with self.tls.wrap_socket(request, server_side=True) as secure:
            super().finish_request(secure, client_address)

    def handle_error(self, *_arguments: Any) -> None:
        """A client that went away."""


class ServerV6(Server):
    address_family = socket.AF_INET6


def server(address: str, port: int, handler: type[BaseHTTPRequestHandler], tls: ssl.SSLContext | None) -> Server:
    made = (ServerV6 if ipaddress.ip_address(address).version == 6 else Server)((address, port), handler)
    made.tls = tls
    return made


def context(own: pki.Pair, clients: str = "") -> ssl.SSLContext:
    """`clients`: the authority of those who show a certificate."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load(made, own)
    if clients:
        made.load_verify_locations(cadata=clients)
        made.verify_mode = ssl.CERT_OPTIONAL
    return made


def load(made: ssl.SSLContext, own: pki.Pair) -> None:
    """ssl takes a key from a file alone."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(own.certificate + own.key)
        file.flush()
        made.load_cert_chain(Path(file.name))
