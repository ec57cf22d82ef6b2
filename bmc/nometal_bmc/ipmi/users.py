# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The users of a BMC, which can be read and not changed: the first, whom IPMI gives no name, and the account."""

from __future__ import annotations

from nometal_bmc.ipmi.commands import APPLICATION, Code, Command, Declined, Level, Request, Table, named

NAMELESS, ACCOUNT = 1, 2
NAME_LENGTH = 16
NUMBER_MASK = 0b11_1111
ENABLED, DISABLED = 0b0100_0000, 0b1000_0000
MESSAGES, NO_ACCESS = 0b0001_0000, 0x0F
FIXED_NAMES = 2


class Users:
    """Says which there are."""

    def __init__(self, account: str) -> None:
        self._names = {NAMELESS: b"", ACCOUNT: account.encode()}

    def table(self) -> Table:
        return {
            (APPLICATION, 0x44): Command(Level.OPERATOR, self._access, named("user access"), least=2),
            (APPLICATION, 0x46): Command(Level.OPERATOR, self._name, named("user name"), least=1),
        }

    def _access(self, request: Request) -> bytes:
        is_account = self._number(request.data[1]) == ACCOUNT
        access = MESSAGES | Level.ADMINISTRATOR if is_account else NO_ACCESS
        return bytes([len(self._names), (ENABLED if is_account else DISABLED) | 1, FIXED_NAMES, access])

    def _name(self, request: Request) -> bytes:
        return self._names[self._number(request.data[0])].ljust(NAME_LENGTH, b"\0")

    def _number(self, number: int) -> int:
        if number & NUMBER_MASK not in self._names:
            raise Declined(Code.PARAMETER_OUT_OF_RANGE)
        return number & NUMBER_MASK
