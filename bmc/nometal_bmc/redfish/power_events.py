# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens to the power of VMs becomes events, also what no client has asked for."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from nometal_bmc.answers import Refused
from nometal_bmc.events.log import POWER

if TYPE_CHECKING:
    from nometal_bmc.broker.client import Machines
    from nometal_bmc.events.log import EventLog

__all__ = ["PowerEvents"]

LOG = logging.getLogger(__name__)
AGAIN_SECONDS = 2.0
TEXTS = {
    "on": "Power is on",
    "restored": "Switched on after the host's start, by the power restore policy",
    "off": "Power is off, without the guest",
    "off by guest": "Power is off, by the guest",
    "crashed": "Power is off, after a crash",
    "saved": "Power is off, after a save on the host",
    "paused": "Paused on the host",
    "paused by disk": "Paused by an error of a disk",
    "resumed": "Not paused any more",
    "reset": "Reset, by the guest or for it",
}
PAUSES = ("paused", "paused by disk")
FAILURES = ("crashed", "paused by disk")


class PowerEvents:
    """Asks the broker as long as the service lives."""

    def __init__(self, machines: Machines, log: EventLog) -> None:
        self._machines = machines
        self._log = log
        self._epoch: str | None = None
        self._last = 0
        self._before: dict[str, str] = {}

    def start(self) -> None:
        threading.Thread(target=self._run, name="power-events", daemon=True).start()

    def _run(self) -> None:
        while True:
            self._look_on()

    def _look_on(self) -> None:
        try:
            self.look()
        except Refused as refused:
            LOG.info("what happens to the VMs is not known now: %s", refused)
            time.sleep(AGAIN_SECONDS)
        except Exception:
            LOG.exception("what happens to the VMs is not known now")
            time.sleep(AGAIN_SECONDS)

    def look(self) -> None:
        """Once."""
        found = self._machines.happenings(self._epoch, self._last)
        self._epoch, self._last = found["epoch"], found["last"]
        names = self._machines.names
        for uuid, what in found["events"]:
            if uuid in names and what in TEXTS and self._is_news(uuid, what):
                self._log.add(uuid, POWER, TEXTS[what], failed=what in FAILURES)
            self._before[uuid] = what

    def _is_news(self, uuid: str, what: str) -> bool:
        """Firmware resets a machine several times in a row, and a VM that starts goes on from a pause."""
        before = self._before.get(uuid)
        return before != "reset" if what == "reset" else what != "resumed" or before in PAUSES
