# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What VMs say on their serial consoles."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

CONSOLES = Path("/var/log/libvirt/qemu")
CONSOLE_LINES = 12
ESCAPES = re.compile(r"\x1b\[[0-9;?=]*[A-Za-z]|[^\x20-\x7e\n]")


def console(path: Path, begin: int = 0) -> list[str]:
    """The last lines of a serial console from there on, without what is meant for a terminal."""
    with suppress(OSError):
        written = path.read_bytes()[begin:].decode(errors="replace")
        text = ESCAPES.sub("", written.replace("\r", "\n"))
        return [line for line in text.splitlines() if line.strip()][-CONSOLE_LINES:]
    return []
