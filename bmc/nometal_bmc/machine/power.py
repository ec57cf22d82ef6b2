# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What clients may do to the power of a VM."""

from __future__ import annotations

RESET_TYPES = {
    "On": "power_on",
    "ForceOn": "power_on",
    "ForceOff": "power_off",
    "GracefulShutdown": "shut_down",
    "GracefulRestart": "restart",
    "ForceRestart": "power_cycle",
    "PowerCycle": "power_cycle",
    "PushPowerButton": "shut_down",
    "Nmi": "interrupt",
}
"""Each with the broker's operation for it."""
SWITCH_ON_IF_OFF = ("GracefulRestart", "PushPowerButton")
