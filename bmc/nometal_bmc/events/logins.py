# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logins as events: who comes in again and again, or guesses, is noted now and then only."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Protocol

from nometal_bmc.events.log import LOGIN, By, EventLog

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Logins"]

QUIET_SECONDS = 10 * 60.0
MOST_KNOWN = 4096


class Account(Protocol):
    """Of Redfish or IPMI."""

    @property
    def name(self) -> str: ...

    @property
    def systems(self) -> frozenset[str] | None: ...


class Logins:
    """Of an account with systems of its own in their logs, of any other in the service's."""

    def __init__(self, log: EventLog, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()
        self._noted: dict[tuple[str | None, str, str, bool], float] = {}

    def succeeded(self, account: Account, address: str) -> None:
        self._note(account, "Login", account.name, address)

    def failed(self, account: Account | None, address: str, name: str | None = None) -> None:
        """With another name than the account's, at a BMC that has no other account."""
        name = name or (account.name if account else "an unknown account")
        self._note(account, "Login refused", name, address, failed=True)

    def _note(self, account: Account | None, text: str, name: str, address: str, *, failed: bool = False) -> None:
        own = account.systems if account else None
        for system in [None] if own is None else sorted(own):
            if self._is_due((system, name, address, failed)):
                self._log.add(system, LOGIN, text, By(name, address), failed=failed)

    def _is_due(self, key: tuple[str | None, str, str, bool]) -> bool:
        now = self._clock()
        with self._lock:
            if now - self._noted.get(key, -QUIET_SECONDS) < QUIET_SECONDS:
                return False
            if len(self._noted) >= MOST_KNOWN:
                self._noted = {known: when for known, when in self._noted.items() if now - when < QUIET_SECONDS}
            if len(self._noted) >= MOST_KNOWN:
                self._noted.clear()
            self._noted[key] = now
            return True
