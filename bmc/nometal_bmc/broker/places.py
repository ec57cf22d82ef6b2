# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many calls there may be about one VM: those about a VM whose QEMU has stopped do not end."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Callable

from nometal_bmc.vms.domains import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nometal_bmc.answers import Refused

__all__ = ["Places"]

MOST_CALLS = 6


class Places:
    """Refuses at once what would only wait: when there are many calls already, or one of them has hung."""

    def __init__(self, refusal: Callable[[str], Refused], clock: Callable[[], float] = time.monotonic) -> None:
        self._refusal = refusal
        self._clock = clock
        self._lock = threading.Lock()
        self._begun: defaultdict[str, list[float]] = defaultdict(list)

    @contextmanager
    def take(self, uuid: str, *, long: bool) -> Iterator[None]:
        """`long`: it may take its time without having hung."""
        now = self._clock()
        begun = float("inf") if long else now
        with self._lock:
            calls = self._begun[uuid]
            if len(calls) >= MOST_CALLS or (calls and now - min(calls) > PATIENCE_SECONDS):
                raise self._refusal(uuid)
            calls.append(begun)
        try:
            yield
        finally:
            with self._lock:
                calls.remove(begun)
