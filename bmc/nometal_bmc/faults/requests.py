# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests that meet faults on the way to the application, and answers that meet them on the way back."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from nometal_bmc.answers import Answer, Refused
from nometal_bmc.faults.rules import Fault

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from typing import Callable

    from nometal_bmc.config.reading import CurrentConfig
    from nometal_bmc.config.settings import Account
    from nometal_bmc.faults.decisions import CurrentFaults, Decisions
    from nometal_bmc.faults.rules import Rule

    Serve = Callable[[dict[str, Any], bytes], Awaitable[Answer]]

__all__ = ["RESET", "FaultyRequests"]

LOG = logging.getLogger(__name__)
RESET = "nometal_bmc.reset"
"""In the environ, what resets the request's connection."""
ACCOUNT = "nometal_bmc.account"
OK = 200
OF_A_SYSTEM = ("Systems", "Managers")
OTHER_POWER = {"On": "Off", "Off": "On"}
EXPIRED = Refused(401, "NoValidSession", "The login has expired.", headers={"WWW-Authenticate": 'Basic realm="BMC"'})
NOT_FETCHED = Refused(400, "CouldNotEstablishConnection", "The image cannot be inserted: its server did not answer.")


class Logins(Protocol):
    """Who asks."""

    def claimed(self, environ: dict[str, Any], body: bytes) -> Account | None:
        """The account that a request names; whether rightly is not verified."""

    def forget(self, account: str) -> None:
        """End all sessions of an account."""


class FaultyRequests:
    """Stands before the application. Accounts for all systems meet no faults: by them, people see how things are."""

    def __init__(self, faults: CurrentFaults, current: CurrentConfig, logins: Logins) -> None:
        self._faults = faults
        self._current = current
        self._logins = logins

    async def meet(self, environ: dict[str, Any], body: bytes, serve: Serve) -> Answer:
        """The answer, which is what a fault leaves of it. Refused and ConnectionError are answers, too."""
        decisions = self._faults.decisions
        if not decisions.faults.rules:
            return await serve(environ, body)
        account = self._logins.claimed(environ, body)
        if account is not None and account.systems is None:
            return await serve(environ, body)
        return await self._meet(decisions, _Request(environ, body, account, self._node(environ, account)), serve)

    async def _meet(self, decisions: Decisions, request: _Request, serve: Serve) -> Answer:
        await self._stop_while_rebooting(decisions, request)
        wrong_power = False
        for rule in decisions.of_request(request.node, request.method, request.path):
            LOG.info("Fault on purpose for %s: %s at %s %s", request.node or "all", rule, request.method, request.path)
            if rule.fault in (Fault.POWER_IGNORED, Fault.BOOT_IGNORED, Fault.MEDIA_FAILED):
                return await self._do_nothing(rule.fault, request, serve)
            wrong_power = wrong_power or rule.fault == Fault.POWER_STATE_WRONG
            await self._suffer(rule, decisions, request)
        answer = await serve(request.environ, request.body)
        return _with_other_power(answer) if wrong_power else answer

    async def _suffer(self, rule: Rule, decisions: Decisions, request: _Request) -> None:
        """What happens before the application has the request, if it comes that far."""
        if rule.fault == Fault.LATENCY:
            await asyncio.sleep(rule.milliseconds / 1000)
        elif rule.fault == Fault.MEDIA_STALLED:
            await asyncio.sleep(rule.seconds)
        elif rule.fault == Fault.STATUS:
            raise Refused(rule.status, "GeneralError", f"Status {rule.status}, as the faults of this lab demand.")
        elif rule.fault == Fault.CREDENTIALS_EXPIRED:
            self._end_sessions(request)
            raise EXPIRED
        elif rule.fault == Fault.CONNECTION_RESET:
            await _reset(request)
        elif rule.fault == Fault.REBOOT:
            self._end_sessions(request)
            decisions.rebooting[request.node] = asyncio.get_running_loop().time() + rule.seconds
            await _reset(request)

    async def _stop_while_rebooting(self, decisions: Decisions, request: _Request) -> None:
        if asyncio.get_running_loop().time() < decisions.rebooting.get(request.node, 0):
            await _reset(request)

    async def _do_nothing(self, fault: Fault, request: _Request, serve: Serve) -> Answer:
        """Answer as if it were done, but only to those who may see the system: they are asked for a look at it."""
        look = {**request.environ, "REQUEST_METHOD": "GET", "PATH_INFO": request.path.partition("/Actions/")[0]}
        for name in ("CONTENT_LENGTH", "CONTENT_TYPE"):
            look.pop(name, None)
        seen = await serve(look, b"")
        request.environ[ACCOUNT] = look.get(ACCOUNT, "-")  # for the access log
        if seen.status != OK:
            return seen
        if fault == Fault.MEDIA_FAILED:
            raise NOT_FETCHED
        return Answer(204, [], b"")

    def _end_sessions(self, request: _Request) -> None:
        if request.account:
            self._logins.forget(request.account.name)

    def _node(self, environ: dict[str, Any], account: Account | None) -> str:
        """The system that a request is about, or else the only one of its account; empty if it names none."""
        config, parts = self._current.config, environ["PATH_INFO"].split("/")
        if parts[3:4] and parts[3] in OF_A_SYSTEM and parts[4:5]:
            system = config.find(parts[4])
        elif account and account.systems and len(account.systems) == 1:
            system = config.find(next(iter(account.systems)))
        else:
            system = None
        return system.name if system else ""


class _Request:
    def __init__(self, environ: dict[str, Any], body: bytes, account: Account | None, node: str) -> None:
        self.environ = environ
        self.body = body
        self.account = account
        self.node = node
        self.method: str = environ["REQUEST_METHOD"]
        self.path: str = environ["PATH_INFO"]


async def _reset(request: _Request) -> NoReturn:
    await request.environ[RESET]()
    raise ConnectionResetError


def _with_other_power(answer: Answer) -> Answer:
    if answer.status != OK:
        return answer
    system = json.loads(answer.body)
    system["PowerState"] = OTHER_POWER.get(system.get("PowerState"), "Off")
    headers = [(name, value) for name, value in answer.headers if name.lower() != "content-length"]
    return Answer(answer.status, headers, json.dumps(system).encode())
