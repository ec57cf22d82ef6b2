# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What carries out the operations: one function for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from nometal_bmc.broker.images import Begun, Images
from nometal_bmc.machine import notes
from nometal_bmc.machine.boot import BootWish
from nometal_bmc.vms import boot, firmware, power
from nometal_bmc.vms.domains import INACTIVE, PRESENT

if TYPE_CHECKING:
    from nometal_bmc.config.reading import CurrentBrokerConfig
    from nometal_bmc.vms.domains import Domains

__all__ = ["Begun", "Handlers"]

HAPPENING_SECONDS = 10.0
"""How long who asks for what happens waits for something to happen."""


class Handlers:
    """By name of operation; what they return is JSON."""

    def __init__(self, current: CurrentBrokerConfig, domains: Domains) -> None:
        self._domains = domains
        self._images = Images(current, domains)
        self.by_name: dict[str, Callable[..., Any]] = {
            "existing": domains.existing,
            "active": domains.active,
            "definition": lambda uuid: domains.texts(uuid, INACTIVE),
            "present": lambda uuid: domains.texts(uuid, PRESENT),
            "definition_and_present": lambda uuid: domains.texts(uuid, INACTIVE, PRESENT),
            "shown": lambda uuid: (*domains.shown(uuid), domains.power_states.policy(uuid)),
            "power_restore": self._power_restore,
            "set_power_restore": self._set_power_restore,
            "happenings": lambda epoch, after: domains.happenings.after(epoch, after, HAPPENING_SECONDS),
            "capacities": domains.capacities,
            **{action.__name__: self._on_vm(action) for action in POWER},
            "check_boot": self._check_boot,
            "change_boot": lambda uuid, **wish: boot.change(domains, uuid, BootWish(**wish)),
            "set_secure_boot": lambda uuid, wanted: firmware.set_secure_boot(domains, uuid, wanted),
            "set_clock": self._set_clock,
            "sweep_images": self._images.sweep,
            "insert": self._images.insert,
            "eject": self._images.eject,
            "set_verify": lambda uuid, verify: domains.note(uuid, image_verify=str(verify).lower()),
        }
        self.of_client: dict[str, Callable[..., int | None]] = {
            "begin_image": self._images.begin,
            "keep_image": self._images.keep,
            "drop_image": Begun.drop,
        }
        """They are given what the client has begun as well. A number is an open file for the client."""

    def _on_vm(self, action: Callable[[Domains, str], None]) -> Callable[[str], None]:
        return lambda uuid: action(self._domains, uuid)

    def _power_restore(self, uuid: str) -> str:
        self._domains.active(uuid)  # it is there, or that is refused
        return self._domains.power_states.policy(uuid)

    def _set_power_restore(self, uuid: str, policy: str) -> None:
        self._domains.active(uuid)  # as above
        self._domains.power_states.set_policy(uuid, policy)

    def _check_boot(self, uuid: str, **wish: Any) -> dict[str, str | None]:
        override = boot.check(self._domains, uuid, BootWish(**wish))
        return {"target": override.target, "http_uri": override.http_uri}

    def _set_clock(self, uuid: str, zone: str | None, ahead: int | None) -> None:
        with self._domains.edit(uuid) as root:
            before = notes.read(root)
            clock = before.get("clock", "0") if ahead is None else str(ahead)
            notes.write(root, zone=zone or before.get("zone", "+00:00"), clock=clock)


POWER = (power.power_on, power.power_off, power.power_cycle, power.shut_down, power.restart, power.interrupt)
