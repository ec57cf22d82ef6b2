# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that the broker does for the service: each operation by name, with what its arguments may be.

None of them takes XML or the name of a file. `uuid` has to be that of a VM of the broker's own configuration.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable

from nometal_bmc.config.settings import POWER_RESTORE
from nometal_bmc.machine.boot import ENABLED, HTTP_URI, MOST_OPTIONS, OPTION, TARGETS
from nometal_bmc.machine.firmware import MODES

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OPERATIONS", "Operation", "Unfit"]

Kind = Callable[[object], bool]

QUICK_SECONDS = 10.0
READ_SECONDS = 30.0
"""What libvirt knows without asking QEMU."""
START_SECONDS = 150.0
"""A start waits for others, and a host may be slow."""
UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
DIGEST = "[0-9a-f]{64}"
URL = r"https?://[^\x00-\x20\x7f\ud800-\udfff]{1,70000}"
ZONE = r"[+-][0-9]{2}:[0-5][0-9]"
FARTHEST_SECONDS = 300 * 366 * 24 * 3600 - 1
MOST_DIGESTS = 1000
EPOCH = "[0-9a-f]{16}"
FARTHEST_COUNT = 2**53 - 1


class Unfit(ValueError):  # noqa: N818 - reads as a sentence where it is raised
    """A request for something that there is not."""


def text(pattern: str) -> Kind:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def one_of(values: tuple[str, ...]) -> Kind:
    return lambda value: isinstance(value, str) and value in values


def perhaps(kind: Kind) -> Kind:
    return lambda value: value is None or kind(value)


def yes_or_no(value: object) -> bool:
    return isinstance(value, bool)


def number(least: int, most: int) -> Kind:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def digests(value: object) -> bool:
    return isinstance(value, list) and len(value) <= MOST_DIGESTS and all(map(text(DIGEST), value))


def options(value: object) -> bool:
    return isinstance(value, list) and len(value) <= MOST_OPTIONS and all(map(text(OPTION), value))


@dataclass(frozen=True)
class Operation:
    """`asks_qemu`: it does not end while the VM's QEMU has stopped. `seconds`: how long the service waits for it."""

    arguments: Mapping[str, Kind] = field(default_factory=dict)
    asks_qemu: bool = False
    seconds: float = QUICK_SECONDS

    def checked(self, given: Any) -> dict[str, Any]:
        """The arguments, if they are these and no others."""
        if not isinstance(given, dict) or given.keys() != self.arguments.keys():
            raise Unfit(f"the arguments are {', '.join(self.arguments) or 'none'}")
        for name, kind in self.arguments.items():
            if not kind(given[name]):
                raise Unfit(f"{name} is not as it has to be")
        return given


VM = {"uuid": text(UUID)}
BOOT = {
    "mode": perhaps(one_of(MODES)),
    "target": perhaps(one_of(TARGETS)),
    "enabled": perhaps(one_of(ENABLED)),
    "http_uri": perhaps(text(HTTP_URI)),
    "forgets_uri": yes_or_no,
    "order": perhaps(options),
}

OPERATIONS: dict[str, Operation] = {
    # What there is.
    "existing": Operation(seconds=READ_SECONDS),
    "active": Operation(VM, seconds=READ_SECONDS),
    "definition": Operation(VM, seconds=READ_SECONDS),
    "present": Operation(VM, seconds=READ_SECONDS),
    "definition_and_present": Operation(VM, seconds=READ_SECONDS),
    "shown": Operation(VM, seconds=READ_SECONDS),
    "capacities": Operation(VM, asks_qemu=True),
    "happenings": Operation({"epoch": perhaps(text(EPOCH)), "after": number(0, FARTHEST_COUNT)}, seconds=READ_SECONDS),
    # Power.
    "power_on": Operation(VM, asks_qemu=True, seconds=START_SECONDS),
    "power_off": Operation(VM, seconds=START_SECONDS),
    "power_cycle": Operation(VM, seconds=START_SECONDS),
    "shut_down": Operation(VM, asks_qemu=True),
    "restart": Operation(VM, asks_qemu=True),
    "interrupt": Operation(VM, asks_qemu=True),
    "power_restore": Operation(VM, seconds=READ_SECONDS),
    "set_power_restore": Operation({**VM, "policy": one_of(POWER_RESTORE)}, seconds=READ_SECONDS),
    # Boot, firmware, and the BMC's clock.
    "check_boot": Operation({**VM, **BOOT}),
    "change_boot": Operation({**VM, **BOOT}, asks_qemu=True),
    "set_secure_boot": Operation({**VM, "wanted": yes_or_no}, asks_qemu=True),
    "set_clock": Operation(
        {**VM, "zone": perhaps(text(ZONE)), "ahead": perhaps(number(-FARTHEST_SECONDS, FARTHEST_SECONDS))},
        asks_qemu=True,
    ),
    # Media: an image is a file of the broker's that the service has opened by it, and is known by its digest.
    "begin_image": Operation(),
    "keep_image": Operation({"digest": text(DIGEST)}),
    "drop_image": Operation(),
    "sweep_images": Operation({"keep": digests}),
    "insert": Operation({**VM, "digest": text(DIGEST), "url": text(URL)}, asks_qemu=True),
    "eject": Operation(VM, asks_qemu=True),
    "set_verify": Operation({**VM, "verify": yes_or_no}, asks_qemu=True),
}
