# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab as a drawing: the host's boxes above, the installer's bridge as a bar, the VMs in rows below. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import HOST
from ansible_collections.nometal.ipi.plugins.module_utils._core.wording import cut
from ansible_collections.nometal.ipi.plugins.plugin_utils.rehearsal_report import boxes
from ansible_collections.nometal.ipi.plugins.plugin_utils.rehearsal_report.boxes import Box, Lab
from ansible_collections.nometal.ipi.plugins.plugin_utils.rehearsal_report.findings import UPLINK

# What a letter of each style takes at most, in the fonts that the style sheet names.
LETTER = {"title": 7.4, "mono": 6.7, "mono second": 6.7, "plain": 6.1, "label": 7.2}
LINE, PAD = 16, 9
EDGE, GAP, DROP, TRUNK, VETH = 14, 12, 28, 12, 124
"""Beside everything; between boxes; from a wire to a box; for the wires to further rows; between network and bridge."""
TITLE, FIRST = 42, 60
MOST_LINES = 3

Point = tuple[int, int]


@dataclass(frozen=True)
class Layout:
    style: str
    width: int
    columns: int
    places: tuple[Point, Point, Point]
    """Left edge and width of the uplink, the network and the BMC service."""
    veth: int
    """Where the network goes on to the bridge."""
    title: Point
    """Left edge and width of the host's name, beside the arrow that leaves the host."""
    arrow: int
    stacked: bool = False
    """The network is below the other two."""


WIDE = Layout("wide", 1120, 6, ((14, 250), (344, 350), (774, 332)), 400, (16, 190), 240)
NARROW = Layout("narrow", 350, 2, ((14, 124), (14, 322), (150, 186)), 60, (150, 186), 76, stacked=True)


@dataclass(frozen=True)
class Text:
    x: int
    y: int
    style: str
    whole: str
    shown: str
    is_centred: bool = False


@dataclass(frozen=True)
class Rect:
    x: int
    y: int
    width: int
    height: int
    style: str


@dataclass(frozen=True)
class Wire:
    points: tuple[Point, ...]
    style: str


def drawings(picture: Mapping[str, Any], checks: Sequence[Mapping[str, Any]]) -> list[Drawing]:
    lab = Lab(picture, checks)
    return [Drawing(lab, layout) for layout in (WIDE, NARROW)]


class Drawing:
    def __init__(self, lab: Lab, layout: Layout) -> None:
        self._lab, self._layout = lab, layout
        self.style, self.width, self.host = layout.style, layout.width, lab.picture["host"]
        self.bridge, self.vms = lab.bridge, len(lab.picture["vms"])
        self.texts: list[Text] = []
        self.rects: list[Rect] = []
        self.wires: list[Wire] = []
        self.breaks: list[Point] = []
        y = self._way_to_bridge(self._top(self._head()))
        y = self._rows(self._box(boxes.bridge(lab), EDGE, y, self.width - 2 * EDGE))
        self.height = y + EDGE + 2

    def _head(self) -> int:
        """The host's name, and what is wrong with the host as a whole."""
        x, room = self._layout.title
        self._text(f"host {self.host}", x, TITLE, "title", room)
        y = FIRST
        for label in self._lab.labels(HOST):
            y = self._label(label, x, y, room) + LINE // 2
        return y

    def _top(self, y: int) -> int:
        """The uplink, from which the network may be forwarded, the network, and the BMC service."""
        (left, uplink_wide), (middle, wide), (right, bmc_wide) = self._layout.places
        uplink, bmc = boxes.uplink(self._lab), boxes.bmc(self._lab)
        network = boxes.network(self._lab, self._lab.machine)
        high = max(height(uplink, uplink_wide), height(bmc, bmc_wide))
        top, end = y, y + 26
        forward, service = ((left + uplink_wide, end), (middle, end)), ((middle + wide, end), (right, end))
        if self._layout.stacked:
            top, end = y + high + 30, y + high
            x, bmc_x = left + uplink_wide // 2, right + bmc_wide // 2
            forward, service = ((x, end), (x, top)), ((bmc_x, end), (bmc_x, top))
        else:
            high = max(high, height(network, wide))
        self._box(uplink, left, y, uplink_wide, high)
        self._box(bmc, right, y, bmc_wide, high)
        self._way_out(y, *forward)
        self._wire(*service, style="thin")
        return self._box(network, middle, top, wide, 0 if self._layout.stacked else high)

    def _way_out(self, y: int, start: Point, end: Point) -> None:
        """The arrow that leaves the host, and the wire from the uplink to the network if the network is forwarded."""
        x, lab = self._layout.arrow, self._lab
        style = "none" if not lab.picture["uplinks"] else "bad" if lab.labels(UPLINK) else ""
        self._wire((x, y), (x, 5), style=style)
        self._wire((x - 5, 11), (x, 5), (x + 5, 11), style=style)
        self._wire(start, end, style=style if lab.forward else "none")
        x, y = (start[0] + end[0]) // 2, (start[1] + end[1]) // 2
        at = (x + 9, y + 4) if self._layout.stacked else (x, y - 7)
        self.texts.append(Text(*at, "plain", lab.forward, lab.forward, is_centred=not self._layout.stacked))

    def _way_to_bridge(self, y: int) -> int:
        pair, x = self._lab.veth_pair, self._layout.veth
        if pair is None:
            self._wire((x, y), (x, y + 30), style="" if self._lab.joined else "none")
            return y + 30
        middle = y + VETH // 2
        self._end_of_pair(pair[0]["name"], y, middle - 3, y + 19)
        self._end_of_pair(pair[1]["name"], middle + 3, y + VETH, middle + 26)
        for plate in (middle - 3, middle + 3):
            self._wire((x - 9, plate), (x + 9, plate))
        self._text(boxes.about_pair(self._lab), x + 18, middle + 4, "plain")
        return y + VETH

    def _end_of_pair(self, name: str, start: int, end: int, y: int) -> None:
        labels, x = self._lab.labels(f"link {name}"), self._layout.veth
        missing = labels and not self._lab.link(name)
        self._wire((x, start), (x, end), style="none" if missing else "bad" if labels else "")
        self._text(name, x + 18, y, "mono")
        if labels:
            self.breaks.append((x, (start + end) // 2))
            self._label("; ".join(labels), x + 18, y + LINE, self.width - x - 18 - 2 * EDGE)

    def _rows(self, bridge: int) -> int:
        """The VMs below the bridge, wired to it at the left edge; below them the provisioning network, at the right."""
        y = above = bridge
        network, vms, columns = self._lab.provisioning, list(boxes.vms(self._lab)), self._layout.columns
        left, right = EDGE + TRUNK, self.width - EDGE - (TRUNK if network else 0)
        wide = (right - left - GAP * (columns - 1)) // columns
        trunk, lower = self.width - EDGE - 2, 0
        for row in (vms[first : first + columns] for first in range(0, len(vms), columns)):
            placed = [(box, left + wide // 2 + place * (wide + GAP)) for place, box in enumerate(row)]
            if y > bridge:
                y += GAP + 4
                self._wire((EDGE + 2, above), (EDGE + 2, y), (placed[-1][1], y))
                above = y
            y = self._row(placed, wide, y)
            if network:
                y += DROP
                wired = [x for box, x in placed if self._drop(box.lower_wire, x, y - DROP, y, "second")]
                if wired:
                    self._wire((wired[0], y), (trunk, y), style="second")
                    lower = lower or y
        if not network:
            return y
        y += 2 * GAP
        if lower:
            self._wire((trunk, lower), (trunk, y), style="second")
        return self._box(boxes.network(self._lab, network), EDGE, y, self.width - 2 * EDGE)

    def _row(self, placed: Sequence[tuple[Box, int]], wide: int, y: int) -> int:
        top, high = y + DROP, max(height(box, wide) for box, _x in placed)
        for box, x in placed:
            self._drop(box.wire, x, y, top)
            self._box(box, x - wide // 2, top, wide, high)
        return top + high

    def _drop(self, style: str, x: int, start: int, end: int, usual: str = "") -> bool:
        if style:
            self._wire((x, start), (x, end), style=usual if style == boxes.UP else style)
        if style == boxes.BAD:
            self.breaks.append((x, (start + end) // 2))
        return bool(style)

    def _box(self, box: Box, x: int, y: int, width: int, high: int = 0) -> int:
        """Returns where it ends."""
        high = high or height(box, width)
        self.rects.append(Rect(x, y, width, high, "bad" if box.labels else box.style))
        for number, (style, text) in enumerate(lines(box, width)):
            self._text(text, x + PAD, y + PAD + 10 + number * LINE, style, width - 2 * PAD)
        return y + high

    def _label(self, label: str, x: int, y: int, room: int) -> int:
        """Returns the line below."""
        for number, piece in enumerate(pieces(label, room, "label")):
            self._text(piece, x, y + number * LINE, "label", room + 10)
        return y + LINE * len(pieces(label, room, "label"))

    def _text(self, text: str, x: int, y: int, style: str, room: int = 0) -> None:
        self.texts.append(Text(x, y, style, text, cut(text, letters(room, style)) if room else text))

    def _wire(self, *points: Point, style: str = "") -> None:
        self.wires.append(Wire(points, style))


def height(box: Box, width: int) -> int:
    return len(lines(box, width)) * LINE + PAD + 6


def lines(box: Box, width: int) -> list[tuple[str, str]]:
    """Style and text of each, as they fit into the box."""
    texts = [*box.lines, *(("label", label) for label in box.labels)]
    fitted = [(style, piece) for style, text in texts for piece in pieces(text, width - 2 * PAD, style)]
    return [("title", box.title), *fitted]


def pieces(text: str, room: int, style: str) -> list[str]:
    """An address that is too long goes on in the next line; other texts between words, and not for ever."""
    most = letters(room, style)
    if style.startswith("mono"):
        return [text[at : at + most] for at in range(0, len(text), most)]
    marked, indent = (f"\u2717 {text}", "\u2003") if style == "label" else (text, "")
    wrapped = textwrap.wrap(marked, most, subsequent_indent=indent, break_on_hyphens=False)
    return wrapped if len(wrapped) <= MOST_LINES else [*wrapped[: MOST_LINES - 1], f"{wrapped[MOST_LINES - 1]} ..."]


def letters(room: int, style: str) -> int:
    return max(int(room / LETTER[style]), 6)
