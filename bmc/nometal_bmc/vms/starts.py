# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a VM may be started: at once, unless the host has more to do than it can. Then VMs start one after another."""

from __future__ import annotations

import ctypes
import os
import struct
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nometal_bmc.answers import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["GAP_SECONDS", "LONGEST_WAIT_SECONDS", "MOST_LOAD", "Starts", "load_per_core"]

AT_ONCE = 16
"""libvirtd has twenty threads, of which some are to be left for others."""
MOST_LOAD = 4.0
"""Per core: a guest that boots then has a quarter of a core for each of its own."""
GAP_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 30.0
"""Ironic expects a change of power within 60 seconds, of which the start itself needs some."""
LOOK_SECONDS = 0.25


def load_per_core() -> float:
    """Of the last minute. This system call needs no /proc/loadavg, which the broker's confinement hides."""
    found = ctypes.create_string_buffer(256)
    if ctypes.CDLL(None).sysinfo(found) != 0:
        return 0.0
    _uptime, load = struct.unpack_from("@lL", found)
    return float(load) / 2**16 / len(os.sched_getaffinity(0))


class Starts:
    """Of all VMs. Threads come in at once."""

    def __init__(self, load: Callable[[], float] = load_per_core, clock: Callable[[], float] = time.monotonic) -> None:
        self._load = load
        self._clock = clock
        self._changed = threading.Condition()
        self._last = clock() - GAP_SECONDS
        self._cancels: defaultdict[str, int] = defaultdict(int)
        self._slots = threading.BoundedSemaphore(AT_ONCE)

    @contextmanager
    def turn(self, uuid: str, *, patiently: bool = False) -> Iterator[None]:
        """Wait until this VM may be started, then do so."""
        self._wait(uuid, patiently)
        with self._slots:
            yield

    def cancel(self, uuid: str) -> None:
        """The VM is switched off: whoever waits to start it must not do so any more."""
        with self._changed:
            self._cancels[uuid] += 1
            self._changed.notify_all()

    def take(self, since: float, *, patiently: bool = False) -> bool:
        """Whether a VM may be started now that waits since then. If so, it counts as started.

        `patiently`: no client waits for it. It always leaves the gap, and an overload is to end before.
        """
        now = self._clock()
        overloaded, too_soon = self._load() > MOST_LOAD, now - self._last < GAP_SECONDS
        waits = overloaded or too_soon if patiently else overloaded and too_soon
        if waits and now - since < LONGEST_WAIT_SECONDS:
            return False
        self._last = now
        return True

    def _wait(self, uuid: str, patiently: bool) -> None:
        with self._changed:
            since, cancels = self._clock(), self._cancels[uuid]
            while not self.take(since, patiently=patiently):
                self._changed.wait(LOOK_SECONDS)
                if self._cancels[uuid] != cancels:
                    text = "The VM was switched off while its start waited, as the host is overloaded."
                    raise Refused(409, "GeneralError", text)
