# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may use /dev/kvm."""

from __future__ import annotations

import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._core.files import group_name

DEVICE = Path("/dev/kvm")


@dataclass(frozen=True)
class KvmDevice:
    group: str
    mode: str
    """In octal digits."""
    group_writes: bool
    others_write: bool


def kvm_device() -> KvmDevice | None:
    with suppress(FileNotFoundError):
        status = DEVICE.stat()
        mode = stat.S_IMODE(status.st_mode)
        return KvmDevice(
            group=group_name(status.st_gid),
            mode=f"{mode:04o}",
            group_writes=bool(mode & stat.S_IWGRP),
            others_write=bool(mode & stat.S_IWOTH),
        )
    return None
