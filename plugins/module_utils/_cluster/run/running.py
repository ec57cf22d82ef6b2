# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock that the runner takes and the installer inherits: which processes share it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def holders(lock: Path) -> Iterator[int]:
    """Processes that share it, and not those that only ask whether it is held."""
    with suppress(FileNotFoundError):
        wanted = lock.stat()
        for directory in Path("/proc").glob("[0-9]*/fd"):
            with suppress(OSError):  # it has ended
                if any(_holds(Path(entry.path), wanted) for entry in os.scandir(directory)):
                    yield int(directory.parent.name)


def _holds(descriptor: Path, lock: os.stat_result) -> bool:
    with suppress(OSError):
        if not os.path.samestat(descriptor.stat(), lock):
            return False
        information = descriptor.parents[1] / "fdinfo" / descriptor.name
        return " WRITE " in information.read_text(encoding="ascii", errors="replace")
    return False


def runs(pid: int, program: Path) -> bool:
    with suppress(OSError):
        return os.fsencode(program) in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return False
