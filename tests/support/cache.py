"""Where the bench keeps what is dear to make: Debian trees, packages, ssh keys. It may be deleted at any time."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def cache_dir() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    path = Path(base) / "nometal-ipi"
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def locked(name: str) -> Iterator[None]:
    """One process at a time; the kernel drops the lock of a killed one."""
    with (cache_dir() / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def made_once(path: Path, lock: str, make: Callable[[], None]) -> Path:
    """What never changes afterwards: the first who needs it makes it, and others wait."""
    if not path.exists():
        with locked(lock):
            if not path.exists():
                make()
    return path
