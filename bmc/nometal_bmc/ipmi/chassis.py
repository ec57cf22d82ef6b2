# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The chassis: power, the identify light, and what the host's end does to the VM."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from nometal_bmc.config.settings import POWER_RESTORE
from nometal_bmc.ipmi.commands import CHASSIS, Code, Command, Declined, Level, Request, Table, named

if TYPE_CHECKING:
    from nometal_bmc.ipmi.journal import Journal
    from nometal_bmc.ipmi.vm import Vm
    from nometal_bmc.ipmi.work import Work

BMC_ADDRESS = 0x20
CAPABILITIES = bytes([0, *[BMC_ADDRESS] * 5])
POWER = {
    0: ("power off", "ForceOff"),
    1: ("power on", "On"),
    2: ("power cycle", "PowerCycle"),
    # Off and on as well: libvirt's own reset keeps the boot order that the VM was started with.
    3: ("power reset", "ForceRestart"),
    4: ("diagnostic interrupt", "Nmi"),
    5: ("soft power off", "GracefulShutdown"),
}
NEED_POWER, BOOT = (2, 3, 4), (1, 2, 3)
IS_ON, BY_COMMAND = 0b0000_0001, 0b0001_0000
IDENTIFY_KNOWN, IDENTIFY_TIMED, IDENTIFY_ON = 0b0100_0000, 0b0001_0000, 0b0010_0000
IDENTIFY_SECONDS = 15
POLICY_NUMBERS = {name: number for number, name in enumerate(POWER_RESTORE)}
"""IPMI counts them as they stand there."""
ALL_POLICIES, POLICY_SHIFT, NO_CHANGE = bytes([0b111]), 5, 3
CAUSE_UNKNOWN, CAUSE_COMMAND = 0, 1
LAN_CHANNEL = 1


class Chassis:
    """Says and changes how the VM is powered. What takes time is done after the answer, as hardware does it."""

    def __init__(self, vm: Vm, work: Work, journal: Journal) -> None:
        self._vm = vm
        self._work = work
        self._journal = journal
        self._identify_until = 0.0
        self._restart_cause = CAUSE_UNKNOWN

    def table(self) -> Table:
        user, operator = Level.USER, Level.OPERATOR
        return {
            (CHASSIS, 0x00): Command(user, lambda _request: CAPABILITIES, named("chassis capabilities")),
            (CHASSIS, 0x01): Command(user, self._status, named("chassis status")),
            (CHASSIS, 0x02): Command(operator, self._control, described, least=1, outcome="accepted"),
            (CHASSIS, 0x04): Command(operator, self._identify, named("identify")),
            (CHASSIS, 0x06): Command(operator, self._set_policy, named("power restore policy"), least=1),
            (CHASSIS, 0x07): Command(user, self._cause, named("restart cause")),
        }

    def _status(self, _request: Request) -> bytes:
        power = (IS_ON if self._vm.is_on() else 0) | POLICY_NUMBERS[self._vm.power_restore()] << POLICY_SHIFT
        left = self._identify_until - time.monotonic()
        light = 0 if left <= 0 else IDENTIFY_ON if left == float("inf") else IDENTIFY_TIMED
        last = BY_COMMAND if power & IS_ON and self._restart_cause == CAUSE_COMMAND else 0
        return bytes([power, last, IDENTIFY_KNOWN | light])

    def _control(self, request: Request) -> bytes:
        number = request.data[0] & 0b1111
        if number not in POWER:
            raise Declined(Code.INVALID_FIELD)
        if number in NEED_POWER and self._work.ended(0) and not self._vm.is_on():
            raise Declined(Code.NOT_NOW)
        self._work.add(POWER[number][0], partial(self._switch, number, request))
        return b""

    def _switch(self, number: int, request: Request) -> None:
        reset_type = POWER[number][1]
        try:
            if number in NEED_POWER and not self._vm.is_on():
                return  # it has gone off since
            self._vm.reset(reset_type)
        except Exception as error:
            self._journal.switched(reset_type, request.user, request.source, str(error))
            raise
        self._journal.switched(reset_type, request.user, request.source)
        if number in BOOT:
            self._restart_cause = CAUSE_COMMAND

    def _identify(self, request: Request) -> bytes:
        seconds = request.data[0] if request.data else IDENTIFY_SECONDS
        forced = len(request.data) > 1 and request.data[1] & 1
        self._identify_until = float("inf") if forced else time.monotonic() + seconds
        return b""

    def _set_policy(self, request: Request) -> bytes:
        number = request.data[0] & 0b111
        if number in POLICY_NUMBERS.values():
            policy = POWER_RESTORE[number]
            self._vm.set_power_restore(policy)
            self._journal.power_restore_changed(policy, request.user, request.source)
        elif number != NO_CHANGE:
            raise Declined(Code.INVALID_FIELD)
        return ALL_POLICIES

    def _cause(self, _request: Request) -> bytes:
        return bytes([self._restart_cause, LAN_CHANNEL])


def described(data: bytes) -> str:
    """A request to switch the VM, in words."""
    return POWER[data[0] & 0b1111][0] if data and data[0] & 0b1111 in POWER else "chassis control"
