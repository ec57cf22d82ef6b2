# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that this service writes and reads again after a restart."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["OWNER_ONLY", "signature", "write_whole"]

OWNER_ONLY = 0o600


def write_whole(file: Path, data: bytes, mode: int = 0o666) -> None:
    """All of it or nothing, also when the host loses its power; the mode is less the umask."""
    new = file.with_name(f".{file.name}.new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as written:
        written.write(data)
        written.flush()
        os.fsync(written.fileno())
    new.replace(file)
    directory = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)  # else a power cut may bring back the file of before
    finally:
        os.close(directory)


def signature(file: Path) -> tuple[int, ...]:
    """Another one after each change of the file; empty if it is not there."""
    try:
        status = file.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_mtime_ns, status.st_size
