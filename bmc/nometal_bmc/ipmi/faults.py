# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that meet faults on purpose, by the same rules as the requests of Redfish that do the same."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from nometal_bmc.faults.rules import Fault
from nometal_bmc.ipmi.commands import CHASSIS, Code, Level, Request

if TYPE_CHECKING:
    from nometal_bmc.faults.decisions import CurrentFaults, Decisions
    from nometal_bmc.ipmi.commands import Commands

LOG = logging.getLogger(__name__)
STATUS = (CHASSIS, 0x01)
SAME_BY_REDFISH = {
    STATUS: ("GET", "/redfish/v1/Systems/{}"),
    (CHASSIS, 0x02): ("POST", "/redfish/v1/Systems/{}/Actions/ComputerSystem.Reset"),
    (CHASSIS, 0x08): ("PATCH", "/redfish/v1/Systems/{}"),
}
IS_ON = 0b0000_0001


class NoAnswer(Exception):  # noqa: N818 - reads as what it is
    """A packet is as good as lost, and perhaps all sessions with it."""

    def __init__(self, *, sessions_end: bool = False) -> None:
        super().__init__("no answer, as the faults of this lab demand")
        self.sessions_end = sessions_end


class FaultyCommands:
    """Stands before the commands of a BMC. What clients ask without a session meets no fault but a reboot."""

    def __init__(self, commands: Commands, faults: CurrentFaults, node: str) -> None:
        self._commands = commands
        self._faults = faults
        self._node = node

    def refuses_session(self) -> bool:
        """Whether the next session is not to begin."""
        refused = self._faults.decisions.of_connection(Fault.CONNECTION_REFUSED)
        if refused:
            LOG.info("Fault on purpose for %s: %s", self._node, Fault.CONNECTION_REFUSED)
        return refused

    def answer(self, request: Request) -> tuple[Code, bytes]:
        decisions = self._faults.decisions
        if time.monotonic() < decisions.rebooting.get(self._node, 0):
            raise NoAnswer
        if request.level == Level.NONE:
            return self._commands.answer(request)
        return self._meet(decisions, request)

    def _meet(self, decisions: Decisions, request: Request) -> tuple[Code, bytes]:
        kind = (request.function, request.command)
        method, path = SAME_BY_REDFISH.get(kind, ("", ""))
        wrong_power = False
        for rule in decisions.of_request(self._node, method, path.format(self._node)):
            LOG.info("Fault on purpose for %s: %s at command %#04x %#04x", self._node, rule, *kind)
            if rule.fault == Fault.LATENCY:
                time.sleep(rule.milliseconds / 1000)  # one BMC alone is in this process
            elif rule.fault == Fault.STATUS:
                return Code.BUSY, b""
            elif rule.fault == Fault.CONNECTION_RESET:
                raise NoAnswer
            elif rule.fault == Fault.CREDENTIALS_EXPIRED:
                raise NoAnswer(sessions_end=True)
            elif rule.fault == Fault.REBOOT:
                decisions.rebooting[self._node] = time.monotonic() + rule.seconds
                raise NoAnswer(sessions_end=True)
            elif rule.fault == Fault.POWER_STATE_WRONG:
                wrong_power = True
            elif request.level >= Level.OPERATOR:  # power or boot, which others may not change anyway
                return Code.DONE, b""
        code, data = self._commands.answer(request)
        if wrong_power and data:
            data = bytes([data[0] ^ IS_ON]) + data[1:]
        return code, data
