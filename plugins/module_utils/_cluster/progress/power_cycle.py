# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switching a node whose boot hangs off and on again, once a run: a known trouble of overloaded hosts."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None

if TYPE_CHECKING:
    from pathlib import Path

FILE = "power-cycled.json"


@dataclass(frozen=True)
class Cycled:
    """Which nodes were, in a run of the installer. Noted first: who is killed in between must not do it again."""

    path: Path
    run: str

    def names(self) -> list[str]:
        with suppress(OSError, ValueError, TypeError, AttributeError):
            return [str(name) for name in json.loads(self.path.read_text(encoding="utf-8")).get(self.run, [])]
        return []

    def note(self, name: str) -> None:
        files.write_whole(self.path, json.dumps({self.run: [*self.names(), name]}) + "\n", 0o600)


def cycle(connection: Any, vm_name: str, name: str, cycled: Cycled) -> str:
    """What became of it; empty if it has had its turn."""
    if name in cycled.names():
        return ""
    cycled.note(name)
    try:
        connection.lookupByName(vm_name).reset(0)
    except libvirt.libvirtError as error:
        raise OperatorError(f"does not boot, and libvirt does not reset it: {error}") from error
    return "did not boot, and was reset. It will not be again in this run"
