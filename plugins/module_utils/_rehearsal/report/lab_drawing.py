# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The picture of a lab as it is: host, bridges, veth pair, VMs and BMC service. For wide and for narrow screens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import HOST
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report import boxes
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report.boxes import Subject
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report.rows import Rows
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report.svg import LINE, Sketch
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report.troubles import UPLINK, spot

EDGE = 14
GAP = 12
VETH = 124
TITLE = 42
FIRST = 60


@dataclass(frozen=True)
class Layout:
    """`places` has x and width of the uplink, the network and the BMC service; `veth` is where the network goes on.

    `title` is where the host's name stands, beside the arrow that leaves the host.
    """

    style: str
    width: int
    columns: int
    places: tuple[tuple[int, int], ...]
    veth: int
    title: tuple[int, int]
    arrow: int


WIDE = Layout("wide", 1120, 6, ((14, 250), (344, 350), (774, 332)), 400, (16, 190), 240)
NARROW = Layout("narrow", 350, 2, ((14, 124), (14, 322), (150, 186)), 60, (150, 186), 76)


def svg(report: Mapping[str, Any]) -> str:
    subject = Subject(report)
    return "".join(_Drawing(subject, layout).svg() for layout in (WIDE, NARROW))


class _Drawing:
    def __init__(self, subject: Subject, layout: Layout) -> None:
        self._subject = subject
        self._layout = layout
        self._sketch = Sketch(layout.width)
        self._uplink_style = "none" if not subject.picture["uplinks"] else "bad" if subject.labels(UPLINK) else ""

    def svg(self) -> str:
        sketch, layout, subject = self._sketch, self._layout, self._subject
        y = (self._beside if layout is WIDE else self._stacked)(self._head())
        y = sketch.box(boxes.bridge(subject), EDGE, self._way_to_bridge(y), layout.width - 2 * EDGE)
        rows = Rows(sketch, subject.provisioning is not None, EDGE, layout.columns)
        y = self._provisioning(rows, rows.draw(list(boxes.units(subject)), y)) + EDGE
        sketch.frame(1, 20, layout.width - 2, y - 20)
        return sketch.svg(y + 2, boxes.about(subject), layout.style)

    def _head(self) -> int:
        """The host's name, and what is wrong with the host as a whole."""
        x, room = self._layout.title
        self._sketch.text(f"host {self._subject.host}", (x, TITLE), "title", room=room)
        y = FIRST
        for label in self._subject.labels(HOST):
            y = self._sketch.label(label, x, y, room) + LINE // 2
        return y

    def _beside(self, y: int) -> int:
        (left, wide), (middle, network_wide), (right, _bmc_wide) = self._layout.places
        three = self._three()
        high = max(box.height(width) for box, (_x, width) in zip(three, self._layout.places))
        for box, (x, width) in zip(three, self._layout.places):
            self._sketch.box(box, x, y, width, high)
        self._leave_host(y)
        self._forward((left + wide, y + 26), (middle, y + 26))
        self._sketch.wire((middle + network_wide, y + 26), (right, y + 26), style="thin")
        return y + high

    def _stacked(self, y: int) -> int:
        (left, wide), (network_left, network_wide), (right, bmc_wide) = self._layout.places
        uplink, network, bmc = self._three()
        high = max(uplink.height(wide), bmc.height(bmc_wide))
        self._sketch.box(uplink, left, y, wide, high)
        self._sketch.box(bmc, right, y, bmc_wide, high)
        self._leave_host(y)
        top = y + high + 30
        self._forward((left + wide // 2, y + high), (left + wide // 2, top))
        self._sketch.wire((right + bmc_wide // 2, y + high), (right + bmc_wide // 2, top), style="thin")
        return self._sketch.box(network, network_left, top, network_wide)

    def _three(self) -> tuple[boxes.Box, boxes.Box, boxes.Box]:
        subject = self._subject
        return boxes.uplink(subject), boxes.network(subject, subject.machine), boxes.bmc(subject)

    def _leave_host(self, y: int) -> None:
        x = self._layout.arrow
        self._sketch.wire((x, y), (x, 5), style=self._uplink_style)
        self._sketch.wire((x - 5, 11), (x, 5), (x + 5, 11), style=self._uplink_style)

    def _forward(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        """From the uplink to the network, if the network is forwarded."""
        word = self._subject.forward
        x, y = (start[0] + end[0]) // 2, (start[1] + end[1]) // 2
        self._sketch.wire(start, end, style=self._uplink_style if word else "none")
        if start[0] == end[0]:
            self._sketch.text(word, (x + 9, y + 4), "plain")
        else:
            self._sketch.text(word, (x, y - 7), "plain", anchor="middle")

    def _way_to_bridge(self, y: int) -> int:
        pair, x = self._subject.veth_pair, self._layout.veth
        if pair is None:
            self._sketch.wire((x, y), (x, y + 30), style="" if self._subject.joined else "none")
            return y + 30
        middle = y + VETH // 2
        self._end_of_pair(pair["ends"][0]["name"], (y, middle - 3), y + 19)
        self._end_of_pair(pair["ends"][1]["name"], (middle + 3, y + VETH), middle + 26)
        for height in (middle - 3, middle + 3):
            self._sketch.wire((x - 9, height), (x + 9, height))
        self._sketch.text(boxes.about_pair(self._subject), (x + 18, middle + 4), "plain")
        return y + VETH

    def _end_of_pair(self, name: str, span: tuple[int, int], y: int) -> None:
        labels, x = self._subject.labels(spot("link", name)), self._layout.veth
        missing = labels and not self._subject.link(name)
        self._sketch.wire((x, span[0]), (x, span[1]), style="none" if missing else "bad" if labels else "")
        self._sketch.text(name, (x + 18, y), "mono")
        if labels:
            self._sketch.break_mark(x, sum(span) // 2)
            self._sketch.label("; ".join(labels), x + 18, y + LINE, self._layout.width - x - 18 - 2 * EDGE)

    def _provisioning(self, rows: Rows, y: int) -> int:
        if self._subject.provisioning is None:
            return y
        top = y + 2 * GAP
        rows.down_to(top)
        box = boxes.network(self._subject, self._subject.provisioning)
        return self._sketch.box(box, EDGE, top, self._layout.width - 2 * EDGE)
