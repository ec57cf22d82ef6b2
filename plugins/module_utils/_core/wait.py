# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for something that is not announced: by looking again and again, until the time for it is over."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class Clock:
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


CLOCK = Clock()


class Timer:
    """Of something that may take so many seconds from now on."""

    def __init__(self, limit: float, clock: Clock = CLOCK) -> None:
        self._limit, self._now, self._begun = limit, clock.now, clock.now()

    @property
    def seconds(self) -> float:
        """That have gone by."""
        return self._now() - self._begun

    @property
    def left(self) -> float:
        return self._limit - self.seconds

    @property
    def is_over(self) -> bool:
        return self.left < 0


def looks(seconds: float, pause: float, clock: Clock = CLOCK) -> Iterator[Timer]:
    """For one look each, at least one. It ends when the time is over: what follows the loop says so."""
    timer = Timer(seconds, clock)
    while True:
        yield timer
        if timer.is_over:
            return
        clock.sleep(pause)


def comes_true(condition: Callable[[], bool], seconds: float, pause: float = 0.1, clock: Clock = CLOCK) -> bool:
    return any(condition() for _look in looks(seconds, pause, clock))


def require(
    condition: Callable[[], bool],
    seconds: float,
    complaint: Callable[[], str],
    pause: float = 0.1,
    clock: Clock = CLOCK,
) -> None:
    if not comes_true(condition, seconds, pause, clock):
        raise OperatorError(complaint())
