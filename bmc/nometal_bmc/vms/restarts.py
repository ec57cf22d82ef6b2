# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Graceful restarts that clients have asked for, until the guest restarts or has had its time."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Restarts"]


class Restarts:
    """By UUID, when each is to be over. A guest that was asked twice has its time from the first."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._ends: dict[str, float] = {}

    def expect(self, uuid: str, seconds: float) -> None:
        with self._lock:
            self._ends.setdefault(uuid, self._clock() + seconds)

    def forget(self, uuid: str) -> None:
        """It has restarted, or was switched off, or never heard of it."""
        with self._lock:
            self._ends.pop(uuid, None)

    def take_due(self) -> list[str]:
        """Those whose time is over; each is returned once."""
        with self._lock:
            due = [uuid for uuid, end in self._ends.items() if end <= self._clock()]
            for uuid in due:
                del self._ends[uuid]
        return due
