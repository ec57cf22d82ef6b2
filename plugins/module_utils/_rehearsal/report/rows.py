# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of VMs in the picture of a lab: above each the installer's bridge's wire, below it the provisioning bridge's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report.boxes import Unit
    from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report.svg import Sketch

DROP = 28
GAP = 12
TRUNK = 12
"""What the wire to the rows below the first takes at the side."""


class Rows:
    def __init__(self, sketch: Sketch, two_bridges: bool, edge: int, columns: int) -> None:
        self._sketch = sketch
        self._two_bridges = two_bridges
        self._columns = columns
        self._edge = edge
        self._left = edge + TRUNK
        right = sketch.width - edge - (TRUNK if two_bridges else 0)
        self._width = (right - self._left - GAP * (columns - 1)) // columns
        self._upper = 0
        self._lower: list[int] = []

    def draw(self, units: Sequence[Unit], bridge: int) -> int:
        """From the lower edge of the bridge; returns where the last row ends."""
        y = self._upper = bridge
        for number in range(0, len(units), self._columns):
            y = self._row(units[number : number + self._columns], y)
        return y

    def down_to(self, y: int) -> None:
        if self._lower:
            self._sketch.wire((self._right_trunk, self._lower[0]), (self._right_trunk, y), style="second")

    @property
    def _right_trunk(self) -> int:
        return self._sketch.width - self._edge - 2

    def _row(self, row: Sequence[Unit], y: int) -> int:
        centres = [self._left + self._width // 2 + place * (self._width + GAP) for place in range(len(row))]
        wire = y
        if y > self._upper:
            wire = y + GAP + 4
            trunk = self._edge + 2
            self._sketch.wire((trunk, self._upper), (trunk, wire), (centres[-1], wire))
            self._upper = wire
        top = wire + DROP
        high = max(unit.box.height(self._width) for unit in row)
        for unit, x in zip(row, centres):
            self._drop(unit.wire, x, wire, top)
            self._sketch.box(unit.box, x - self._width // 2, top, self._width, high)
        return self._lower_wire(row, centres, top + high) if self._two_bridges else top + high

    def _lower_wire(self, row: Sequence[Unit], centres: Sequence[int], y: int) -> int:
        wired = [(unit.lower_wire, x) for unit, x in zip(row, centres) if unit.lower_wire]
        wire = y + DROP
        for style, x in wired:
            self._drop(style, x, y, wire, "second")
        if wired:
            self._sketch.wire((wired[0][1], wire), (self._right_trunk, wire), style="second")
            self._lower.append(wire)
        return wire

    def _drop(self, style: str, x: int, start: int, end: int, usual: str = "") -> None:
        if style:
            self._sketch.wire((x, start), (x, end), style=usual if style == "up" else style)
        if style == "bad":
            self._sketch.break_mark(x, (start + end) // 2)
