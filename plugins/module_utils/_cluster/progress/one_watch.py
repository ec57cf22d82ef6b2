# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Only one watches an installation: who comes later takes over."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import running
from ansible_collections.nometal.ipi.plugins.module_utils._core import files, wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import is_held, take

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENDING_SECONDS = 60


class TakenOver(BaseException):
    """Another run watches from now on. As SystemExit, it is not caught where errors are."""


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    files.make_directory(lock.parent)
    with files.open_kept(lock, 0o600) as file:
        take(file, ENDING_SECONDS, lambda: _complaint(lock), meanwhile=lambda: _end_holders(lock))
        signal.signal(signal.SIGTERM, _taken_over)
        yield


def end(lock: Path) -> None:
    """What has the lock is asked to end, and waited for."""

    def has_ended() -> bool:
        was_held = is_held(lock)
        if was_held:
            _end_holders(lock)
        return not was_held

    wait.require(has_ended, ENDING_SECONDS, lambda: _complaint(lock))


def _taken_over(_number: int, _frame: Any) -> None:
    raise TakenOver


def _end_holders(lock: Path) -> None:
    for pid in running.holders(lock):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


def _complaint(lock: Path) -> str:
    return f"Another run of this lab does not end, process {', '.join(map(str, running.holders(lock)))}: end it."
