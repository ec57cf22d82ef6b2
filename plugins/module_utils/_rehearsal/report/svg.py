# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drawing by SVG: boxes of text, wires, marks. How it looks is the page's style sheet's."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ansible_collections.nometal.ipi.plugins.module_utils._core.wording import cut, line_of

LINE = 16
PAD = 9
# What a letter of each style takes at most, in the fonts that the style sheet names.
LETTER = {"title": 7.4, "mono": 6.7, "mono second": 6.7, "plain": 6.1, "label": 7.2}
FAILED_MARK = "\u2717"
MOST_LABEL_LINES = 3


@dataclass(frozen=True)
class Box:
    title: str
    lines: Sequence[tuple[str, str]] = ()
    """Style and text of each."""
    labels: Sequence[str] = ()
    """What is wrong with it."""
    style: str = ""

    @property
    def bad(self) -> bool:
        return bool(self.labels)

    def rows(self, width: int) -> list[tuple[str, str]]:
        rows = [("title", self.title)] if self.title else []
        for style, text in self.lines:
            rows += [(style, piece) for piece in pieces(text, width - 2 * PAD, style)]
        for label in self.labels:
            rows += [("label", piece) for piece in labelled(label, width - 2 * PAD)]
        return rows

    def height(self, width: int) -> int:
        return len(self.rows(width)) * LINE + PAD + 6


def letters(width: float, style: str) -> int:
    return max(int(width / LETTER[style]), 6)


def pieces(text: str, width: float, style: str) -> list[str]:
    """An address that is too long goes on in the next line; other texts between words."""
    room = letters(width, style)
    if style.startswith("mono"):
        return [text[at : at + room] for at in range(0, len(text), room)]
    return _few(textwrap.wrap(text, room, break_on_hyphens=False))


def labelled(label: str, width: float) -> list[str]:
    room = letters(width, "label")
    return _few(
        textwrap.wrap(f"{FAILED_MARK} {line_of(label)}", room, subsequent_indent="\u2003", break_on_hyphens=False)
    )


def _few(wrapped: list[str]) -> list[str]:
    return (
        wrapped
        if len(wrapped) <= MOST_LABEL_LINES
        else [*wrapped[: MOST_LABEL_LINES - 1], f"{wrapped[MOST_LABEL_LINES - 1]} ..."]
    )


class Sketch:
    def __init__(self, width: int) -> None:
        self.width = width
        self._parts: list[str] = []

    def box(self, box: Box, x: int, y: int, width: int, height: int = 0) -> int:
        """Returns where it ends."""
        height = height or box.height(width)
        style = "box bad" if box.bad else f"box {box.style}".strip()
        self._parts.append(f'<g><rect class="{style}" x="{x}" y="{y}" width="{width}" height="{height}" rx="7"/>')
        for number, (name, text) in enumerate(box.rows(width)):
            self.text(text, (x + PAD, y + PAD + 10 + number * LINE), name, room=width - 2 * PAD)
        self._parts.append("</g>")
        return y + height

    def text(self, text: str, at: tuple[int, int], style: str, *, room: float = 0, anchor: str = "") -> None:
        whole = line_of(text) if text[:1] != "\u2003" else text
        shown = cut(whole, letters(room, style)) if room else whole
        told = f"<title>{escape(whole)}</title>" if shown != whole else ""
        placed = f' text-anchor="{anchor}"' if anchor else ""
        self._parts.append(f'<text class="{style}" x="{at[0]}" y="{at[1]}"{placed}>{told}{escape(shown)}</text>')

    def label(self, label: str, x: int, y: int, room: float) -> int:
        """Returns the line below."""
        for piece in labelled(label, room):
            self.text(piece, (x, y), "label", room=room + 10)
            y += LINE
        return y

    def wire(self, *points: tuple[int, int], style: str = "") -> None:
        path = " ".join(f"{x},{y}" for x, y in points)
        self._parts.append(f'<polyline class="{f"wire {style}".strip()}" points="{path}"/>')

    def break_mark(self, x: int, y: int) -> None:
        """On a wire that does not do its work."""
        cross = f"M{x - 3} {y - 3}l6 6m0-6l-6 6"
        self._parts.append(f'<g class="break"><circle cx="{x}" cy="{y}" r="7"/><path d="{cross}"/></g>')

    def frame(self, x: int, y: int, width: int, height: int) -> None:
        """Behind everything else."""
        rect = f'<rect class="frame" x="{x}" y="{y}" width="{width}" height="{height}" rx="10"/>'
        self._parts.insert(0, rect)

    def svg(self, height: int, title: str, style: str) -> str:
        told = f'role="img" aria-label="{escape(line_of(title))}" xmlns="http://www.w3.org/2000/svg"'
        return f'<svg class="{style}" viewBox="0 0 {self.width} {height}" {told}>{"".join(self._parts)}</svg>'
