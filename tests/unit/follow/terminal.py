"""A terminal that understands what the live view writes, to see what a user sees."""

from __future__ import annotations

import re

SEQUENCES = re.compile(r"\x1b\[(\d*)([A-Za-z])|\x1b\[\d+(?:;\d+)*m|([\r\n])|([^\x1b\r\n]+)")


class Terminal:
    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.lines = [""]
        self._row = self._column = 0
        self.rewritten = 0

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines).rstrip("\n")

    def write(self, text: str) -> None:
        for count, command, control, plain in SEQUENCES.findall(text):
            if command == "A":
                self._up(int(count or 1))
            elif command == "K":
                self.lines[self._row] = self.lines[self._row][: self._column]
            elif command == "J":
                self.lines[self._row :] = [self.lines[self._row][: self._column]]
            elif control:
                self._break_line(control)
            elif plain:
                self._put(plain)

    def _up(self, count: int) -> None:
        top = max(len(self.lines) - self.height, 0)
        assert self._row - count >= top, "above the upper edge"
        self._row -= count

    def _break_line(self, control: str) -> None:
        self._column = 0
        if control == "\n":
            self._row += 1
            if self._row == len(self.lines):
                self.lines.append("")

    def _put(self, plain: str) -> None:
        assert self._column + len(plain) <= self.width, f"wider than the terminal: {plain}"
        line = self.lines[self._row].ljust(self._column)
        self.lines[self._row] = line[: self._column] + plain + line[self._column + len(plain) :]
        self._column += len(plain)
        self.rewritten += 1
