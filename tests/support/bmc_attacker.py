"""What somebody on the machine network tries on the BMCs of a lab. Runs on the lab host, in a network namespace that
stands for the attacker's machine, and prints what came of it as JSON. He owns one system of the lab.

python3 bmc_attacker.py attack|crowd '{"address": ..., "port": ..., "uuid": of his system, "username": ...,
    "password": ..., "others": [names and UUIDs of VMs that are none of his business]}'
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import sys
import time
from base64 import b64encode
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

METHODS = ("GET", "PATCH", "POST", "PUT", "DELETE")
DETOURS = (
    "/redfish/v1/Systems/../../../../../../etc/passwd",
    "/redfish/v1/Systems/%2e%2e%2f%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "/redfish/v1/Systems/..%5c..%5cetc%5cpasswd",
    "//etc/passwd",
    "/static/../../etc/passwd",
    "/redfish/v1/Registries/../../../etc/passwd",
)
BAD_MEDIA = (
    "file:///etc/passwd",
    "/etc/passwd",
    "http:///etc/passwd",
    "ftp://192.0.2.1/image.iso",
    "gopher://192.0.2.1/",
    "http://127.0.0.1:1/../../../etc/shadow",
    "http://user\r\nHost: x@192.0.2.1/a.iso",
)
CROWD, CROWD_IS_THERE, CROWD_MAY_GO = 200, "/run/crowd", "/run/crowd-may-go"
CHUNK = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
TEN_GIB = 10 << 30


class Attacker:
    def __init__(self, plan: dict[str, Any]) -> None:
        self._plan = plan
        self._answers: list[bytes] = []
        self._context = ssl.create_default_context()
        self._context.check_hostname, self._context.verify_mode = False, ssl.CERT_NONE
        self._login = _basic(plan["username"], plan["password"])

    def attack(self) -> dict[str, Any]:
        paths = self._paths()
        wrong = [_basic(self._plan["username"], "wrong"), _basic("root", "calvin"), "Bearer x", "Basic !"]
        others = [path.replace(self._plan["uuid"], other) for path in paths for other in self._plan["others"]]
        return {
            "paths": len(paths),
            "without a login": self._statuses(paths, None),
            "with a wrong one": sorted({self._ask("GET", paths[0], login)[0] for login in wrong}),
            "systems of others": self._statuses(others, self._login),
            "detours": self._statuses(DETOURS, self._login),
            "files as media": sorted({self._insert(paths, url) for url in BAD_MEDIA}),
            "MiB of an endless body": self._endless_body(paths[0]),
            "secrets or tracebacks": any(b"root:" in answer or b"Traceback" in answer for answer in self._answers),
        }

    def crowd(self) -> None:
        """Connections that never say a whole word, held until told: half of them before TLS, half after it."""
        with ExitStack() as stack:
            for number in range(CROWD):
                with suppress(OSError):
                    connection = stack.enter_context(self._connect(tls=bool(number % 2)))
                    connection.sendall(b"GET /redfish/v1/ HTTP/1.1\r\nHost: x\r\nX-Slow: ")
            Path(CROWD_IS_THERE).touch()
            while not Path(CROWD_MAY_GO).exists():
                time.sleep(0.05)
            Path(CROWD_MAY_GO).unlink()

    def _paths(self) -> list[str]:
        """Of his own system, as its documents name them: to read, and to act on."""
        found, left = set(), [f"/redfish/v1/Systems/{self._plan['uuid']}", f"/redfish/v1/Managers/{self._plan['uuid']}"]
        while left:
            path = left.pop()
            found.add(path)
            answer = self._ask("GET", path, self._login)[1].decode()
            named = re.findall(r'"(?:@odata\.id|target)": *"([^"#]+)', answer)
            left += [name for name in named if self._plan["uuid"] in name and name not in found]
        return sorted(found)

    def _statuses(self, paths: Iterable[str], login: str | None) -> list[int]:
        return sorted({self._ask(method, path, login, {})[0] for path in paths for method in METHODS})

    def _insert(self, paths: list[str], url: str) -> int:
        [action] = [path for path in paths if path.endswith("VirtualMedia.InsertMedia")]
        return self._ask("POST", action, self._login, {"Image": url})[0]

    def _endless_body(self, path: str) -> int:
        with self._connect(tls=True) as connection:
            head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {self._login}\r\n"
            connection.sendall(head.encode() + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
            sent = 0
            with suppress(OSError):
                while sent < TEN_GIB:
                    connection.sendall(CHUNK)
                    sent += len(CHUNK)
            return sent >> 20

    def _connect(self, *, tls: bool) -> socket.socket:
        plain = socket.create_connection((self._plan["address"], self._plan["port"]), timeout=60)
        return self._context.wrap_socket(plain) if tls else plain

    def _ask(self, method: str, path: str, login: str | None, body: Any = None) -> tuple[int, bytes]:
        connection = http.client.HTTPSConnection(
            self._plan["address"], self._plan["port"], timeout=60, context=self._context
        )
        headers = {"Authorization": login} if login else {}
        text = None if body is None or method in ("GET", "DELETE") else json.dumps(body)
        try:
            connection.request(method, path, text, {**headers, "Content-Type": "application/json"})
            response = connection.getresponse()
            self._answers.append(response.read())
            return response.status, self._answers[-1]
        finally:
            connection.close()


def _basic(name: str, password: str) -> str:
    return "Basic " + b64encode(f"{name}:{password}".encode()).decode()


if __name__ == "__main__":
    attacker = Attacker(json.loads(sys.argv[2]))
    json.dump(getattr(attacker, sys.argv[1])(), sys.stdout)
