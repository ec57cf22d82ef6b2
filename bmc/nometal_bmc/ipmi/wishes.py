# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What IPMI's numbers mean: for the log, which people read."""

from __future__ import annotations

CHASSIS, APPLICATION = 0, 6
POWER = ("power off", "power on", "power cycle", "power reset", "diagnostic interrupt", "soft power off")
SELECTORS = {1: "network", 2: "disk", 5: "CD"}
BOOT_FLAGS, FLAGS_LENGTH = 5, 3
VALID, PERSISTENT = 0b1000_0000, 0b0100_0000
COMMANDS = {
    (CHASSIS, 1): "chassis status",
    (CHASSIS, 2): "chassis control",
    (CHASSIS, 8): "set boot options",
    (CHASSIS, 9): "get boot options",
    (APPLICATION, 1): "device id",
    (APPLICATION, 2): "cold reset",
    (APPLICATION, 0x37): "system GUID",
    (APPLICATION, 0x48): "activate payload",
}
SET_PRIVILEGE, CLOSE_SESSION = (APPLICATION, 0x3B), (APPLICATION, 0x3C)


def described(function: int, command: int, data: bytes) -> str:
    """Empty for what only keeps a session going."""
    kind = (function, command)
    if kind in (SET_PRIVILEGE, CLOSE_SESSION):
        return ""
    if kind == (CHASSIS, 2) and data and data[0] < len(POWER):
        return POWER[data[0]]
    if kind == (CHASSIS, 8) and data[:1] == bytes([BOOT_FLAGS]) and len(data) >= FLAGS_LENGTH:
        number = data[2] >> 2 & 0b1111
        if not data[1] & VALID or not number:
            return "boot as usual"
        lasts = "always" if data[1] & PERSISTENT else "once"
        return f"boot from {SELECTORS.get(number, f'device {number}')} {lasts}"
    return COMMANDS.get(kind, f"command {function:#04x} {command:#04x}")
