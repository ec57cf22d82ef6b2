"""The three forms of patches that are no server-side apply."""

from __future__ import annotations

import copy
from typing import Any

from support.stand_in.kubernetes import fields
from support.stand_in.kubernetes.errors import BadRequest, Invalid

JSON, MERGE, STRATEGIC = (f"application/{form}+json" for form in ("json-patch", "merge-patch", "strategic-merge-patch"))
APPLY = "application/apply-patch+yaml"
DIRECTIVE, DELETE_FROM, ORDER, RETAIN = "$patch", "$deleteFromPrimitiveList/", "$setElementOrder/", "$retainKeys"


def merge(live: Any, patch: Any) -> Any:
    """RFC 7386: null removes."""
    if not isinstance(patch, dict):
        return patch
    found = dict(live) if isinstance(live, dict) else {}
    for key, part in patch.items():
        if part is None:
            found.pop(key, None)
        else:
            found[key] = merge(found.get(key), part)
    return found


def strategic(live: Any, patch: Any, name: str = "") -> Any:
    """A merge patch in which lists of known kinds are merged by their keys."""
    if isinstance(patch, dict):
        return _strategic_map(live if isinstance(live, dict) else {}, patch)
    if isinstance(patch, list) and isinstance(live, list):
        if name in fields.SETS:
            return [*live, *(item for item in patch if item not in live)]
        if name in fields.LIST_KEYS:
            return _strategic_list(live, patch, fields.LIST_KEYS[name])
    return patch


def _strategic_map(live: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    if patch.get(DIRECTIVE) == "replace":
        return {key: part for key, part in patch.items() if key != DIRECTIVE}
    found = {key: part for key, part in live.items() if RETAIN not in patch or key in patch[RETAIN]}
    for key, part in patch.items():
        if key.startswith(DELETE_FROM):
            name = key.removeprefix(DELETE_FROM)
            found[name] = [item for item in found.get(name, []) if item not in part]
        elif part is None:
            found.pop(key, None)
        elif not key.startswith(ORDER) and key not in (DIRECTIVE, RETAIN):
            found[key] = strategic(found.get(key, [] if isinstance(part, list) else None), part, key)
    return found


def _strategic_list(live: list[Any], patch: list[Any], keys: tuple[str, ...]) -> list[Any]:
    if {DIRECTIVE: "replace"} in patch:
        return [item for item in patch if item != {DIRECTIVE: "replace"}]
    found = list(live)
    for item in patch:
        place = next((at for at, old in enumerate(found) if all(old.get(key) == item.get(key) for key in keys)), None)
        if item.get(DIRECTIVE) == "delete":
            if place is not None:
                del found[place]
        elif place is None:
            found.append(item)
        else:
            found[place] = strategic(found[place], item)
    return found


def by_operations(live: Any, operations: Any) -> Any:
    """RFC 6902."""
    if not isinstance(operations, list):
        raise BadRequest("a JSON patch must be a list of operations")
    found = {"": copy.deepcopy(live)}
    try:
        for operation in operations:
            _operate(found, operation)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise Invalid(f"the JSON patch does not apply: {error!r}") from error
    return found[""]


def _operate(whole: Any, operation: dict[str, Any]) -> None:
    name, place = operation["op"], _steps(operation["path"])
    if name in ("move", "copy"):
        source = _steps(operation["from"])
        value = copy.deepcopy(_at(whole, source))
        if name == "move":
            _remove(whole, source)
        _add(whole, place, value)
    elif name == "add":
        _add(whole, place, operation["value"])
    elif name == "remove":
        _remove(whole, place)
    elif name in ("replace", "test"):
        old = _at(whole, place)
        if name == "replace":
            holder = _at(whole, place[:-1])
            holder[int(place[-1]) if isinstance(holder, list) else place[-1]] = operation["value"]
        elif old != operation["value"]:
            raise ValueError(f"the test failed: {old!r}")
    else:
        raise ValueError(f"unknown operation {name!r}")


def _steps(path: str) -> list[str]:
    return ["", *(step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:])]


def _at(whole: Any, steps: list[str]) -> Any:
    for step in steps:
        whole = whole[int(step) if isinstance(whole, list) else step]
    return whole


def _add(whole: Any, steps: list[str], value: Any) -> None:
    holder, step = _at(whole, steps[:-1]), steps[-1]
    if isinstance(holder, list):
        holder.insert(len(holder) if step == "-" else int(step), value)
    else:
        holder[step] = value


def _remove(whole: Any, steps: list[str]) -> None:
    holder = _at(whole, steps[:-1])
    del holder[int(steps[-1]) if isinstance(holder, list) else steps[-1]]
