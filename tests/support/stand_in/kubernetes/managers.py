"""Who manages which fields of an object: what `metadata.managedFields` says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from support.stand_in.kubernetes import errors, fields
from support.stand_in.kubernetes.fields import Object, Path
from support.stand_in.kubernetes.kinds import Kind

APPLY, UPDATE = "Apply", "Update"


@dataclass
class Entry:
    manager: str
    operation: str
    api_version: str
    subresource: str = ""
    time: str = ""
    paths: set[Path] = field(default_factory=set)

    def is_of(self, other: Entry) -> bool:
        return self._who() == other._who()

    def _who(self) -> tuple[str, ...]:
        return self.manager, self.operation, self.api_version, self.subresource

    @classmethod
    def of(cls, told: Object) -> Entry:
        return cls(
            *(told["manager"], told["operation"], told["apiVersion"], told.get("subresource", "")),
            told.get("time", ""),
            fields.from_tree(told["fieldsV1"]),
        )

    def to_dict(self) -> Object:
        told: dict[str, Any] = {"manager": self.manager, "operation": self.operation, "apiVersion": self.api_version}
        told |= {"time": self.time, "fieldsType": "FieldsV1", "fieldsV1": fields.to_tree(self.paths)}
        return {**told, "subresource": self.subresource} if self.subresource else told


def read(body: Object) -> list[Entry]:
    return [Entry.of(told) for told in body.get("metadata", {}).get("managedFields", [])]


def write(body: Object, entries: list[Entry]) -> None:
    body["metadata"]["managedFields"] = [entry.to_dict() for entry in entries if entry.paths]


def note_update(old: Object, new: Object, own: Entry) -> None:
    """Whoever changes a field manages it from then on."""
    before, after = fields.managed(old), fields.managed(new)
    changed = {path for path, value in after.items() if path not in before or before[path] != value}
    gone = before.keys() - after.keys()
    entries = read(old)
    for entry in entries:
        entry.paths -= gone if entry.is_of(own) else gone | changed
    if changed:
        mine = next((entry for entry in entries if entry.is_of(own)), None)
        if mine is None:
            mine = own
            entries.append(mine)
        mine.paths |= changed
        mine.time = own.time
    write(new, entries)


def apply(kind: Kind, live: Object, body: Object, own: Entry, *, force: bool) -> Object:
    """The live object with what is applied, less what this manager has applied before and others don't manage."""
    wanted, there = fields.managed(body), fields.managed(live)
    entries = read(live)
    others = [entry for entry in entries if not entry.is_of(own)]
    conflicts: list[tuple[Entry, Path]] = []
    for path, value in wanted.items():
        if path in there and there[path] == value:
            continue
        conflicts += [(entry, theirs) for entry in others for theirs in entry.paths if _overlap(path, theirs, there)]
    if conflicts and not force:
        raise _conflict(kind, live["metadata"]["name"], conflicts)
    for entry, path in conflicts:
        entry.paths.discard(path)
    mine = next((entry for entry in entries if entry.is_of(own)), own)
    if mine is own:
        entries.append(own)
    kept = set().union(*(entry.paths for entry in others)) if others else set()
    dropped = mine.paths - wanted.keys() - kept
    if mine.paths != wanted.keys():
        mine.time = own.time
    mine.paths = set(wanted)
    merged: Object = fields.merge(fields.without(live, dropped), body)
    merged.setdefault("metadata", {})
    write(merged, entries)
    return merged


def _overlap(path: Path, theirs: Path, there: dict[Path, Any]) -> bool:
    """An empty map leaves others what they put into it."""
    inside = path[: len(theirs)] == theirs and there.get(theirs) != {}
    return path == theirs or theirs[: len(path)] == path or inside


def _conflict(kind: Kind, name: str, conflicts: list[tuple[Entry, Path]]) -> errors.Conflict:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{entry.manager}"{_how(entry)}',
            "field": fields.words(path),
        }
        for entry, path in conflicts
    ]
    count = f"{len(causes)} conflict{'s' if len(causes) > 1 else ''}"
    if len(causes) == 1:
        text = f"Apply failed with {count}: {causes[0]['message']}: {causes[0]['field']}"
    else:
        text = f"Apply failed with {count}: " + "\n".join(f"{cause['message']}: {cause['field']}" for cause in causes)
    return errors.Conflict(text, {**errors.of(kind, name), "causes": causes})


def _how(entry: Entry) -> str:
    if entry.operation == APPLY:
        return ""
    by = f' with subresource "{entry.subresource}"' if entry.subresource else ""
    return f"{by} using {entry.api_version}"
