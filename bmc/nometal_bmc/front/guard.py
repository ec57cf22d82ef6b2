# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who comes in, and what there is for them: nothing without a login, and no system but their own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import flask
from werkzeug.datastructures import Authorization

from nometal_bmc.answers import not_found
from nometal_bmc.events.log import EventLog
from nometal_bmc.events.logins import Logins
from nometal_bmc.front import accounts, heads, sessions, streams
from nometal_bmc.front.credentials import Credentials, unauthorized
from nometal_bmc.redfish import service_views
from nometal_bmc.redfish.wishes import Request

if TYPE_CHECKING:
    from nometal_bmc.config.reading import CurrentConfig
    from nometal_bmc.config.settings import Account, Config

__all__ = ["MOST_BODY_BYTES", "Guard", "protect"]

MOST_BODY_BYTES = 64 * 1024
SERVICE_ROOT = frozenset(
    {"/redfish", "/redfish/", "/redfish/v1", "/redfish/v1/", service_views.ODATA_PATH, service_views.METADATA_PATH}
)
BASIC = "nometal_bmc.basic"
"""In the environ of a request: who it claims to be by HTTP Basic, with the source address."""
OF_ONE_SYSTEM = ("/redfish/v1/Systems/<", "/redfish/v1/Managers/<")


class Guard:
    """What the application needs to know people by."""

    def __init__(self, current: CurrentConfig) -> None:
        self.current = current
        self.log = EventLog(lambda: current.config.state / "events")
        self.logins = Logins(self.log)
        self.streams = streams.Streams(self.log, current)
        self.credentials = Credentials(current, refused=self.logins.failed)
        self.sessions = sessions.Sessions(current)

    def is_login(self, environ: dict[str, Any]) -> bool:
        return environ["REQUEST_METHOD"] == "POST" and environ["PATH_INFO"].rstrip("/") == sessions.SESSIONS_PATH

    def unproven(self, environ: dict[str, Any]) -> tuple[str, str, str] | None:
        """Source address, name and password of a request that `knows` nothing of, if they are to be verified."""
        if "HTTP_X_AUTH_TOKEN" in environ or environ["PATH_INFO"] in SERVICE_ROOT:
            return None
        return _basic(environ)

    def knows(self, environ: dict[str, Any]) -> bool:
        """Whether a request shows a login that is known to be valid already. Costs nothing."""
        token = environ.get("HTTP_X_AUTH_TOKEN")
        if token is not None:
            return self.sessions.account(token) is not None
        login = _basic(environ)
        return login is not None and self.credentials.remembers(*login[1:])

    def claimed(self, environ: dict[str, Any], body: bytes) -> Account | None:
        """The account that a request names; whether rightly is not verified."""
        if "HTTP_X_AUTH_TOKEN" in environ:
            return self.sessions.account(environ["HTTP_X_AUTH_TOKEN"])
        login = _basic(environ)
        name = login[1] if login else _name_in(body) if self.is_login(environ) else None
        return self.current.config.account(name) if name else None

    def forget(self, account: str) -> None:
        """End all sessions of an account."""
        self.sessions.forget(account)


def protect(app: flask.Flask, current: CurrentConfig) -> None:
    """Let every request in only by its account's leave; adds the SessionService."""
    app.config["MAX_CONTENT_LENGTH"] = MOST_BODY_BYTES
    app.request_class = Request
    first = "nometal_bmc" not in app.extensions
    app.extensions["nometal_bmc"] = Guard(current)
    if first:
        app.before_request(_admit)
        app.after_request(heads.describe)
        app.add_url_rule("/redfish", "versions", lambda: {"v1": "/redfish/v1/"})
        app.add_url_rule(service_views.ODATA_PATH, "odata", service_views.show_odata)
        app.add_url_rule(service_views.METADATA_PATH, "metadata", service_views.metadata)
        sessions.add_routes(app)
        streams.add_routes(app)
        accounts.add_routes(app)


def _admit() -> None:
    request, guard = flask.request, flask.current_app.extensions["nometal_bmc"]
    if request.path in SERVICE_ROOT or guard.is_login(request.environ):
        return
    flask.g.account = account = _account(guard)
    request.environ["nometal_bmc.account"] = account.name  # for the access log
    if account.systems is not None:
        flask.g.systems = account.systems  # whoever lists systems or resolves an identity keeps to these
    _confine(guard.current.config, account)


def _account(guard: Guard) -> Account:
    token = flask.request.headers.get("X-Auth-Token")
    if token is not None:
        account = guard.sessions.account(token)
    else:
        login = _basic(flask.request.environ)
        account = guard.credentials.verify(*login) if login else None
        if login and account:
            guard.logins.succeeded(account, login[0])
    if account is None:
        raise unauthorized()
    return account


def _confine(config: Config, account: Account) -> None:
    """Views are given the canonical UUID only, of a system that the account may see."""
    rule, arguments = flask.request.url_rule, flask.request.view_args
    if rule is None or not arguments or not rule.rule.startswith(OF_ONE_SYSTEM):
        return
    key = next(iter(arguments))
    system = config.find(arguments[key])
    if system is None or not account.commands(system):
        raise not_found(f"The system {arguments[key]}")
    arguments[key] = system.uuid


def _basic(environ: dict[str, Any]) -> tuple[str, str, str] | None:
    if BASIC not in environ:
        environ[BASIC] = _parsed(environ)
    login: tuple[str, str, str] | None = environ[BASIC]
    return login


def _parsed(environ: dict[str, Any]) -> tuple[str, str, str] | None:
    basic = Authorization.from_header(environ.get("HTTP_AUTHORIZATION"))
    if basic is None or basic.username is None or basic.password is None:
        return None
    return environ["REMOTE_ADDR"], basic.username, basic.password


def _name_in(body: bytes) -> str | None:
    """Of a login by which a session is to begin."""
    try:
        name = json.loads(body)["UserName"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return name if isinstance(name, str) else None
