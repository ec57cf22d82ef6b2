"""A client of the cluster's API, from a kubeconfig."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from support.stand_in import documents, pki, serving


class Unreachable(Exception):  # noqa: N818 - reads as what it is
    """As the real client words it."""


class Api:
    def __init__(self, kubeconfig: Path, seconds: float = 10) -> None:
        found = documents.load(kubeconfig.read_text(encoding="utf-8"))
        cluster, user = found["clusters"][0]["cluster"], found["users"][0]["user"]
        self.server = str(cluster["server"])
        self._seconds = seconds
        self._address = cluster.get("extensions", [{"extension": {}}])[0]["extension"].get("address", "")
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._tls.load_verify_locations(cadata=_plain(cluster["certificate-authority-data"]))
        own = pki.Pair(_plain(user["client-certificate-data"]), _plain(user["client-key-data"]))
        serving.load(self._tls, own)

    def get(self, path: str) -> tuple[int, Any]:
        return self.send("GET", path)

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        parts = urlsplit(self.server)
        host, port = parts.hostname or "", parts.port or 443
        connection = http.client.HTTPConnection(host, port)
        try:
            plain = socket.create_connection((self._find(host), port), self._seconds)
            connection.sock = self._tls.wrap_socket(plain, server_hostname=host)
            headers = {} if body is None else {"Content-Type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read() or "null")
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unreachable(f"dial tcp {self._find(host)}:{port}: {_worded(error)}") from error
        finally:
            connection.close()

    def _find(self, host: str) -> str:
        """By name, or where no name server knows it by the address that the stand-in has noted."""
        try:
            return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
        except OSError:
            return self._address or host


def _plain(text: str) -> str:
    return base64.b64decode(text).decode()


def _worded(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connect: connection refused"
    if isinstance(error, ssl.SSLCertVerificationError):
        return "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    return "i/o timeout" if isinstance(error, TimeoutError) else str(error)
