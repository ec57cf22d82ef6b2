# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The line to the bootstrap VM, and what is written down for whoever watches."""

from __future__ import annotations

import json
import select
import socket
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import BOOTSTRAP, HOST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._core.wait import Timer

STEP_SECONDS = 1.0
FEW = (HOST, BOOTSTRAP)
"""All others are nodes."""


class Line:
    """To the VM's channel: JSON objects, one a line."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._rest = b""

    def tell(self, what: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps(what).encode() + b"\n")

    def events(self, timer: Timer) -> Iterator[dict[str, Any]]:
        """As they come, until time or VM are at their end. An empty one now and then, so that others can be asked."""
        while (left := timer.left) > 0:
            ready, _write, _error = select.select([self._socket], [], [], min(left, STEP_SECONDS))
            if not ready:
                yield {}
                continue
            data = self._socket.recv(65536)
            if not data:
                return
            yield from self._parsed(data)

    def _parsed(self, data: bytes) -> Iterator[dict[str, Any]]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        yield from (json.loads(line) for line in lines if line)

    def close(self) -> None:
        self._socket.close()


def stages_of(changes: Sequence[tuple[float, str, str]]) -> list[dict[str, Any]]:
    """Each state of a guest, in the order of their beginnings: from its first beginning to its last end."""
    end = changes[-1][0]
    spans: dict[str, tuple[float, float]] = {}
    for place, (at, who, state) in enumerate(changes[:-1]):
        over = next((later for later, other, _state in changes[place + 1 :] if other == who), end)
        stage = f"{who if who in FEW else 'a node'}: {state}"
        first, last = spans.get(stage, (at, over))
        spans[stage] = (min(first, at), max(last, over))
    return [{"stage": stage, "seconds": round(last - first, 1)} for stage, (first, last) in spans.items()]
