# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Large files on a disk that may be full."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MB = 1000 * 1000
FULL = (errno.ENOSPC, errno.EDQUOT)


def megabytes(size: int) -> int:
    return -(-size // MB)


def require_room(directory: Path, size: int, what: str) -> None:
    disk = os.statvfs(directory)
    free = disk.f_bavail * disk.f_frsize
    if size > free:
        raise _no_room(directory, f"{what} takes {megabytes(size)} MB, of which {free // MB} MB are free")


@contextmanager
def writing(file: Path, what: str) -> Iterator[None]:
    """What did not fit is taken away, for others may need the little room that there is."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise OperatorError(f"{what} cannot be written to {file}: {error.strerror or error}.") from error
        file.unlink(missing_ok=True)
        raise _no_room(file.parent, f"{what} did not fit and was removed") from error


def _no_room(directory: Path, why: str) -> OperatorError:
    return OperatorError(
        f"There is not enough room in {directory}: {why}. Free some, or give installer_tools another path."
    )
