# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a BMC does after it has answered, one thing after the other."""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import Callable

from nometal_bmc.answers import Refused
from nometal_bmc.ipmi.commands import Code, Declined

LOG = logging.getLogger(__name__)
MOST_WAITING = 8


class Work:
    """A queue and the thread that works it off."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._waiting: queue.Queue[tuple[str, Callable[[], object]]] = queue.Queue(MOST_WAITING)

    def start(self) -> None:
        threading.Thread(target=self._run, name="work", daemon=True).start()

    def ended(self, seconds: float) -> bool:
        """Has all that was asked for ended, at the latest after these seconds?"""
        with self._waiting.all_tasks_done:
            return self._waiting.all_tasks_done.wait_for(lambda: not self._waiting.unfinished_tasks, seconds)

    def add(self, name: str, action: Callable[[], object]) -> None:
        """Do this when all that was asked for before has ended."""
        try:
            self._waiting.put_nowait((name, action))
        except queue.Full:
            raise Declined(Code.BUSY) from None

    def _run(self) -> None:
        while True:
            name, action = self._waiting.get()
            started = time.monotonic()
            try:
                action()
                LOG.info("%s: %s: ended after %.0f ms", self._node, name, (time.monotonic() - started) * 1000)
            except Refused as error:
                LOG.error("%s: %s: failed: %s", self._node, name, error)  # noqa: TRY400 - the text says it all
            except Exception:
                LOG.exception("%s: %s: failed", self._node, name)
            finally:
                self._waiting.task_done()
