# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The installer's errors about an install-config.yaml, without the secrets that it quotes."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.bundle.redact import GONE, Redactor
from ansible_collections.nometal.ipi.plugins.module_utils._core.secrecy import is_secret_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ERROR_LINE = re.compile(r'level=(?:error|fatal) msg=(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>.*))')
LIST = re.compile(r"(?s)^.*?file: (?:\[(?P<many>.*)\]|(?P<one>.*))$")
PATH = r"[A-Za-z][\w.-]*(?:\[[^\]]*\][\w.-]*)*"
TYPE = r"(?:Invalid|Required|Unsupported|Duplicate) value|Forbidden|Not found|Too long|Too many|Internal error"
NEXT = re.compile(rf", (?={PATH}: (?:{TYPE})\b)")
ERROR = re.compile(rf"(?s)(?P<path>{PATH}): (?P<type>{TYPE})(?P<rest>.*)")
QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
LAST_LINES = 10


def errors_in(output: str, secrets: Iterable[str]) -> list[str]:
    """The installer's errors, or its last lines if it prints none."""
    redactor = Redactor(secrets)
    found = [error for message in _messages(output) for error in _errors(message)]
    return list(dict.fromkeys(_without_secrets(text, redactor) for text in found or output.splitlines()[-LAST_LINES:]))


def _messages(output: str) -> Iterator[str]:
    for line in output.splitlines():
        match = ERROR_LINE.search(line)
        if match:
            yield match["plain"] if match["quoted"] is None else _unquoted(match["quoted"])


def _unquoted(text: str) -> str:
    with suppress(ValueError):
        return str(json.loads(f'"{text}"'))
    return text


def _errors(message: str) -> list[str]:
    match = LIST.match(message)
    return NEXT.split(match["many"] or match["one"]) if match else [message]


def _without_secrets(text: str, redactor: Redactor) -> str:
    match = ERROR.fullmatch(text)
    if not match:
        return redactor.text(text)
    rest = QUOTED.sub(f'"{GONE}"', match["rest"]) if _is_secret(match["path"]) else match["rest"]
    return f"{match['path']}: {match['type']}{redactor.text(rest)}"


def _is_secret(path: str) -> bool:
    return any(is_secret_key(name) for name in re.split(r"[.\[\]]+", path) if name)
