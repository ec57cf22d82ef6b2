# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The event log of a VM, as its IPMI BMC writes and reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nometal_bmc.events import logins
from nometal_bmc.events.log import BOOT, POWER, SETTINGS, By

if TYPE_CHECKING:
    from nometal_bmc.config.settings import Ipmi
    from nometal_bmc.events.log import Event, EventLog


@dataclass(frozen=True)
class Account:
    """The one that a BMC has."""

    name: str
    systems: frozenset[str]


class Journal:
    """What has happened to one VM."""

    def __init__(self, log: EventLog, node: Ipmi) -> None:
        self._log = log
        self._logins = logins.Logins(log)
        self._account = Account(node.username, frozenset({node.uuid}))
        self._uuid = node.uuid

    def events(self) -> list[Event]:
        """The oldest first."""
        return self._log.events(self._uuid)

    def clear(self, user: str, source: str) -> None:
        self._log.clear(self._uuid, By(user, source))

    def switched(self, reset_type: str, user: str, source: str, error: str = "") -> None:
        text = f"Reset {reset_type} failed ({error})" if error else f"Reset {reset_type}"
        self._log.add(self._uuid, POWER, text, By(user, source), failed=bool(error))

    def boot_changed(self, what: str, user: str, source: str) -> None:
        self._log.add(self._uuid, BOOT, f"Boot settings changed: {what}", By(user, source))

    def power_restore_changed(self, policy: str, user: str, source: str) -> None:
        self._log.add(self._uuid, SETTINGS, f"Power restore policy changed: {policy}", By(user, source))

    def logged_in(self, source: str) -> None:
        self._logins.succeeded(self._account, source)

    def refused(self, source: str, *, known: bool) -> None:
        """By the account's name, or another."""
        self._logins.failed(self._account, source, None if known else "an unknown account")
