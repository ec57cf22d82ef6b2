"""The kinds that the controllers know, and what is read of any object and written to it."""

from __future__ import annotations

import base64
import datetime
import uuid
from typing import Any

Object = dict[str, Any]

HOSTS = "baremetalhosts.metal3.io"
PROVISIONINGS = "provisionings.metal3.io"
MACHINES = "machines.machine.openshift.io"
MACHINE_SETS = "machinesets.machine.openshift.io"
NODES, PODS, SECRETS, CONFIG_MAPS, EVENTS = "nodes", "pods", "secrets", "configmaps", "events"
LEASES = "leases.coordination.k8s.io"
REQUESTS = "certificatesigningrequests.certificates.k8s.io"
BUDGETS = "poddisruptionbudgets.policy"
DAEMON_SETS, DEPLOYMENTS = "daemonsets.apps", "deployments.apps"
ETCDS = "etcds.operator.openshift.io"
NAMESPACE = "openshift-machine-api"
HOST_OF_MACHINE = "metal3.io/BareMetalHost"
ROLE_OF_MACHINE = "machine.openshift.io/cluster-api-machine-role"


def moment(seconds: float) -> str:
    """As the API writes times."""
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text: str) -> float:
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def name(item: Object) -> str:
    return str(item["metadata"]["name"])


def namespace(item: Object) -> str:
    return str(item["metadata"].get("namespace", ""))


def uid(item: Object) -> str:
    return str(item["metadata"]["uid"])


def annotations_of(item: Object) -> dict[str, str]:
    return dict(item["metadata"].get("annotations") or {})


def labels_of(item: Object) -> dict[str, str]:
    return dict(item["metadata"].get("labels") or {})


def finalizers(item: Object) -> list[str]:
    return list(item["metadata"].get("finalizers") or [])


def decoded(secret: Object, key: str) -> str:
    return base64.b64decode((secret.get("data") or {}).get(key, "")).decode()


def is_deleted(item: Object) -> bool:
    """Whether it has been deleted, and is still there for its finalizers."""
    return bool(item["metadata"].get("deletionTimestamp"))


def spec(item: Object) -> Object:
    return item.get("spec") or {}


def status(item: Object) -> Object:
    return item.get("status") or {}


def reference(item: Object) -> Object:
    found = {"kind": item["kind"], "apiVersion": item["apiVersion"], "name": name(item), "uid": uid(item)}
    return {**found, "namespace": namespace(item)} if namespace(item) else found


def owner(item: Object, *, controller: bool = True) -> Object:
    """An entry of `ownerReferences`."""
    found = {"apiVersion": item["apiVersion"], "kind": item["kind"], "name": name(item), "uid": uid(item)}
    return {**found, "controller": True, "blockOwnerDeletion": True} if controller else found


def owned_by(item: Object, of: Object) -> bool:
    return any(one.get("uid") == uid(of) for one in item["metadata"].get("ownerReferences") or ())


def condition(item: Object, kind: str) -> Object:
    return next((one for one in status(item).get("conditions") or () if one.get("type") == kind), {})


def with_condition(  # noqa: PLR0913, PLR0917 - what a condition has
    item: Object, now: float, kind: str, state: str, reason: str = "", message: str = ""
) -> Object:
    """The item, changed: its time is that of the last change of `state`."""
    every = item.setdefault("status", {}).setdefault("conditions", [])
    new = {"type": kind, "status": state, "reason": reason, "message": message, "lastTransitionTime": moment(now)}
    for place, one in enumerate(every):
        if one.get("type") == kind:
            if one.get("status") == state:
                new["lastTransitionTime"] = one.get("lastTransitionTime", moment(now))
            every[place] = {**one, **new}
            return item
    every.append(new)
    return item


def event(  # noqa: PLR0913 - what an event has
    about: Object, now: float, reason: str, message: str, *, source: str, warning: bool = False
) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name(about)}.{uuid.uuid4().hex[:16]}", "namespace": namespace(about) or "default"},
        "involvedObject": reference(about),
        "reason": reason,
        "message": message,
        "type": "Warning" if warning else "Normal",
        "source": {"component": source},
        "count": 1,
        "firstTimestamp": moment(now),
        "lastTimestamp": moment(now),
    }
