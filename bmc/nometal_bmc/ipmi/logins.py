# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may log in, and who has been wrong about the password too often.

A client learns from our proof whether its password is correct, and need not come back if it is not: ipmitool does not.
So a login that is not finished counts as a wrong password, after a while or when its client has begun too many others.
"""

from __future__ import annotations

import logging
import time
import uuid
from typing import TYPE_CHECKING, Callable, Protocol

from nometal_bmc.sources import source_of
from nometal_bmc.throttle import Throttle

if TYPE_CHECKING:
    from nometal_bmc.config.settings import Ipmi
    from nometal_bmc.ipmi.journal import Journal

LOG = logging.getLogger(__name__)
FINISH_SECONDS = 5.0
MOST_UNFINISHED = 16
"""Of one client: as many may log in at the same time."""


class Login(Protocol):
    """A session that is not established yet."""

    @property
    def source(self) -> str: ...


class Logins:
    """Decides on the logins of one BMC, at all its addresses."""

    def __init__(self, node: Ipmi, journal: Journal, clock: Callable[[], float] = time.monotonic) -> None:
        self.name, self.password = node.username, node.password
        self.guid = uuid.UUID(node.uuid)
        self._node = node.name
        self._journal = journal
        self._clock = clock
        self._throttle = Throttle(clock)
        self._unfinished: dict[Login, float] = {}  # until when each may be finished; the oldest are first
        self._next_lines: dict[tuple[str, str], float] = {}

    def must_wait(self, source: str, name: str) -> bool:
        """Has this client been wrong so often that it is not listened to now?"""
        if not self._throttle.pause(source, name):
            return False
        self._note(source, name, "there were too many failed logins")
        return True

    def knows(self, source: str, name: str) -> bool:
        """Is there such an account?"""
        if name == self.name:
            return True
        self._fail(source, name, "no such account")
        return False

    def begun(self, login: Login) -> None:
        """It was given our proof."""
        self._unfinished.pop(login, None)
        of_client = [other for other in self._unfinished if source_of(other.source) == source_of(login.source)]
        if len(of_client) >= MOST_UNFINISHED:
            self.failed(of_client[0])
        self._unfinished[login] = self._clock() + FINISH_SECONDS

    def succeeded(self, login: Login) -> None:
        self._unfinished.pop(login, None)
        self._throttle.succeeded(login.source, self.name)
        self._journal.logged_in(login.source)

    def failed(self, login: Login) -> None:
        """The proof was wrong, or there will be none. Once for each login."""
        if self._unfinished.pop(login, None) is not None:
            self._fail(login.source, self.name, "wrong password")

    def give_up(self) -> bool:
        """Those that should be finished by now have failed. Are there others?"""
        now = self._clock()
        for login in [login for login, until in self._unfinished.items() if until <= now]:
            self.failed(login)
        return bool(self._unfinished)

    def _fail(self, source: str, name: str, why: str) -> None:
        self._throttle.failed(source, name)
        self._journal.refused(source, known=name == self.name)
        self._note(source, name, why)

    def _note(self, source: str, name: str, why: str) -> None:
        """Not more than one line of a kind a second: it costs nothing to send such packets."""
        now = self._clock()
        who = name if name == self.name else "an unknown account"
        if now >= self._next_lines.get((who, why), now):
            self._next_lines[who, why] = now + 1
            LOG.warning("Refused a login from %s for %s at the BMC of %s: %s", source, who, self._node, why)
