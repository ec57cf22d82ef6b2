# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One process at a time, by a lock that the kernel gives up with the process that holds it."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core import files

if TYPE_CHECKING:
    from collections.abc import Iterator

RUN = Path("/run/nometal")
LOCKS = RUN / "locks"
ROOT_ALONE = 0o700


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Others wait who want the same. The file of the lock is removed by whoever has it, so that none is left."""
    descriptor = _locked(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)
        for directory in (LOCKS, RUN):
            with suppress(OSError):  # others have something in it
                directory.rmdir()


@contextmanager
def one_at_a_time(module: str, *, check_mode: bool) -> Iterator[None]:
    """Whoever calls it: what one call has read, another must not change before the first one acts on it."""
    with nullcontext() if check_mode or os.geteuid() else alone(LOCKS / f".{module}"):
        yield


def _locked(path: Path) -> int:
    while True:
        try:
            files.make_directory(path.parent, ROOT_ALONE)
            with files.umask(0o077):
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:  # another one has just removed the directory
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_still(path, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # whoever had the lock has removed its file


def _is_still(path: Path, descriptor: int) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    return False
