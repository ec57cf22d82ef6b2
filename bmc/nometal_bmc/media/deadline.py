# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a download has to be over, and the means to end it earlier."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Callable

__all__ = ["Deadline"]


class Deadline:
    """Of one download. What it waits for then is cut off: a server that sends a byte now and then never stalls."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self._cut: Callable[[], None] | None = None

    @property
    def is_past(self) -> bool:
        return time.monotonic() >= self._end

    def end(self) -> None:
        """Let it be now."""
        self._end = 0.0
        cut = self._cut
        if cut is not None:
            cut()

    @contextmanager
    def over(self, connection: socket.socket) -> Iterator[None]:
        """Have the connection cut off in time, in whatever the download does with it."""

        def cut() -> None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

        self._cut = cut  # before the time is read, or `end` could go unseen between the two
        timer = threading.Timer(max(self._end - time.monotonic(), 0), cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            self._cut = None
            timer.cancel()
