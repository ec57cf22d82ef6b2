# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may use /dev/kvm."""

from __future__ import annotations

import grp
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

DEVICE = Path("/dev/kvm")


@dataclass(frozen=True)
class KvmDevice:
    group: str
    """Its number, where it has no name."""
    mode: str
    """In octal digits."""
    group_writes: bool
    others_write: bool


def kvm_device() -> KvmDevice | None:
    with suppress(FileNotFoundError):
        status = DEVICE.stat()
        mode = stat.S_IMODE(status.st_mode)
        return KvmDevice(
            group=_group_name(status.st_gid),
            mode=f"{mode:04o}",
            group_writes=bool(mode & stat.S_IWGRP),
            others_write=bool(mode & stat.S_IWOTH),
        )
    return None


def _group_name(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
