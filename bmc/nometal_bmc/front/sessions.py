# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions: a login that lasts until it is ended, unused for too long, or its account changes."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import flask

from nometal_bmc.answers import Refused, not_found
from nometal_bmc.redfish.list_views import ROOT, collection
from nometal_bmc.redfish.wishes import Kinds, checked

if TYPE_CHECKING:
    from collections.abc import Callable

    from nometal_bmc.config.reading import CurrentConfig
    from nometal_bmc.config.settings import Account
    from nometal_bmc.front.credentials import Credentials

__all__ = ["SESSIONS_PATH", "Session", "Sessions", "add_routes"]

SERVICE_PATH = f"{ROOT}/SessionService"
SESSIONS_PATH = f"{SERVICE_PATH}/Sessions"
TIMEOUT_SECONDS = 30 * 60
MOST_OF_AN_ACCOUNT = 64
LOGIN: Kinds = {"UserName": (str,), "Password": (str,)}


@dataclass
class Session:
    """What is kept of a session; its token is only with the client."""

    account: Account
    used: float
    id: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def body(self) -> dict[str, Any]:
        return {
            "@odata.type": "#Session.v1_1_0.Session",
            "@odata.id": f"{SESSIONS_PATH}/{self.id}",
            "Id": self.id,
            "Name": "User Session",
            "UserName": self.account.name,
        }


class Sessions:
    """All sessions, by the hash of their token. When an account has too many, the one unused for longest ends."""

    def __init__(self, current: CurrentConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self._current = current
        self._clock = clock
        self._lock = threading.Lock()
        self._by_token: dict[bytes, Session] = {}

    def create(self, account: Account) -> tuple[Session, str]:
        """The session and its token."""
        token, session = secrets.token_urlsafe(32), Session(account, self._clock())
        with self._lock:
            self._forget_ended()
            own = [item for item in self._by_token.items() if item[1].account.name == account.name]
            if len(own) >= MOST_OF_AN_ACCOUNT:
                del self._by_token[min(own, key=lambda item: item[1].used)[0]]
            self._by_token[_hash(token)] = session
        return session, token

    def account(self, token: str) -> Account | None:
        """Whose token it is, as configured now; asking counts as use."""
        session = self._by_token.get(_hash(token))
        if session is None or not self._lives(session):
            return None
        session.used = self._clock()
        return self._current.config.account(session.account.name)

    def of(self, account: Account) -> list[Session]:
        """Those that it may see and end: its own, or all if it commands all systems."""
        with self._lock:
            self._forget_ended()
            everybodys = account.systems is None
            return [
                session for session in self._by_token.values() if everybodys or session.account.name == account.name
            ]

    def end(self, account: Account, session_id: str) -> None:
        session = self.find(account, session_id)
        with self._lock:
            self._by_token = {token: other for token, other in self._by_token.items() if other is not session}

    def forget(self, account: str) -> None:
        """End all of an account."""
        with self._lock:
            kept = {token: session for token, session in self._by_token.items() if session.account.name != account}
            self._by_token = kept

    def find(self, account: Account, session_id: str) -> Session:
        for session in self.of(account):
            if session.id == session_id:
                return session
        raise not_found(f"{SESSIONS_PATH}/{session_id}")

    def _lives(self, session: Session) -> bool:
        account = self._current.config.account(session.account.name)
        unchanged = account is not None and account.password == session.account.password
        return unchanged and self._clock() - session.used < TIMEOUT_SECONDS

    def _forget_ended(self) -> None:
        self._by_token = {token: session for token, session in self._by_token.items() if self._lives(session)}


def add_routes(app: flask.Flask) -> None:
    """The SessionService. Whoever comes here is known already, but for the one who wants to log in."""
    add = app.add_url_rule
    add(SERVICE_PATH, "session_service", _service, methods=["GET"])
    add(SESSIONS_PATH, "sessions", _collection, methods=["GET"])
    add(SESSIONS_PATH, "session_create", _create, methods=["POST"])
    add(f"{SESSIONS_PATH}/<session_id>", "session", _session, methods=["GET"])
    add(f"{SESSIONS_PATH}/<session_id>", "session_end", _end, methods=["DELETE"])


def _sessions() -> Sessions:
    return flask.current_app.extensions["nometal_bmc"].sessions


def _credentials() -> Credentials:
    return flask.current_app.extensions["nometal_bmc"].credentials


def _service() -> dict[str, Any]:
    return {
        "@odata.type": "#SessionService.v1_1_3.SessionService",
        "@odata.id": SERVICE_PATH,
        "Id": "SessionService",
        "Name": "Session Service",
        "Status": {"State": "Enabled", "Health": "OK"},
        "ServiceEnabled": True,
        "SessionTimeout": TIMEOUT_SECONDS,
        "Sessions": {"@odata.id": SESSIONS_PATH},
    }


def _collection() -> dict[str, Any]:
    own = [session.id for session in _sessions().of(flask.g.account)]
    return collection("Session", SESSIONS_PATH, "Session Collection", own)


def _create() -> tuple[dict[str, Any], int, dict[str, str]]:
    asked = checked(flask.request.json, LOGIN)
    for key in LOGIN:
        if key not in asked:
            raise Refused(400, "PropertyMissing", f"{key} is missing.", prop=key)
    name, password = asked["UserName"], asked["Password"]
    account = _credentials().verify(flask.request.remote_addr or "", name, password)
    flask.request.environ["nometal_bmc.account"] = account.name
    flask.current_app.extensions["nometal_bmc"].logins.succeeded(account, flask.request.remote_addr or "")
    session, token = _sessions().create(account)
    return session.body, 201, {"X-Auth-Token": token, "Location": f"{SESSIONS_PATH}/{session.id}"}


def _session(session_id: str) -> dict[str, Any]:
    return _sessions().find(flask.g.account, session_id).body


def _end(session_id: str) -> tuple[str, int]:
    _sessions().end(flask.g.account, session_id)
    return "", 204


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
