# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text without its secrets: those that are known, in any writing, and whatever looks like one. Pure.

Rather too much is taken out than too little. Public keys and certificates stay.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Match = re.Match[str]

GONE = "[redacted]"
SHORTEST, ANYWHERE, LINE = 3, 8, 16
"""Known secrets that are shorter than these are no secrets; are taken for one only as whole words; as a whole only."""
DEEPEST = 4
GZIP = b"\x1f\x8b"
LARGEST_UNPACKED = 50 * 1024**2

QUOTED = r"(?P<quote>\\*[\"'])(?P<value>.*?)(?<!\\)(?P=quote)"
BARE = r"(?!(?:null|true|false|nil|<nil>)\b)[^\s\"'\\,;{}\[\]<>&][^\s\"'\\,;}\]<>&]*"
STRONG = (
    r"(?:pass(?:word|wd|phrase)(?:[_-]?hash)?|pull[_-]?secret|client[_-]?secret|(?:client-key|private[_-]?key)(?:-data)?"
    r"|(?:identity|access|refresh|id|bearer)[_-]?token|api[_-]?key|dockerconfigjson|dockercfg)"
)
WEAK = r"(?:auth|token|secret)"
KEYED = [
    re.compile(rf"(?P<before>{STRONG}\\*[\"']?[ \t]*[:=][ \t]*){QUOTED}", re.IGNORECASE),
    re.compile(rf"(?P<before>{STRONG}\\*[\"']?[ \t]*[:=][ \t]*)(?P<value>{BARE})", re.IGNORECASE),
    re.compile(rf"(?P<before>(?P<mark>\\*[\"']){WEAK}(?P=mark)[ \t]*[:=][ \t]*){QUOTED}", re.IGNORECASE),
    re.compile(rf"(?P<before>\b{WEAK}=){QUOTED}", re.IGNORECASE),
    re.compile(rf"(?P<before>\b{WEAK}=)(?P<value>{BARE})", re.IGNORECASE),
    re.compile(rf"(?P<before>^[ \t-]*{WEAK}:[ \t]+)(?P<value>\S+)[ \t]*$", re.IGNORECASE | re.MULTILINE),
    re.compile(r"(?P<before>\b(?:Bearer|Basic)[ ]+)(?P<value>[\w.~+/=-]{6,})", re.IGNORECASE),
    re.compile(r"(?P<before>\b[a-z][a-z0-9+.-]{0,30}://[^\s:/@\"'\\]*:)(?P<value>[^\s/\"'\\]+)(?=@)", re.IGNORECASE),
]
PLAIN = [
    re.compile(r"\$(?:1|5|6|7|y|gy|2[abxy]?)\$[./A-Za-z0-9$=,-]{10,}"),  # a password's hash
    re.compile(r"\beyJ[\w-]+\.eyJ[\w-]+\.[\w-]*"),  # a service account's token
    re.compile(r"\bsha256~[\w-]{20,}"),  # one of OpenShift's OAuth server
    re.compile(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b"),  # one by which a node joins
    re.compile(r"(?<![\w-])[A-Za-z0-9]{5}(?:-[A-Za-z0-9]{5}){3}(?![\w-])"),  # kubeadmin's password
]
KEY_BEGIN, KEY_END = (rf"-----{word} [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----" for word in ("BEGIN", "END"))
WHOLE_KEY = re.compile(rf"{KEY_BEGIN}(?:(?!-----BEGIN).)*?{KEY_END}", re.DOTALL)
KEY_OPENS, KEY_CLOSES = re.compile(rf"{KEY_BEGIN}.*"), re.compile(rf".*{KEY_END}")
KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{4,}\s*$")
ENCODED = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")


class Redactor:
    def __init__(self, known: Iterable[str]) -> None:
        written = {form for secret in known for form in _written(secret)}
        ordered = sorted(written, key=len, reverse=True)  # one may be a part of another
        self._anywhere = [form for form in ordered if len(form) >= ANYWHERE]
        self._words = [form for form in ordered if len(form) < ANYWHERE]

    def text(self, text: str) -> str:
        return self._text(text, 0)

    def without_known(self, text: str) -> str:
        """A great deal faster, and blind for others."""
        for form in self._anywhere:
            text = text.replace(form, GONE)
        for form in self._words:
            if form in text:
                text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(form)}(?![A-Za-z0-9])", GONE, text)
        return text

    def _text(self, text: str, depth: int) -> str:
        text = _without_keys(self.without_known(text))
        for pattern in KEYED:
            text = pattern.sub(_without_value, text)
        for pattern in PLAIN:
            text = pattern.sub(GONE, text)
        return ENCODED.sub(lambda match: self._encoded(match[0], depth), text) if depth < DEEPEST else text

    def _encoded(self, run: str, depth: int) -> str:
        """A run of letters may have begun before the Base64 in it did."""
        hides = any(self._text(inner, depth + 1) != inner for at in range(4) for inner in _decoded(run[at:]))
        return GONE if hides else run


def _written(secret: str) -> Iterator[str]:
    """As it stands in texts, JSON, YAML, URLs and Base64; a long one with line breaks also line by line."""
    whole = secret.strip()
    lines = [line.strip() for line in whole.splitlines()] if "\n" in whole else []
    for part in [whole, *(line for line in lines if len(line) >= LINE)]:
        if len(part) >= SHORTEST:
            yield part
            yield part.replace("'", "''")
            yield json.dumps(part)[1:-1]
            yield json.dumps(part, ensure_ascii=False)[1:-1]
            yield json.dumps(json.dumps(part)[1:-1])[1:-1]
            yield quote(part, safe="")
            yield quote(part)
            yield base64.b64encode(part.encode()).decode()


def _without_value(match: Match) -> str:
    mark = match.groupdict().get("quote") or ""
    return f"{match['before']}{mark}{GONE}{mark}" if match["value"] else match[0]


def _without_keys(text: str) -> str:
    """Also without one that journald has cut into lines with prefixes, and the end of one that begins before."""
    text = WHOLE_KEY.sub(GONE, text) if "PRIVATE KEY" in text else text
    return "\n".join(_without_open_keys(text.split("\n"))) if "PRIVATE KEY" in text else text


def _without_open_keys(lines: list[str]) -> list[str]:
    kept: list[str] = []
    inside = False
    for line in lines:
        if KEY_CLOSES.match(line):
            for at in range(len(kept) - 1, -1, -1):
                if inside or not KEY_LINE.search(kept[at]):
                    break
                kept[at] = KEY_LINE.sub(GONE, kept[at])
            kept.append(KEY_CLOSES.sub(GONE, line))
            inside = False
        elif KEY_OPENS.search(line):
            kept.append(KEY_OPENS.sub(GONE, line))
            inside = True
        else:
            inside = inside and bool(KEY_LINE.search(line))
            kept.append(KEY_LINE.sub(GONE, line) if inside else line)
    return kept


def _decoded(run: str) -> Iterator[str]:
    whole = run.rstrip("=")
    with suppress(binascii.Error, UnicodeDecodeError, zlib.error, ValueError):
        data = base64.b64decode(whole + "=" * (-len(whole) % 4))
        if data.startswith(GZIP):
            unpacked = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, LARGEST_UNPACKED)
            yield unpacked.decode(errors="replace")
        else:
            yield data.decode()
