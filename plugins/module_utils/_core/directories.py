# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Directories of the host in which labs have files, and which a host may lack: who makes them notes that.

Those go with what was in them, or with the last lab, unless others have something in them by then. What was there
before stays, also when it is empty.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.host_baseline import HostMemory

if TYPE_CHECKING:
    from collections.abc import Iterable

TOPIC = "directories"
MEMORY = HostMemory(Path("/var/lib/nometal/host.json"))


def make(directory: Path) -> None:
    note([directory], MEMORY)
    files.make_directory(directory)


def note(directories: Iterable[Path], memory: HostMemory) -> None:
    missing = [each for directory in directories for each in (directory, *directory.parents) if not each.exists()]
    memory.note({TOPIC: {str(each): "missing" for each in missing}})


def make_own(directory: Path) -> None:
    """As files.own_directory, where directories above it may be missing, too."""
    note([directory.parent], MEMORY)
    files.own_directory(directory)


def is_noted(directory: Path) -> bool:
    return str(directory) in MEMORY.recall().get(TOPIC, {})


def unmake(directory: Path) -> None:
    """With those above it, as long as they are noted and empty."""
    gone = []
    for each in (directory, *directory.parents):
        if not is_noted(each):
            break
        files.remove_empty(each)
        if each.exists():
            break
        gone.append(str(each))
    if gone:
        MEMORY.forget(TOPIC, gone)


def remove(memory: HostMemory) -> None:
    """What lies below another comes first."""
    for directory in sorted(memory.recall().get(TOPIC, {}), reverse=True):
        files.remove_empty(Path(directory))
