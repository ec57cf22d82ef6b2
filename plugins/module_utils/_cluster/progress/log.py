# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The installer's log, entry by entry, without what is secret in it."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHUNK_BYTES = 1024**2
LONGEST_LINE_BYTES = 4 * CHUNK_BYTES
STAMP = r'time="?\d{4}-\d\d-\d\dT[^"\s]+"? level='
# A run that was killed leaves half a line, and the next one goes on behind it.
BEGINS = re.compile(rf"(?={STAMP})")
LINE = re.compile(
    r'time="?(?P<at>[^"\s]+)"? level=(?P<level>[a-z]+)'
    r'(?: msg=(?:"(?P<quoted>[^"\\]*(?:\\.[^"\\]*)*)"|(?P<plain>[^"\s]+))|(?! msg=))(?: |$)'
)
ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|.)")
SIGNS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}

LOGIN = re.compile(
    r"\bkubeadmin\b.*(?:password|-p\b)|PRIVATE KEY"
    r"|(?<![\w-])(?=[a-z-]*[A-Z0-9])(?:[A-Za-z0-9]{5}-){3}[A-Za-z0-9]{5}(?![\w-])",  # as the installer makes passwords
    re.DOTALL,
)
VALUE = re.compile(
    r"""((?:(?:passw(?:or)?d|pull-?\s?secret|client-?secret|access-?token|id-?token|authorization)\w*|\bauth)"""
    r"""\\?["']?\s*[:=](?!\s*Required value)\s*).+""",
    re.DOTALL | re.IGNORECASE,
)
IN_URL = re.compile(r"(\w://)[^/\s@'\"]+@")
TOKEN = re.compile(r"\bey[JI][\w-]{16,}(?:\.[\w-]+)*|\bsha256~[\w-]{20,}")
MASK = "***"


@dataclass(frozen=True)
class Entry:
    at: float
    """In seconds since the epoch."""
    level: str
    msg: str


def entries(text: str, redact: Callable[[str], str] = str) -> Iterator[Entry]:
    """Those of whole lines. Lines that are none of the installer's entries are left out, and so are logins.

    Redact: what takes out secrets that are known; what looks like one goes anyway.
    """
    for line in text.split("\n"):
        for part in BEGINS.split(line):
            entry = _entry(part, redact)
            if entry is not None:
                yield entry


def masked(text: str) -> str:
    """What may be shown of a text that may quote a secret."""
    if LOGIN.search(text):
        return ""
    return IN_URL.sub(rf"\1{MASK}@", TOKEN.sub(MASK, VALUE.sub(rf"\1{MASK}", text)))


def _entry(line: str, redact: Callable[[str], str]) -> Entry | None:
    found = LINE.match(line)
    if not found:
        return None
    quoted, plain = found["quoted"], found["plain"]
    said = _unquoted(quoted) if quoted is not None else plain or ""
    msg = masked(redact(said))
    at = _seconds(found["at"])
    return None if at is None or (said and not msg) else Entry(at, found["level"], msg)


@lru_cache(maxsize=16)
def _seconds(stamp: str) -> float | None:
    with suppress(ValueError, OverflowError):
        return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()
    return None


def _unquoted(text: str) -> str:
    return ESCAPE.sub(lambda found: _sign(found[1]), text) if "\\" in text else text


def _sign(escaped: str) -> str:
    if escaped[0] in "uU" and len(escaped) > 1:
        number = int(escaped[1:], 16)
        return chr(number) if number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF else "\ufffd"  # noqa: PLR2004
    if len(escaped) > 1:  # a byte of what is no UTF-8
        return "\ufffd"
    return SIGNS.get(escaped, escaped)


class Tail:
    """A log that grows, read on from where it was read to. Half a line at its end waits for its other half."""

    def __init__(self, path: Path, redact: Callable[[str], str] = str) -> None:
        self._path = path
        self._redact = redact
        self._inode = 0
        self._offset = 0
        self._rest = b""

    def entries(self) -> Iterator[Entry]:
        """Those that have come since."""
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            self._inode = 0
            return
        with file:
            self._begin_again_if_another(file.fileno())
            file.seek(self._offset)
            while chunk := file.read(CHUNK_BYTES):
                self._offset += len(chunk)
                whole, _line_end, self._rest = (self._rest + chunk).rpartition(b"\n")
                if len(self._rest) > LONGEST_LINE_BYTES:
                    self._rest = b""
                yield from entries(whole.decode(errors="replace"), self._redact)

    def _begin_again_if_another(self, descriptor: int) -> None:
        found = os.fstat(descriptor)
        if found.st_ino != self._inode or found.st_size < self._offset:
            self._inode, self._offset, self._rest = found.st_ino, 0, b""
