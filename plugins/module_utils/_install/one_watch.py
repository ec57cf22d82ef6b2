# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Only one watches an installation: who comes later takes over."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENDING_SECONDS = 60


class TakenOver(BaseException):
    """Somebody else watches from now on. As SystemExit, it is no error that anybody could suppress."""


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a+", encoding="ascii") as file:
        _take(file)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        signal.signal(signal.SIGTERM, _taken_over)
        yield


def _taken_over(_number: int, _frame: Any) -> None:
    raise TakenOver


def _take(lock: TextIO) -> None:
    deadline = time.monotonic() + ENDING_SECONDS
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _ask_to_end(lock)
        if time.monotonic() > deadline:
            raise OperatorError(f"Another watch of this lab does not end, process {_holder(lock)}: end it.")
        time.sleep(0.1)


def _ask_to_end(lock: TextIO) -> None:
    with suppress(ProcessLookupError, ValueError):
        os.kill(int(_holder(lock)), signal.SIGTERM)


def _holder(lock: TextIO) -> str:
    lock.seek(0)
    return lock.read().strip()
