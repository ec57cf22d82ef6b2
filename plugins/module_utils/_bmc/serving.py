# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a service is like now, and with what it has answered last."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core import files

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.lab import Lab

STARTING = "starting\n"


@dataclass(frozen=True)
class Service:
    """Installed: what starts it at boot is as it should be. Serving: a digest of what it cannot learn while it runs."""

    there: bool = False
    installed: bool = False
    running: bool = False
    serving: str | None = None


class Serving:
    """A file that is there since the service has answered for the first time."""

    def __init__(self, lab: Lab) -> None:
        self._file = lab.serving

    @property
    def digest(self) -> str | None:
        with suppress(FileNotFoundError):
            return self._file.read_text(encoding="utf-8").strip() or None
        return None

    @property
    def has_answered(self) -> bool:
        return self._file.exists()

    def begin(self) -> None:
        """As long as it has not answered again, what it serves is unknown."""
        if self.has_answered:
            files.write_whole(self._file, STARTING, 0o644)

    def note(self, digest: str) -> None:
        if self.digest != digest:
            files.write_whole(self._file, f"{digest}\n", 0o644)


def files_say(path: Path, text: str) -> bool:
    with suppress(FileNotFoundError):
        return path.read_text(encoding="utf-8") == text
    return False
