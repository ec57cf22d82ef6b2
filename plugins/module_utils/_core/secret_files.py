# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that not everybody may read: never for a moment readable by others, and never half written."""

from __future__ import annotations

import grp
import os
import pwd
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import names_its_path


@dataclass(frozen=True)
class Access:
    owner: str
    group: str
    mode: int

    def __str__(self) -> str:
        return f"{self.owner}:{self.group} {self.mode:04o}"


def access_of(path: Path) -> str | None:
    """None where there is no such file."""
    with suppress(FileNotFoundError):
        status = path.stat()
        return str(Access(_user_name(status.st_uid), _group_name(status.st_gid), status.st_mode & 0o7777))
    return None


def give(path: Path, access: Access) -> None:
    path.chmod(access.mode & 0o700)
    os.chown(path, *_numbers(access))
    path.chmod(access.mode)


def make_directory(path: Path, access: Access) -> None:
    files.make_directory(path, 0o700)
    give(path, access)


@names_its_path(lambda path, *_: path)
def write(path: Path, data: bytes, access: Access) -> None:
    draft = path.with_name(f".{path.name}.new")
    with suppress(FileNotFoundError):
        draft.unlink()
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
        os.fchown(file.fileno(), *_numbers(access))
        os.fchmod(file.fileno(), access.mode)
        os.fsync(file.fileno())  # or a power cut could leave the new name with nothing in it
    draft.replace(path)


def _numbers(access: Access) -> tuple[int, int]:
    return pwd.getpwnam(access.owner).pw_uid, grp.getgrnam(access.group).gr_gid


def _user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group_name(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
