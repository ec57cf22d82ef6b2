# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often a client may be wrong about a password: a few times freely, then after ever longer pauses."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

from nometal_bmc.sources import source_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Throttle"]

FREE_FAILURES = 8
LONGEST_PAUSE = 60.0
FORGOTTEN_AFTER = 15 * 60.0
BURST, SECONDS_PER_TRY = 40, 1.0  # for all accounts together that one source address tries
MOST_ENTRIES = 4096
NAME_LENGTH = 64
K = TypeVar("K")
V = TypeVar("V")


class Throttle:
    """Counts by source address and account, so that a guest who guesses keeps no other client out.

    Beside that, a source address has so many tries in a row and then one a second, whatever names it invents.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures: _Latest[tuple[str, str], tuple[int, float]] = _Latest()  # how many, and when the last one was
        self._sources: _Latest[str, float] = _Latest()  # when the source's tries will be paid for

    def pause(self, source: str, account: str) -> float:
        """Seconds until the next try is due; 0 when it may be made now."""
        with self._lock:
            now, (where, who) = self._clock(), _key(source, account)
            failures, last = self._recent((where, who), now)
            pause = min(2.0 ** (failures - FREE_FAILURES), LONGEST_PAUSE) if failures >= FREE_FAILURES else 0.0
            debt = self._sources.get(where, now) - now - (BURST - 1) * SECONDS_PER_TRY
            return max(last + pause - now if pause else 0.0, debt, 0.0)

    def failed(self, source: str, account: str) -> None:
        with self._lock:
            now, (where, who) = self._clock(), _key(source, account)
            failures, _last = self._recent((where, who), now)
            self._failures.put((where, who), (failures + 1, now))
            self._sources.put(where, max(now, self._sources.get(where, now)) + SECONDS_PER_TRY)

    def succeeded(self, source: str, account: str) -> None:
        """Forget the failures, and with them one that was noted before the outcome was known."""
        with self._lock:
            where, who = _key(source, account)
            self._failures.drop((where, who))
            self._sources.put(where, self._sources.get(where, self._clock()) - SECONDS_PER_TRY)

    def _recent(self, key: tuple[str, str], now: float) -> tuple[int, float]:
        failures, last = self._failures.get(key, (0, now))
        return (failures, last) if now - last < FORGOTTEN_AFTER else (0, now)


class _Latest(Generic[K, V]):
    """A table that loses what was not written for the longest time."""

    def __init__(self) -> None:
        self._entries: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K, default: V) -> V:
        return self._entries.get(key, default)

    def put(self, key: K, value: V) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > MOST_ENTRIES:
            self._entries.popitem(last=False)

    def drop(self, key: K) -> None:
        self._entries.pop(key, None)


def _key(source: str, account: str) -> tuple[str, str]:
    return source_of(source), account[:NAME_LENGTH]
