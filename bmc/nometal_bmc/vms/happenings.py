# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens to the power of VMs, whoever is the cause, for the service to ask for."""

from __future__ import annotations

import secrets
import threading
from collections import deque
from typing import Any

import libvirt

__all__ = ["Happenings", "of_lifecycle"]

MOST_KEPT = 1000
STOPPED = {
    libvirt.VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN: "off by guest",
    libvirt.VIR_DOMAIN_EVENT_STOPPED_CRASHED: "crashed",
    libvirt.VIR_DOMAIN_EVENT_STOPPED_FAILED: "crashed",
    libvirt.VIR_DOMAIN_EVENT_STOPPED_SAVED: "saved",
}


def of_lifecycle(event: int, detail: int) -> str | None:
    """In one of few words; None for what is about no power."""
    if event == libvirt.VIR_DOMAIN_EVENT_STOPPED:
        return STOPPED.get(detail, "off")
    if event == libvirt.VIR_DOMAIN_EVENT_SUSPENDED:
        failed = detail == libvirt.VIR_DOMAIN_EVENT_SUSPENDED_IOERROR
        return "paused by disk" if failed else "paused" if detail == libvirt.VIR_DOMAIN_EVENT_SUSPENDED_PAUSED else None
    if event == libvirt.VIR_DOMAIN_EVENT_RESUMED:
        return "resumed" if detail == libvirt.VIR_DOMAIN_EVENT_RESUMED_UNPAUSED else None
    return "on" if event == libvirt.VIR_DOMAIN_EVENT_STARTED else None


class Happenings:
    """The last of them, numbered. `epoch` is another one when the numbers begin anew."""

    def __init__(self) -> None:
        self._epoch = secrets.token_hex(8)
        self._added = threading.Condition()
        self._kept: deque[tuple[int, str, str]] = deque(maxlen=MOST_KEPT)
        self._last = 0
        self._is_told = False

    def add(self, uuid: str, what: str) -> None:
        with self._added:
            self._last += 1
            self._kept.append((self._last, uuid, what))
            self._added.notify_all()

    def after(self, epoch: str | None, number: int, seconds: float) -> dict[str, Any]:
        """Those after a number, as soon as there are any. Without an epoch, those that were not asked for yet."""
        with self._added:
            if epoch is None and self._is_told:
                return self._answer([])
            self._is_told = True
            first = number if epoch == self._epoch else 0
            self._added.wait_for(lambda: self._last > first, 0 if epoch is None else seconds)
            return self._answer([(uuid, what) for at, uuid, what in self._kept if at > first])

    def _answer(self, events: list[tuple[str, str]]) -> dict[str, Any]:
        return {"epoch": self._epoch, "last": self._last, "events": events}
