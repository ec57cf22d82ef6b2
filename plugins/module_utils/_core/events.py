# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events of what runs, a JSON object a line, for those who follow it."""

from __future__ import annotations

import json
import time
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._core import files


class EventLog:
    """The events file that the live view reads, a line for each change."""

    def __init__(self, path: Path, since: float | None = None) -> None:
        """Since: from when on time is counted, in seconds since the epoch; otherwise from now on."""
        files.make_directory(path.parent)
        self._file = files.open_kept(path, 0o644)
        self._file.truncate(0)
        self._began = time.monotonic() - (0.0 if since is None else max(time.time() - since, 0.0))
        self._changes: list[tuple[float, str, str]] = []

    @property
    def seconds(self) -> float:
        return round(time.monotonic() - self._began, 1)

    def note(
        self, who: str, state: str, *, trouble: bool = False, part: float | None = None, at: float | None = None
    ) -> None:
        """At: for what has been so before, as seconds of this log."""
        seconds = self.seconds if at is None else round(max(at, 0.0), 1)
        if not trouble:
            self._changes.append((seconds, who, state))
        more = {**({"trouble": True} if trouble else {}), **({} if part is None else {"part": part})}
        entry = {"at": seconds, "who": who, "state": state, **more}
        self._file.write(json.dumps(entry) + "\n")
        self._file.flush()

    @property
    def changes(self) -> list[tuple[float, str, str]]:
        """When, who, and what of: each as it began, and at last the present, in which all of them end."""
        return [*self._changes, (self.seconds, "", "")]
