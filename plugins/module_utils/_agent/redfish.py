# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's BMC by Redfish, asked as metal3 asks it."""

from __future__ import annotations

import base64
import errno
import http.client
import json
import socket
import ssl
import time
from typing import Any
from urllib.parse import urlsplit

CONNECT_SECONDS = 5
SECONDS = 90
"""The answer to an inserted medium waits for its download."""
POWER_SECONDS = 30
ROOT = "/redfish/v1/"


CERTIFICATE, SILENT, NO_ROOM, NOTHING_HEARD = "certificate", "silent", "no-room", "nothing-heard"
"""Failures of which the host may know the cause."""
NOT_REACHED = (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ETIMEDOUT, errno.EACCES, errno.EPERM)


class BmcFailed(Exception):  # noqa: N818 - reads as a sentence
    """It did not do what it was asked for, for this reason."""

    def __init__(self, said: str, failure: str = "") -> None:
        super().__init__(said)
        self.failure = failure


class NotNow(BmcFailed):
    """It was not reached, or is busy: asked once more, it may do it."""


class Redfish:
    def __init__(self, bmc: dict[str, Any], medium_url: str) -> None:
        parts = urlsplit(bmc["url"])
        self._place = (parts.hostname or "", parts.port)
        self._system = parts.path
        self._tls = _trust(bmc["ca"]) if parts.scheme == "https" else None
        self._login = (bmc["username"], bmc["password"])
        self._medium_url = medium_url
        self._target = bmc["boot"]
        self._mode = {"uefi": "UEFI", "bios": "Legacy"}[bmc["mode"]]
        self._found: dict[str, Any] = {}

    def answers(self) -> str:
        status, body = self._ask("GET", ROOT, login=None)
        _require(status == http.client.OK, f"the service root answers {status}")
        return str(body.get("RedfishVersion", ""))

    def lets_in(self) -> str:
        status, body = self._ask("GET", self._system)
        _require(status == http.client.OK, f"{status} {_message(body)}")
        self._found = self._found or body.get("Boot", {})
        return str(body.get("Name", ""))

    def refuses_strangers(self) -> str:
        status, _body = self._ask("GET", self._system, login=(self._login[0], "not the password"))
        _require(status == http.client.UNAUTHORIZED, f"a wrong password is answered with {status}")
        return "401"

    def hides(self, path: str) -> str:
        status, _body = self._ask("GET", path)
        _require(status == http.client.NOT_FOUND, f"{path} is answered with {status}")
        return "404"

    def switch_off(self) -> str:
        if self._power() != "Off":
            self._do("POST", f"{self._system}/Actions/ComputerSystem.Reset", {"ResetType": "ForceOff"})
        return self._becomes("Off")

    def switch_on(self) -> str:
        self._do("POST", f"{self._system}/Actions/ComputerSystem.Reset", {"ResetType": "On"})
        return self._becomes("On")

    def insert(self) -> str:
        if self._target == "Cd":
            self._do("POST", f"{self._drive}/Actions/VirtualMedia.EjectMedia", {})
            self._do("POST", f"{self._drive}/Actions/VirtualMedia.InsertMedia", {"Image": self._medium_url})
        return self._medium_url

    def boot_from_medium(self) -> str:
        return self._override("Once", self._target)

    def eject(self) -> str:
        if self._target == "Cd":
            self._do("POST", f"{self._drive}/Actions/VirtualMedia.EjectMedia", {})
            status, body = self._ask("GET", self._drive)
            _require(
                status == http.client.OK and not body.get("Inserted"), "the drive still says that it holds a medium"
            )
        return ""

    def boot_from_disk(self) -> str:
        return self._override("Continuous", "Hdd")

    def forget_overrides(self) -> str:
        """Whatever was wished for before is wished for again."""
        enabled = self._found.get("BootSourceOverrideEnabled", "Disabled")
        if enabled == "Disabled":
            self._do("PATCH", self._system, {"Boot": {"BootSourceOverrideEnabled": "Disabled"}})
            return ""
        return self._override(enabled, self._found["BootSourceOverrideTarget"])

    def medium(self) -> str:
        """The address of what is in the drive; empty when nothing is."""
        status, body = self._ask("GET", self._drive)
        _require(status == http.client.OK, f"{status} {_message(body)}")
        return str(body.get("Image") or "")

    @property
    def _drive(self) -> str:
        return f"{self._system}/VirtualMedia/Cd"

    def _override(self, enabled: str, target: str) -> str:
        wish = {"BootSourceOverrideEnabled": enabled, "BootSourceOverrideTarget": target}
        self._do("PATCH", self._system, {"Boot": {**wish, "BootSourceOverrideMode": self._mode}})
        return f"{target} ({enabled})"

    def _power(self) -> str:
        status, body = self._ask("GET", self._system)
        _require(status == http.client.OK, f"{status} {_message(body)}")
        return str(body.get("PowerState"))

    def _becomes(self, wanted: str) -> str:
        deadline = time.monotonic() + POWER_SECONDS
        while (power := self._power()) != wanted:
            _require(time.monotonic() < deadline, f"its power is {power} after {POWER_SECONDS} s")
            time.sleep(0.3)
        return wanted

    def _do(self, method: str, path: str, body: dict[str, Any]) -> None:
        status, answer = self._ask(method, path, body)
        failure = NO_ROOM if status == http.client.INSUFFICIENT_STORAGE else ""
        said = f"{method} {path} is answered with {status} {_message(answer)}"
        _require(status < http.client.BAD_REQUEST, said, failure)

    def _ask(self, method: str, path: str, body: Any = None, login: Any = ...) -> tuple[int, dict[str, Any]]:
        connection = self._connection()
        headers = {"Accept": "application/json"}
        name, password = (self._login if login is ... else login) or ("", "")
        if name:
            headers["Authorization"] = "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.connect()
            connection.sock.settimeout(SECONDS)
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            said = f"{self._place[0]} port {self._place[1]}: {error or type(error).__name__}"
            raise NotNow(said, _failure_of(error)) from error
        finally:
            connection.close()
        if response.status == http.client.SERVICE_UNAVAILABLE:
            raise NotNow(f"{method} {path} is answered with {response.status} {_message(_parsed(data))}")
        return response.status, _parsed(data)

    def _connection(self) -> http.client.HTTPConnection:
        if self._tls:
            return http.client.HTTPSConnection(*self._place, timeout=CONNECT_SECONDS, context=self._tls)
        return http.client.HTTPConnection(*self._place, timeout=CONNECT_SECONDS)


def _trust(authority: str) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority)


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        return json.loads(data)
    except ValueError:
        return {}


def _message(body: dict[str, Any]) -> str:
    try:
        return str(body["error"]["@Message.ExtendedInfo"][0]["Message"])
    except (KeyError, IndexError, TypeError):
        return ""


def _failure_of(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return CERTIFICATE
    # Python 3.9 has a class of its own for time-outs of sockets.
    is_late = isinstance(error, (TimeoutError, socket.timeout))
    return SILENT if is_late or getattr(error, "errno", None) in NOT_REACHED else ""


def _require(condition: bool, trouble: str, failure: str = "") -> None:
    if not condition:
        raise BmcFailed(trouble, failure)
