# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import gzip
import shutil
import tarfile
import zlib
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import disk as tools_disk
from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from pathlib import Path

BLOCK = 1024 * 1024
# A link that leads nowhere is a KeyError.
BROKEN = (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, KeyError)


def take(tarball: Path, program: str, to: Path, called: str) -> None:
    """Only this file's content: whatever else is in there, and wherever it wants to go, stays there."""
    try:
        with tarfile.open(tarball) as archive:
            content, size = _find(archive, program, called)
            tools_disk.require_room(to.parent, size, program)
            with tools_disk.writing(to, program), files.whole(to, 0o755) as file:
                _copy(content, file, called)
    except BROKEN as error:
        raise _broken(called, error) from error


def _find(archive: tarfile.TarFile, program: str, called: str) -> tuple[IO[bytes], int]:
    for member in archive:
        if PurePosixPath(member.name) == PurePosixPath(program):
            content = archive.extractfile(member)
            if content:
                return content, member.size
    raise OperatorError(
        f"{called} has no program {program} in it, so it is not what its name says. Try another source."
    )


def _copy(content: IO[bytes], file: IO[bytes], called: str) -> None:
    try:
        shutil.copyfileobj(content, file, BLOCK)
    except BROKEN as error:
        raise _broken(called, error) from error


def _broken(called: str, error: Exception) -> OperatorError:
    return OperatorError(
        f"{called} is no whole tarball: {error}. Its checksum is right, so the source is wrong: try another."
    )
