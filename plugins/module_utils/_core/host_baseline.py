# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError, names_its_path
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import LOCKS, alone

if TYPE_CHECKING:
    from collections.abc import Collection

Notes = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class HostMemory:
    """What the host was like before the first lab changed it: notes by topic and thing, kept until the last lab goes.

    Whoever changes the host notes the old value first, so that a run killed in between leaves no change unnoted.
    """

    path: Path
    lock: Path = LOCKS / ".host.json"

    def recall(self) -> Notes:
        try:
            return json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise OperatorError(
                f"{self.path}, which remembers what the host was like before, cannot be read: {error}. "
                "Repair it; or remove it, and what it says is then not put back."
            ) from error

    def with_notes(self, notes: Notes) -> Notes:
        """The memory with these notes added. The first note on a thing stays: later ones saw it changed by a lab."""
        memory = self.recall()
        for topic, values in notes.items():
            if values:
                memory[topic] = {**values, **memory.get(topic, {})}
        return memory

    @names_its_path(lambda memory, *_: memory.path)
    def note(self, notes: Notes) -> tuple[Notes, Notes]:
        """What was noted before, and what is now. Runs for other labs note things at the same time."""
        with alone(self.lock):
            before, after = self.recall(), self.with_notes(notes)
            if after != before:
                files.write_whole(self.path, json.dumps(after, indent=2, sort_keys=True) + "\n", 0o644)
        return before, after

    @names_its_path(lambda memory, *_: memory.path)
    def forget(self, topic: str, things: Collection[str]) -> None:
        """What is as it was before. Without any notes, the file goes, too."""
        with alone(self.lock):
            memory = self.recall()
            memory[topic] = {thing: value for thing, value in memory.get(topic, {}).items() if thing not in things}
            memory = {each: values for each, values in memory.items() if values}
            if memory:
                files.write_whole(self.path, json.dumps(memory, indent=2, sort_keys=True) + "\n", 0o644)
            else:
                files.remove(self.path)
                files.remove_empty(self.path.parent)
