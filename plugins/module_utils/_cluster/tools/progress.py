# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.disk import megabytes
from ansible_collections.nometal.ipi.plugins.module_utils._core.events import EventLog

if TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.download import Told

PAUSE = 3.0  # seconds


class Progress:
    """For those who follow, if anybody does."""

    def __init__(self, events: Path | None) -> None:
        self._log = EventLog(events) if events else None

    def say(self, who: str, state: str) -> None:
        if self._log:
            self._log.note(who, state)

    def of_download(self, who: str) -> Told:
        last = 0.0

        def told(there: int, total: int | None) -> None:
            nonlocal last
            now = time.monotonic()
            if there == total or now - last >= PAUSE:
                last = now
                of = f" of {megabytes(total)}" if total is not None else ""
                self.say(who, f"downloads {megabytes(there)}{of} MB")

        return told
