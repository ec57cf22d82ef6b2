"""The objects of a cluster, and what the API server does to them: versions, managers of fields, finalizers, watches."""

from __future__ import annotations

import copy
import random
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from typing import Any, Callable, NamedTuple

from support.stand_in.kubernetes import admission, errors, kinds, managers
from support.stand_in.kubernetes.errors import Conflict, Exists, Expired, Invalid, NotFound
from support.stand_in.kubernetes.kinds import APPROVAL, SCALE, STATUS, Kind

__all__ = ["Conflict", "Event", "Exists", "Expired", "Invalid", "NotFound", "Store"]

Object = dict[str, Any]
Objects = list[Object]
ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
MANAGER = "stand-in"
REMEMBERED = 5000
"""Events. Whoever watches from before them has to list again."""
GIVEN = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)
"""Metadata that no update changes."""


class Event(NamedTuple):
    type: str
    kind: str
    object: Object
    version: int
    old: Object | None = None
    """What it was before."""


Events = list[Event]


class Store:
    """`kind` is the full plural name, such as baremetalhosts.metal3.io; objects go in and out as copies."""

    def __init__(self, clock: Callable[[], float] = time.time, remembered: int = REMEMBERED) -> None:
        self.clock = clock
        self.removed: Callable[[str, str, str], None] = lambda _kind, _namespace, _name: None
        """Is told of each object that goes, whoever has removed it, before anybody can see that it has."""
        self._changed = threading.Condition(threading.RLock())
        self._objects: dict[str, dict[tuple[str, str], Object]] = {name: {} for name in kinds.BY_NAME}
        self._events: deque[Event] = deque(maxlen=remembered)
        self._forgotten = 0
        self._version = 0
        self._closed = False

    @property
    def version(self) -> int:
        """Of the last change."""
        with self._changed:
            return self._version

    @property
    def closed(self) -> bool:
        return self._closed

    def create(self, kind: str, body: Object, manager: str = "", *, dry: bool = False) -> Object:
        """Also with the status that it is given."""
        known = kinds.of(kind)
        with self._changed:
            new = _typed(known, body)
            metadata = new["metadata"]
            if not metadata.get("name") and metadata.get("generateName"):
                metadata["name"] = metadata["generateName"] + _suffix()
            place = _place(known, metadata)
            if place in self._objects[kind]:
                raise Exists(f'{known.name} "{place[1]}" already exists', errors.of(known, place[1]))
            for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink"):
                metadata.pop(name, None)
            metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": self.now(), "generation": 1}
            new = admission.admit(known, new, None)
            managers.note_update({}, new, self._entry(known, manager))
            return self._put(known, new, ADDED, dry=dry)

    def get(self, kind: str, name: str, namespace: str = "") -> Object:
        with self._changed:
            return copy.deepcopy(self._find(kinds.of(kind), name, namespace))

    def list(self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None) -> Objects:
        """By namespace and name; without a namespace, those of all."""
        kinds.of(kind)
        with self._changed:
            found = [item for place, item in sorted(self._objects[kind].items()) if namespace in ("", place[0])]
            return copy.deepcopy([item for item in found if has_labels(item, labels or {})])

    def update(self, kind: str, body: Object, subresource: str = "", manager: str = "", *, dry: bool = False) -> Object:
        known = kinds.of(kind)
        with self._changed:
            given = _typed(known, body)
            name, namespace = given["metadata"].get("name", ""), given["metadata"].get("namespace", "")
            old = self._find(known, name, namespace)
            self._must_be_fresh(known, old, given)
            new = self._updated(known, old, given, subresource)
            managers.note_update(old, new, self._entry(known, manager, subresource))
            return self._replace(known, old, new, dry=dry)

    def change(  # noqa: PLR0913, PLR0917 - which object, and how
        self,
        kind: str,
        name: str,
        namespace: str,
        function: Callable[[Object], Object | None],
        subresource: str = "",
        manager: str = "",
    ) -> Object:
        """The function changes the object that it is given, or returns another one."""
        while True:
            read = self.get(kind, name, namespace)
            try:
                return self.update(kind, function(read) or read, subresource, manager)
            except Conflict:
                continue

    def apply(  # noqa: PLR0913 - what a request of server-side apply has
        self, kind: str, body: Object, manager: str, force: bool = False, subresource: str = "", *, dry: bool = False
    ) -> Object:
        """Server-side apply; without force, fields of others that would change are a conflict."""
        known = kinds.of(kind)
        with self._changed:
            given = admission.normalized(known, _typed(known, body))
            name, namespace = _place(known, given["metadata"])[::-1]
            own = self._entry(known, manager, subresource, managers.APPLY)
            if (namespace, name) not in self._objects[kind]:
                return self._apply_new(known, given, own, dry=dry)
            old = self._find(known, name, namespace)
            self._must_be_fresh(known, old, given)
            if not subresource and STATUS in known.subresources:
                given.pop("status", None)
            merged = managers.apply(known, copy.deepcopy(old), given, own, force=force)
            entries = merged["metadata"].pop("managedFields")
            new = self._updated(known, old, merged, subresource)
            new["metadata"]["managedFields"] = entries
            return self._replace(known, old, new, dry=dry)

    def delete(  # noqa: PLR0913 - which object, and on which conditions
        self, kind: str, name: str, namespace: str = "", uid: str = "", version: str = "", *, dry: bool = False
    ) -> Object:
        """Removes it, or marks it while it has finalizers. A uid and a version are those that it must have."""
        known = kinds.of(kind)
        with self._changed:
            old = self._find(known, name, namespace)
            metadata = old["metadata"]
            for what, expected, real in (
                ("UID", uid, metadata["uid"]),
                ("ResourceVersion", version, metadata["resourceVersion"]),
            ):
                if expected and expected != real:
                    why = f"the {what} in the precondition ({expected}) does not match the {what} in record ({real})"
                    raise Conflict(
                        f'Operation cannot be fulfilled on {known.name} "{name}": {why}', errors.of(known, name)
                    )
            if not metadata.get("finalizers"):
                return copy.deepcopy(old) if dry else self._remove(known, old)
            if metadata.get("deletionTimestamp"):
                return copy.deepcopy(old)
            marks = {"deletionTimestamp": self.now(), "deletionGracePeriodSeconds": 0}
            marks["generation"] = metadata["generation"] + 1
            return self._put(known, {**old, "metadata": {**metadata, **marks}}, MODIFIED, dry=dry)

    def watch(self, kinds: Iterable[str], since: int, seconds: float | None = None) -> Iterator[Event]:
        """Events after this version, until the time is over or the store is closed."""
        wanted = tuple(kinds)
        deadline = None if seconds is None else time.monotonic() + seconds
        while not self._closed and (deadline is None or time.monotonic() < deadline):
            found, since = self.events(wanted, since)
            yield from found
            if not found:
                self.wait(1 if deadline is None else max(0, min(1, deadline - time.monotonic())), since)

    def events(self, kinds: Iterable[str], since: int) -> tuple[Events, int]:
        """Those after a version, and the version that they reach to."""
        wanted = set(kinds)
        with self._changed:
            if since < self._forgotten:
                raise Expired(f"too old resource version: {since} ({self._forgotten + 1})")
            found = [event for event in self._events if event.version > since and event.kind in wanted]
            return copy.deepcopy(found), self._version

    def wait(self, timeout: float, since: int | None = None) -> bool:
        """Until something has changed after this version, by default after now."""
        with self._changed:
            start = self._version if since is None else since
            return self._changed.wait_for(lambda: self._version > start or self._closed, timeout)

    def close(self) -> None:
        """Ends the watches."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def dump(self) -> Object:
        """All of it, as JSON can have it; `load` reads it back."""
        with self._changed:
            objects = {kind: list(found.values()) for kind, found in self._objects.items() if found}
            return copy.deepcopy({"version": self._version, "objects": objects})

    def load(self, dumped: Object) -> None:
        with self._changed:
            self._version = self._forgotten = dumped["version"]
            self._events.clear()
            for kind, found in copy.deepcopy(dumped["objects"]).items():
                self._objects[kind] = {_place(kinds.of(kind), item["metadata"]): item for item in found}
            self._changed.notify_all()

    def now(self) -> str:
        return datetime.fromtimestamp(self.clock(), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _find(self, kind: Kind, name: str, namespace: str) -> Object:
        try:
            return self._objects[kind.name][namespace if kind.namespaced else "", name]
        except KeyError:
            raise errors.not_found(kind, name) from None

    def _entry(
        self, kind: Kind, manager: str, subresource: str = "", operation: str = managers.UPDATE
    ) -> managers.Entry:
        return managers.Entry(manager or MANAGER, operation, kind.group_version, subresource, self.now())

    def _must_be_fresh(self, kind: Kind, old: Object, given: Object) -> None:
        """An update may say which version it is of."""
        name = old["metadata"]["name"]
        for what in ("uid", "resourceVersion"):
            told = given["metadata"].get(what)
            if told and told != old["metadata"][what]:
                why = "the object has been modified; please apply your changes to the latest version and try again"
                raise Conflict(f'Operation cannot be fulfilled on {kind.name} "{name}": {why}', errors.of(kind, name))

    def _updated(self, kind: Kind, old: Object, given: Object, subresource: str) -> Object:
        """What the old one becomes: an update of a subresource changes nothing else."""
        if subresource in (STATUS, APPROVAL):
            return {**copy.deepcopy(old), "status": given.get("status", {})}
        if subresource == SCALE:
            spec = {**old.get("spec", {}), "replicas": given.get("spec", {}).get("replicas", 0)}
            return self._counted(old, {**copy.deepcopy(old), "spec": spec})
        metadata = {key: part for key, part in given["metadata"].items() if key not in GIVEN}
        metadata |= {key: old["metadata"][key] for key in GIVEN if key in old["metadata"]}
        metadata["managedFields"] = copy.deepcopy(old["metadata"].get("managedFields", []))
        new = {**given, "metadata": metadata}
        if STATUS in kind.subresources:
            new.pop("status", None)
            new |= {"status": copy.deepcopy(old["status"])} if "status" in old else {}
        return self._counted(old, admission.admit(kind, new, old))

    def _counted(self, old: Object, new: Object) -> Object:
        """The generation counts the changes of what is wanted."""
        if _wanted(old) == _wanted(new):
            return new
        return {**new, "metadata": {**new["metadata"], "generation": old["metadata"]["generation"] + 1}}

    def _apply_new(self, kind: Kind, given: Object, own: managers.Entry, *, dry: bool) -> Object:
        metadata = given["metadata"]
        if metadata.get("resourceVersion") or metadata.get("uid"):
            raise Conflict(f'{kind.name} "{metadata["name"]}" is not there', errors.of(kind, metadata["name"]))
        metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": self.now(), "generation": 1}
        if STATUS in kind.subresources:
            given.pop("status", None)
        new = managers.apply(
            kind, {"metadata": {"name": metadata["name"]}}, admission.admit(kind, given, None), own, force=False
        )
        return self._put(kind, new, ADDED, dry=dry)

    def _replace(self, kind: Kind, old: Object, new: Object, *, dry: bool) -> Object:
        """What was marked for deletion goes with its last finalizer; what is as before makes no event."""
        if new["metadata"].get("deletionTimestamp") and not new["metadata"].get("finalizers") and not dry:
            return self._remove(kind, new)
        if _compared(old) == _compared(new):
            return copy.deepcopy(old)
        return self._put(kind, new, MODIFIED, dry=dry)

    def _put(self, kind: Kind, new: Object, event: str, *, dry: bool = False) -> Object:
        if dry:
            return copy.deepcopy(new)
        self._version += 1
        new = copy.deepcopy(new)
        new["metadata"]["resourceVersion"] = str(self._version)
        place = _place(kind, new["metadata"])
        old = self._objects[kind.name].get(place)
        self._objects[kind.name][place] = new
        self._note(event, kind, new, old)
        return copy.deepcopy(new)

    def _remove(self, kind: Kind, old: Object) -> Object:
        self._version += 1
        gone = copy.deepcopy(old)
        gone["metadata"]["resourceVersion"] = str(self._version)
        place = _place(kind, old["metadata"])
        self.removed(kind.name, *place)
        before = self._objects[kind.name].pop(place)
        self._note(DELETED, kind, gone, before)
        self._collect(old["metadata"]["uid"])
        return copy.deepcopy(gone)

    def _note(self, event: str, kind: Kind, item: Object, old: Object | None) -> None:
        if len(self._events) == self._events.maxlen:
            self._forgotten = self._events[0].version
        self._events.append(Event(event, kind.name, copy.deepcopy(item), self._version, copy.deepcopy(old)))
        self._changed.notify_all()

    def _collect(self, uid: str) -> None:
        """What the removed object owned goes too, unless another owner is left."""
        everything = [(kind, item) for kind, found in self._objects.items() for item in found.values()]
        there = {item["metadata"]["uid"] for _, item in everything}
        for kind, item in everything:
            owners = [owner.get("uid") for owner in item["metadata"].get("ownerReferences", [])]
            if uid in owners and not there.intersection(owners):
                self.delete(kind, item["metadata"]["name"], item["metadata"].get("namespace", ""))


def has_labels(item: Object, labels: Mapping[str, str]) -> bool:
    own = item["metadata"].get("labels") or {}
    return all(own.get(key) == value for key, value in labels.items())


def _typed(kind: Kind, body: Object) -> Object:
    new = copy.deepcopy(body)
    new["apiVersion"], new["kind"] = kind.group_version, kind.kind
    new["metadata"] = new.get("metadata") or {}
    return new


def _place(kind: Kind, metadata: Object) -> tuple[str, str]:
    name, namespace = metadata.get("name"), metadata.get("namespace", "")
    if not name:
        raise errors.invalid(kind, "", "metadata.name", "Required value: name or generateName is required")
    if kind.namespaced and not namespace:
        raise errors.invalid(kind, name, "metadata.namespace", "Required value")
    return namespace if kind.namespaced else "", name


def _suffix() -> str:
    return "".join(random.choices("bcdfghjklmnpqrstvwxz2456789", k=5))  # noqa: S311 - as Kubernetes names things


def _wanted(item: Object) -> Object:
    return {key: part for key, part in item.items() if key not in ("metadata", "status")}


def _compared(item: Object) -> Object:
    left_out = ("resourceVersion", "managedFields")
    metadata = {key: part for key, part in item["metadata"].items() if key not in left_out}
    managed = [{**entry.to_dict(), "time": ""} for entry in managers.read(item)]
    return {**item, "metadata": {**metadata, "managedFields": managed}}
