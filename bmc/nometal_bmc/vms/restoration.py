# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""After a start of the host: VMs are switched on, one after another, as their power restore policy says."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

import libvirt

from nometal_bmc.answers import Refused
from nometal_bmc.vms import power

if TYPE_CHECKING:
    from collections.abc import Callable

    from nometal_bmc.vms.domains import Domains

__all__ = ["LONGEST_SECONDS", "Restoration"]

LOG = logging.getLogger(__name__)
AGAIN_SECONDS = 3.0
LONGEST_SECONDS = 15 * 60.0
"""libvirt, its networks and a slow storage may take their time after a start of the host."""
NOT_THERE, CANCELLED = 404, 409


class Restoration:
    """Of the VMs that are to be on again. It survives a restart of the broker, as what is left is kept."""

    def __init__(self, domains: Domains, clock: Callable[[], float] = time.monotonic) -> None:
        self._domains = domains
        self._clock = clock
        self._failing: dict[str, float] = {}

    def start(self) -> None:
        if self._domains.power_states.restoring():
            threading.Thread(target=self._run, name="restoration", daemon=True).start()

    def _run(self) -> None:
        while True:
            self.look()
            if not self._domains.power_states.restoring():
                return
            time.sleep(AGAIN_SECONDS)

    def look(self) -> None:
        """Try once to switch on each of those that are left."""
        states = self._domains.power_states
        for uuid in states.restoring():
            self._try(uuid)
        states.save()

    def _try(self, uuid: str) -> None:
        try:
            self._switch_on(uuid)
        except (Refused, libvirt.libvirtError) as error:
            self._note_failure(uuid, error)

    def _switch_on(self, uuid: str) -> None:
        states, name = self._domains.power_states, self._domains.names.get(uuid, uuid)
        if self._domains.active(uuid):
            LOG.info("%s is on already after the host's start", name)
        elif states.is_restoring(uuid):  # else somebody has switched it off since
            power.power_on(self._domains, uuid, patiently=True)
            self._domains.happenings.add(uuid, "restored")
            LOG.info("%s is switched on after the host's start: %s", name, states.policy(uuid))
        else:
            return
        states.started(uuid)

    def _note_failure(self, uuid: str, error: Exception) -> None:
        name = self._domains.names.get(uuid, uuid)
        began = self._failing.setdefault(uuid, self._clock())
        if isinstance(error, Refused) and error.status in (NOT_THERE, CANCELLED):
            LOG.info("%s stays off after the host's start: %s", name, error)
            self._domains.power_states.cancel_restoring(uuid)
        elif self._clock() - began < LONGEST_SECONDS:
            LOG.warning("%s cannot be switched on yet after the host's start: %s", name, error)
        else:
            LOG.error("%s could not be switched on after the host's start, and stays off: %s", name, error)
            self._domains.power_states.cancel_restoring(uuid)
