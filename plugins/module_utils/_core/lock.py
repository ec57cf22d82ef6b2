# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One process at a time, by a lock that the kernel gives up with the process that holds it."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._core import files, wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

RUN = Path("/run/nometal")
LOCKS = RUN / "locks"
ROOT_ALONE = 0o700

Act = Callable[[], None]


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Others wait who want the same. The file of the lock is removed by whoever has it, so that none is left."""

    def make() -> None:
        with suppress(FileNotFoundError):  # another one has just removed the directory
            files.make_directory(path.parent, ROOT_ALONE)
            files.open_kept(path, 0o600).close()

    with locked(path, make, until_free=nothing):
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            for directory in (LOCKS, RUN):
                files.remove_empty(directory)


@contextmanager
def one_at_a_time(module: str, *, check_mode: bool) -> Iterator[None]:
    """Whoever calls it: what one call has read, another must not change before the first one acts on it."""
    with nullcontext() if check_mode or os.geteuid() else alone(LOCKS / f".{module}"):
        yield


@contextmanager
def locked(
    path: Path, make: Act | None = None, *, shared: bool = False, until_free: Act | None = None
) -> Iterator[bool]:
    """A file or directory, for as long as it is at this path: whether it is locked now.

    Not if it is missing and nothing makes it; nor if others have the lock and it is not waited for, before which
    `until_free` is called.
    """
    descriptor = _locked(path, make, shared, until_free)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def is_taken(file: int | TextIO, *, shared: bool = False) -> bool:
    """Whether others have it; otherwise this has it from now on, until the file is closed."""
    return not _takes(file, shared, None)


def is_held(path: Path) -> bool:
    """Whether anybody has it. Those who ask at once do not take one another for the holder."""
    with suppress(FileNotFoundError), path.open(encoding="ascii") as file:
        return is_taken(file, shared=True)
    return False


def take(
    file: TextIO, seconds: float, complaint: Callable[[], str], meanwhile: Act | None = None, pause: float = 0.1
) -> None:
    """Of a file that stays. Others are waited for that long; meanwhile, they may be asked to end."""
    for look in wait.looks(seconds, pause):
        if not is_taken(file):
            return
        if meanwhile and not look.is_over:
            meanwhile()
    raise OperatorError(complaint())


def nothing() -> None:
    pass


def _locked(path: Path, make: Act | None, shared: bool, until_free: Act | None) -> int | None:
    while True:
        if make:
            make()
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            if make:
                continue
            return None
        try:
            has_lock = _takes(descriptor, shared, until_free)
            if has_lock and _is_still(path, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if not has_lock:
            return None  # otherwise, whoever had the lock has removed the file


def _takes(file: int | TextIO, shared: bool, until_free: Act | None) -> bool:
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        if until_free is None:
            return False
        until_free()
        fcntl.flock(file, kind)
    return True


def _is_still(path: Path, descriptor: int) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    return False
