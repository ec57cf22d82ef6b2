"""A BMC by Redfish, found and asked as Ironic does it."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import time
from typing import Any
from urllib.parse import urlsplit

from support.stand_in.bmc import BmcFailed, BmcUnreachable

SECONDS, POWER_SECONDS = 90, 60


class Redfish:
    def __init__(self, address: str, bmc: dict[str, Any], authority: str) -> None:
        scheme, _, rest = address.partition("://")
        parts = urlsplit(f"{'http' if scheme.endswith('+http') else 'https'}://{rest}")
        self._place = (parts.hostname or "", parts.port)
        self._root = f"{parts.scheme}://{parts.netloc}"
        self._system = parts.path
        self._login = f"{bmc['username']}:{bmc['password']}"
        self._tls = _trust(bmc, authority) if parts.scheme == "https" else None

    def power(self) -> str:
        return str(self._ask("GET", self._system)["PowerState"])

    def switch(self, wanted: str) -> None:
        if self.power() != wanted:
            kind = {"On": "On", "Off": "ForceOff"}[wanted]
            self._ask("POST", f"{self._system}/Actions/ComputerSystem.Reset", {"ResetType": kind})
        deadline = time.monotonic() + POWER_SECONDS
        while self.power() != wanted:
            if time.monotonic() > deadline:
                raise BmcFailed(f"Failed to change power state to '{wanted.lower()}'.")
            time.sleep(0.1)

    def shut_down(self) -> None:
        self._ask("POST", f"{self._system}/Actions/ComputerSystem.Reset", {"ResetType": "GracefulShutdown"})

    def insert(self, url: str) -> None:
        self.eject()
        self._ask("POST", f"{self._drive()}/Actions/VirtualMedia.InsertMedia", {"Image": url, "Inserted": True})

    def eject(self) -> None:
        drive = self._drive()
        if self._ask("GET", drive).get("Inserted"):
            self._ask("POST", f"{drive}/Actions/VirtualMedia.EjectMedia", {})

    def boot(self, target: str, enabled: str) -> None:
        wish = {"BootSourceOverrideTarget": target, "BootSourceOverrideEnabled": enabled}
        self._ask("PATCH", self._system, {"Boot": wish})

    def _drive(self) -> str:
        """The system's own, or else its manager's, that takes CDs."""
        system = self._ask("GET", self._system)
        owners = [system, *(self._ask("GET", item["@odata.id"]) for item in system["Links"].get("ManagedBy", ()))]
        for owner in owners:
            if "VirtualMedia" in owner:
                for member in self._ask("GET", owner["VirtualMedia"]["@odata.id"])["Members"]:
                    if "CD" in self._ask("GET", member["@odata.id"]).get("MediaTypes", ()):
                        return str(member["@odata.id"])
        raise BmcFailed("No suitable virtual media device found.")

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        connection = self._connection()
        authorization = "Basic " + base64.b64encode(self._login.encode()).decode()
        headers = {"Authorization": authorization, "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise BmcUnreachable(self._unreachable(error)) from error
        finally:
            connection.close()
        if response.status >= http.client.BAD_REQUEST:
            raise BmcFailed(f"HTTP {method} {self._root}{path} returned code {response.status}. {_message(data)}")
        return json.loads(data) if data else {}

    def _unreachable(self, error: Exception) -> str:
        """As sushy, requests and urllib3 say it together."""
        kind = "HTTPSConnectionPool" if self._tls else "HTTPConnectionPool"
        host, port = self._place
        cause = (
            f"SSLError({error!r})"
            if isinstance(error, ssl.SSLError)
            else f"NewConnectionError('Failed to establish a new connection: {error}')"
        )
        why = f"{kind}(host='{host}', port={port}): Max retries exceeded with url: /redfish/v1/ (Caused by {cause})"
        return f"Unable to connect to {self._root}/redfish/v1/. Error: {why}"

    def _connection(self) -> http.client.HTTPConnection:
        if self._tls:
            return http.client.HTTPSConnection(*self._place, timeout=SECONDS, context=self._tls)
        return http.client.HTTPConnection(*self._place, timeout=SECONDS)


def _trust(bmc: dict[str, Any], authority: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if bmc.get("disableCertificateVerification"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authority:
        context.load_verify_locations(cadata=authority)
    else:
        context.load_default_certs()
    return context


def _message(data: bytes) -> str:
    try:
        error = json.loads(data)["error"]
        extended = error["@Message.ExtendedInfo"]
        return f"{error['code']}: {error['message']} Extended information: {extended}"
    except (ValueError, KeyError, IndexError, TypeError):
        return ""
