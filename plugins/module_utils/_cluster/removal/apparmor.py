# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What AppArmor must know of the installer's bootstrap VM: a line in the file that it has for local additions.

libvirt tells AppArmor of a VM's disks, and neither of a file that QEMU is handed on its command line, which the
bootstrap VM's ignition is, nor of every image that another is based on.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.removal.bootstrap import POOLS
from ansible_collections.nometal.ipi.plugins.module_utils._core import directories, files
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import locked, nothing
from ansible_collections.nometal.ipi.plugins.module_utils._observe import infra

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths

OF_VMS = Path("/etc/apparmor.d/abstractions/libvirt-qemu")
LOCAL = Path("/etc/apparmor.d/local/abstractions/libvirt-qemu")
MAY_BE_MISSING = f"include if exists <{LOCAL.relative_to('/etc/apparmor.d')}>"
RULE = '  "{pools}/{base}-?????-bootstrap/*" rwk,'


def allow(paths: Paths) -> None:
    """For VMs that start from now on. Nothing where AppArmor has no rules for VMs."""
    if not OF_VMS.exists():
        return
    rule = RULE.format(pools=POOLS, base=infra.base_of(paths.lab)) + _mark(paths)
    with _alone():
        directories.make(LOCAL.parent)
        files.write_whole(LOCAL, "".join([*_others(paths), f"{rule}\n"]), 0o644)


def is_allowed(paths: Paths) -> bool:
    return any(_mark(paths) in line for line in _lines())


def withdraw(paths: Paths) -> None:
    with _alone():
        others = _others(paths)
        if others or _has_to_be_there():
            files.write_whole(LOCAL, "".join(others), 0o644)
            return
        files.remove(LOCAL)
        directories.unmake(LOCAL.parent)


def _alone() -> AbstractContextManager[bool]:
    """Other labs have their lines in the same file. The directory that is always there is the lock."""
    return locked(OF_VMS.parents[1], until_free=nothing)


def _has_to_be_there() -> bool:
    return OF_VMS.exists() and MAY_BE_MISSING not in OF_VMS.read_text(encoding="utf-8")


def _mark(paths: Paths) -> str:
    return f"  # nometal.ipi, lab {paths.lab}."


def _others(paths: Paths) -> list[str]:
    return [line for line in _lines() if _mark(paths) not in line]


def _lines() -> list[str]:
    with suppress(FileNotFoundError):
        return LOCAL.read_text(encoding="utf-8").splitlines(keepends=True)
    return []
