# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the guests of a rehearsal say on their serial consoles."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import BOOTSTRAP
from ansible_collections.nometal.ipi.plugins.module_utils._observe import consoles

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab


@dataclass(frozen=True)
class Guest:
    domain: str
    console: Path


class Consoles:
    """Those of nodes hold earlier rehearsals, too, so it is noted where this one begins."""

    def __init__(self, lab: Lab) -> None:
        self._guests = {
            node.name: Guest(node.vm_name, consoles.CONSOLES / f"{node.vm_name}-console.log") for node in lab.nodes
        }
        name = lab.bootstrap_domain
        self._guests[BOOTSTRAP] = Guest(name, consoles.CONSOLES / f"{name}-serial0.log")
        self._begins: dict[Path, int] = {}

    def begin(self) -> None:
        """Before the bootstrap VM is made, which has a new one."""
        nodes = [guest.console for who, guest in self._guests.items() if who != BOOTSTRAP]
        self._begins = {path: path.stat().st_size for path in nodes if path.exists()}

    def guest(self, who: str) -> Guest:
        return self._guests[who]

    def lines(self, who: str) -> list[str]:
        """The last ones."""
        console = self._guests[who].console
        return consoles.console(console, self._begins.get(console, 0))

    def of(self, whose: Collection[str]) -> dict[str, list[str]]:
        told = {who: self.lines(who) for who in self._guests if who in whose}
        return {who: lines for who, lines in told.items() if lines}

    def last_words(self, who: str) -> str:
        """For a check that failed since the guest said nothing: how far it came, and how busy the host is."""
        lines = self.lines(who)
        said = f"its console ends with `{lines[-1].strip()}`" if lines else "its console is empty"
        return f"{said}; the host's load is {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"
