"""What the API server was asked, in the order in which it answered, and which objects went."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

REMEMBERED = 100_000
GONE = "gone"
"""The verb of what is no request: an object is no longer there, whoever has removed it."""


@dataclass(frozen=True)
class Entry:
    time: float
    verb: str
    """As of Kubernetes: get, list, watch, create, update, patch, delete, deletecollection; and GONE."""
    path: str
    kind: str
    """The full plural name, with a subresource behind a slash; empty where it is about no object."""
    namespace: str
    name: str
    user: str
    manager: str
    code: int
    body: Any = None
    """What was sent, but of Secrets."""


class Audit:
    """In memory, and as lines of JSON in a file, if there is one."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._entries: deque[Entry] = deque(maxlen=REMEMBERED)
        self._lock = threading.Lock()

    def note(self, entry: Entry) -> None:
        with self._lock:
            self._entries.append(entry)
            if self._file:
                with self._file.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(entry)) + "\n")

    def note_removal(self, kind: str, namespace: str, name: str) -> None:
        self.note(Entry(time.time(), GONE, "", kind, namespace, name, "", "", 0))

    def entries(self) -> list[Entry]:
        with self._lock:
            return list(self._entries)

    def changes(self) -> list[tuple[str, str, str]]:
        """Verb, kind and name of what changed something."""
        verbs = ("create", "update", "patch", "delete", "deletecollection")
        done = [entry for entry in self.entries() if entry.verb in verbs and 200 <= entry.code < 300]
        return [(entry.verb, entry.kind, entry.name) for entry in done]


def read(text: str) -> list[Entry]:
    """A file of it."""
    return [Entry(**json.loads(line)) for line in text.splitlines()]
