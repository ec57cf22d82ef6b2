"""The fields of an object, and who manages them.

A field has a path of elements as managedFields write them: `f:name` in a map, `k:{...}` for an item of a list with
keys, `v:...` in a set.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

Path = tuple[str, ...]
Object = dict[str, Any]

LIST_KEYS = {
    **dict.fromkeys(("containers", "initContainers", "env", "volumes", "preDrain", "preTerminate"), ("name",)),
    **dict.fromkeys(("conditions", "addresses"), ("type",)),
    "ownerReferences": ("uid",),
    "volumeMounts": ("mountPath",),
}
"""By the name of the list: its items are told apart by these. Other lists are replaced as one."""
SETS = ("finalizers",)
UNMANAGED = ("apiVersion", "kind", "metadata")
UNMANAGED_METADATA = (
    *("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "generateName"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink"),
)


def leaves(value: Any, path: Path = ()) -> dict[Path, Any]:
    """Each field that can be managed by itself."""
    found: dict[Path, Any] = {}
    for element, part in _parts(value, path):
        found.update(leaves(part, (*path, element)))
    return found or {path: value}


def _parts(value: Any, path: Path) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [(f"f:{key}", part) for key, part in value.items()]
    if isinstance(value, list) and path:
        name = path[-1].removeprefix("f:")
        if name in SETS:
            return [(f"v:{json.dumps(item)}", item) for item in value]
        if keys := keys_of(name, value):
            return [(element_of(item, keys), item) for item in value]
    return []


def keys_of(name: str, value: Any) -> tuple[str, ...]:
    """What tells the items of a list apart, if it is such a list."""
    keys = LIST_KEYS.get(name, ())
    fits = isinstance(value, list) and all(
        isinstance(item, dict) and all(key in item for key in keys) for item in value
    )
    return keys if fits else ()


def element_of(item: Object, keys: Iterable[str]) -> str:
    return "k:" + json.dumps({key: item[key] for key in keys}, separators=(",", ":"), sort_keys=True)


def managed(body: Object) -> dict[Path, Any]:
    """The leaves that have managers."""
    metadata = {key: part for key, part in body.get("metadata", {}).items() if key not in UNMANAGED_METADATA}
    own = {key: part for key, part in body.items() if key not in UNMANAGED}
    whole = {**own, "metadata": metadata} if metadata else own
    return leaves(whole) if whole else {}


def merge(live: Any, applied: Any, name: str = "") -> Any:
    """What is applied, in what there is."""
    if isinstance(live, dict) and isinstance(applied, dict):
        merged = {key: merge(live[key], part, key) if key in live else part for key, part in applied.items()}
        return {**live, **merged}
    if isinstance(live, list) and isinstance(applied, list):
        if name in SETS:
            return [*live, *(item for item in applied if item not in live)]
        if (keys := keys_of(name, live)) and keys_of(name, applied):
            wanted = {element_of(item, keys): item for item in applied}
            kept = [merge(item, wanted.pop(element_of(item, keys), item)) for item in live]
            return [*kept, *wanted.values()]
    return applied


GONE = object()


def without(value: Any, dropped: set[Path], path: Path = ()) -> Any:
    """The value less these leaves, and less the maps and items that had no others; GONE if nothing is left."""
    if path in dropped:
        return GONE
    parts = _parts(value, path)
    if not parts:
        return value
    kept = [(element, without(part, dropped, (*path, element)), part) for element, part in parts]
    left = [(element, new, old) for element, new, old in kept if new is not GONE]
    if not left and path:
        return GONE
    if isinstance(value, dict):
        return {element.removeprefix("f:"): new for element, new, _ in left}
    keys = keys_of(path[-1].removeprefix("f:"), value)
    return [{**{key: old[key] for key in keys}, **new} if keys else new for _, new, old in left]


def to_tree(paths: Iterable[Path]) -> Object:
    """As fieldsV1 has it."""
    tree: Object = {}
    for path in sorted(paths):
        place = tree
        for element in path:
            place = place.setdefault(element, {})
    return tree


def from_tree(tree: Object, path: Path = ()) -> set[Path]:
    found: set[Path] = set()
    for element, part in tree.items():
        if element != ".":
            found |= from_tree(part, (*path, element)) if part else {(*path, element)}
    return found


def words(path: Path) -> str:
    """As a message names it."""
    text = ""
    for element in path:
        form, _, rest = element.partition(":")
        if form == "f":
            text += f".{rest}"
        elif form == "k":
            text += "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in json.loads(rest).items()) + "]"
        else:
            text += f"[={rest}]"
    return text
