# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The line to the host, which is there however broken the network is: a JSON object a line, both ways."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Channel:
    def __init__(self, device: str) -> None:
        self._file = os.open(device, os.O_RDWR)
        self._one_at_a_time = threading.Lock()

    def ask(self) -> dict[str, Any]:
        """What to do. The host says nothing before: UEFI drives the channel as well, and would take it for itself."""
        self.tell("asks", "bootstrap")
        data = b""
        while not data.endswith(b"\n"):
            block = os.read(self._file, 65536)
            if not block:
                time.sleep(0.05)
            data += block
        return json.loads(data)

    def listen(self, hear: Callable[[dict[str, Any]], None]) -> None:
        """What the host says later on, line by line, for as long as the guest runs."""
        data = b""
        while True:
            block = os.read(self._file, 65536)
            if not block:
                time.sleep(0.5)
            *lines, data = (data + block).split(b"\n")
            for line in filter(None, lines):
                hear(json.loads(line))

    def tell(self, event: str, who: str, **more: Any) -> None:
        view = memoryview(json.dumps({"event": event, "who": who, **more}).encode() + b"\n")
        with self._one_at_a_time:
            while view:
                view = view[os.write(self._file, view) :]
