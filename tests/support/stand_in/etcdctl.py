"""`etcdctl` as `oc rsh` and `oc exec` run it in a pod of etcd: members are listed, removed, asked for their health."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from support.stand_in.api import Api
from support.stand_in.controllers.etcd import MEMBERS, NAMESPACE
from support.stand_in.ending import Failed

PROGRAM = "etcdctl"
CLUSTER = "cdf818194e3a8c32"
OK = 200
MAP = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{MEMBERS}"
Members = dict[str, dict[str, str]]


class Unhealthy(Exception):  # noqa: N818 - reads as what it is
    """With what is on standard output."""


def is_asked(words: Sequence[str]) -> bool:
    return any(word in words[:6] for word in ("rsh", "exec")) and PROGRAM in words


def run(words: Sequence[str], api: Api) -> str:
    """What it says."""
    pod = next((word.removeprefix("pod/") for word in words if word.removeprefix("pod/").startswith("etcd-")), "")
    status, found = api.get(f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}")
    if status != OK:
        raise Failed(1, f'Error from server (NotFound): pods "{pod}" not found')
    if not _is_ready(found):
        raise Failed(
            1, "error: Internal error occurred: error executing command in container: container is not running"
        )
    own = [word for word in words[words.index(PROGRAM) + 1 :] if not word.startswith("-")]
    form = _option(words)
    members = _members(api)
    if own[:2] == ["member", "list"]:
        return _listed(members, form)
    if own[:2] == ["member", "remove"]:
        return _remove(own[2], members, api)
    if own[:2] == ["endpoint", "health"]:
        return _health(members, api, form)
    raise Failed(1, f'Error: unknown command "{" ".join(own)}" for "{PROGRAM}"')


def _option(words: Sequence[str]) -> str:
    """Of `-w`, `-w=`, and `--write-out`."""
    for place, word in enumerate(words):
        name, _, value = word.partition("=")
        if name in ("-w", "--write-out"):
            return value or words[place + 1]
    return "simple"


def _members(api: Api) -> Members:
    _status, found = api.get(MAP)
    return {name: json.loads(text) for name, text in (found.get("data") or {}).items()}


def _listed(members: Members, form: str) -> str:
    rows = [[one["id"], "started", name, one["peer"], one["client"], "false"] for name, one in sorted(members.items())]
    if form == "json":
        told = [
            {"ID": int(one["id"], 16), "name": name, "peerURLs": [one["peer"]], "clientURLs": [one["client"]]}
            for name, one in sorted(members.items())
        ]
        return json.dumps({"header": {"cluster_id": int(CLUSTER, 16)}, "members": told})
    if form == "table":
        return "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join(", ".join(row) for row in rows)


def _remove(identity: str, members: Members, api: Api) -> str:
    left = {name: one for name, one in members.items() if int(one["id"], 16) != int(identity, 16)}
    if left == members:
        raise Failed(1, "Error: etcdserver: member not found")
    _status, found = api.get(MAP)
    body = {**found, "data": {name: json.dumps(one) for name, one in left.items()}}
    status, answer = api.send("PUT", MAP, body)
    if status != OK:
        raise Failed(1, f"Error: {answer.get('message', '')}")
    return f"Member {identity} removed from cluster {CLUSTER}"


def _health(members: Members, api: Api, form: str) -> str:
    """Fails when one of them is not healthy, and tells of all in any case."""
    healthy = {name: _is_healthy(name, api) for name in sorted(members)}
    rows = [{"endpoint": members[name]["client"], "health": well, "took": "9ms"} for name, well in healthy.items()]
    lines = [f"{one['endpoint']} is {'healthy' if one['health'] else 'unhealthy'}" for one in rows]
    text = json.dumps(rows) if form == "json" else "\n".join(lines)
    if not all(healthy.values()):
        raise Unhealthy(text)
    return text


def _is_healthy(node: str, api: Api) -> bool:
    status, found = api.get(f"/api/v1/namespaces/{NAMESPACE}/pods/etcd-{node}")
    return status == OK and _is_ready(found)


def _is_ready(pod: Any) -> bool:
    every = (pod.get("status") or {}).get("conditions") or ()
    return any((one["type"], one["status"]) == ("Ready", "True") for one in every)
