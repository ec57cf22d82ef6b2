# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How those who work for a request learn that it is to end: its client is gone, or the service stops."""

from __future__ import annotations

import threading
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Callable

    from nometal_bmc.answers import Refused

__all__ = ["CANCELLATION", "Cancellation"]

CANCELLATION = "nometal_bmc.cancellation"
"""Where a request's is in its WSGI environment."""
T = TypeVar("T")


class Cancellation:
    """Of one request. It is cancelled once, and the first reason counts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._why: Refused | None = None
        self._calls: list[Callable[[Refused], object]] = []

    def cancel(self, why: Refused) -> None:
        with self._lock:
            if self._why is not None:
                return
            self._why, calls = why, self._calls
        for call in calls:
            call(why)

    def check(self) -> None:
        if self._why is not None:
            raise self._why

    @contextmanager
    def calling(self, call: Callable[[Refused], object]) -> Iterator[None]:
        """Have it called, from whichever thread cancels; at once if that has happened."""
        with self._lock:
            self._calls = [*self._calls, call]
            why = self._why
        if why is not None:
            call(why)
        try:
            yield
        finally:
            with self._lock:
                self._calls = [other for other in self._calls if other is not call]

    def wait_for(self, other: Future[T]) -> T:
        """What comes of it; raise the reason as soon as there is one."""
        mine: Future[T] = Future()

        def take(done: Future[T]) -> None:
            with suppress(InvalidStateError):
                mine.set_result(done.result())

        def give_up(why: Refused) -> None:
            with suppress(InvalidStateError):
                mine.set_exception(why)

        other.add_done_callback(take)
        with self.calling(give_up):
            return mine.result()
