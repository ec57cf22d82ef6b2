# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Directories of the host in which labs have files, and which a host may lack: who makes them notes that.

With the last lab those go, unless others have something in them by then.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._host import files
from ansible_collections.nometal.ipi.plugins.module_utils._host.memory import HostMemory

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


def remove(memory: HostMemory) -> None:
    """What lies below another comes first."""
    for directory in sorted(memory.recall().get(TOPIC, {}), reverse=True):
        files.remove_empty(Path(directory))
