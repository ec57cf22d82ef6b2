# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot options: what the VM boots next, or always."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nometal_bmc.ipmi.commands import CHASSIS, Code, Command, Declined, Level, Request, Table
from nometal_bmc.machine import boot

if TYPE_CHECKING:
    from nometal_bmc.ipmi.journal import Journal
    from nometal_bmc.ipmi.vm import Vm
    from nometal_bmc.ipmi.work import Work

VERSION = 1
SET_IN_PROGRESS, FLAG_CLEARING, ACKNOWLEDGED, BOOT_FLAGS = 0, 3, 4, 5
BOOT_FLAGS_LENGTH = 6
STATELESS = {SET_IN_PROGRESS: bytes(1), FLAG_CLEARING: bytes(1), ACKNOWLEDGED: bytes(2)}
"""Parameters that clients write around the flags. They mean nothing for a VM, and read as zero."""
PARAMETER_MASK, SELECTOR_MASK = 0b0111_1111, 0b1111
VALID, PERSISTENT, EFI = 0b1000_0000, 0b0100_0000, 0b0010_0000
SELECTORS = {"None": 0, "Pxe": 1, "Hdd": 2, "Cd": 5}
TARGETS = {selector: target for target, selector in SELECTORS.items()}
POWER_SECONDS = 5.0
"""How long options wait until the VM is switched."""
WORDS = {1: "network", 2: "disk", 5: "CD"}


class BootOptions:
    """Reads and writes the VM's boot override."""

    def __init__(self, vm: Vm, work: Work, journal: Journal) -> None:
        self._vm = vm
        self._work = work
        self._journal = journal

    def table(self) -> Table:
        return {
            (CHASSIS, 0x08): Command(Level.OPERATOR, self._set, described, least=1),
            (CHASSIS, 0x09): Command(Level.OPERATOR, self._get, lambda _data: "get boot options", least=3),
        }

    def _get(self, request: Request) -> bytes:
        parameter = request.data[0] & PARAMETER_MASK
        if parameter in STATELESS:
            return bytes([VERSION, parameter]) + STATELESS[parameter]
        if parameter != BOOT_FLAGS:
            raise Declined(Code.PARAMETER_NOT_SUPPORTED)
        override, efi = self._vm.boot_override()
        flags = 0 if override.enabled == "Disabled" else VALID
        flags |= PERSISTENT if override.enabled == "Continuous" else 0
        flags |= EFI if efi else 0
        return bytes([VERSION, BOOT_FLAGS, flags, SELECTORS.get(override.target, 0) << 2, 0, 0, 0])

    def _set(self, request: Request) -> bytes:
        """The flag for EFI is not looked at: clients leave it out, and a VM's firmware stays what it is."""
        data = request.data
        parameter = data[0] & PARAMETER_MASK
        if parameter in STATELESS:
            return b""
        if parameter != BOOT_FLAGS:
            raise Declined(Code.PARAMETER_NOT_SUPPORTED)
        if len(data) < BOOT_FLAGS_LENGTH:
            raise Declined(Code.WRONG_LENGTH)
        flags, target = data[1], TARGETS.get(data[2] >> 2 & SELECTOR_MASK)
        if target is None:
            raise Declined(Code.INVALID_FIELD)
        override = boot.NONE
        if target != "None" and flags & VALID:
            override = boot.Override(target, "Continuous" if flags & PERSISTENT else "Once")
        if not self._work.ended(POWER_SECONDS):  # else it would count for a boot that was asked for before
            raise Declined(Code.BUSY)
        self._vm.set_boot_override(override)
        self._journal.boot_changed(described(data), request.user, request.source)
        return b""


def described(data: bytes) -> str:
    """A request to set options, in words."""
    if data[:1] != bytes([BOOT_FLAGS]) or len(data) < BOOT_FLAGS_LENGTH:
        return "set boot options"
    selector = data[2] >> 2 & SELECTOR_MASK
    if not data[1] & VALID or not selector:
        return "boot as usual"
    lasts = "always" if data[1] & PERSISTENT else "once"
    return f"boot from {WORDS.get(selector, f'device {selector}')} {lasts}"
