"""Evictions, which PodDisruptionBudgets may refuse."""

from __future__ import annotations

import math
from typing import Any

from support.stand_in.kubernetes import errors, kinds, selectors
from support.stand_in.kubernetes.store import Object, Store

PODS, NODES, BUDGETS = "pods", "nodes", "poddisruptionbudgets.policy"
KUBELET = "stand-in/kubelet"
"""Finalizer in place of the kubelet, whose word ends a pod: one that does not answer leaves it Terminating."""


def evict(store: Store, name: str, namespace: str, uid: str = "", *, dry: bool = False) -> None:
    """Deletes the pod, or raises TooManyRequests. On a node that is not ready, it stays Terminating."""
    pod = store.get(PODS, name, namespace)
    if uid and uid != pod["metadata"]["uid"]:
        raise errors.Conflict(
            f'pods "{name}" has another UID: {pod["metadata"]["uid"]}', errors.of(kinds.of(PODS), name)
        )
    for budget in store.list(BUDGETS, namespace):
        if selectors.matches(budget["spec"].get("selector"), pod) and _is_healthy(pod):
            counted = status(store, budget)
            if counted["disruptionsAllowed"] < 1:
                raise _refused(budget["metadata"]["name"], counted)
    if not dry and is_silent(store, pod):
        store.change(PODS, name, namespace, lambda item: item["metadata"].update(finalizers=[KUBELET]))
    store.delete(PODS, name, namespace, dry=dry)


def is_silent(store: Store, pod: Object) -> bool:
    """Whether nobody ends the pod. A node without conditions counts as ready."""
    names = {node["metadata"]["name"]: node for node in store.list(NODES)}
    node = names.get(pod.get("spec", {}).get("nodeName", ""), {})
    conditions = {item["type"]: item["status"] for item in node.get("status", {}).get("conditions", [])}
    return conditions.get("Ready", "True") != "True"


def end(store: Store, pod: Object) -> None:
    """It is gone now, by the kubelet or with its node."""
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    if pod["metadata"].get("finalizers"):
        store.change(PODS, name, namespace, lambda item: item["metadata"].pop("finalizers", None) and None)
    if not pod["metadata"].get("deletionTimestamp"):
        store.delete(PODS, name, namespace)


def status(store: Store, budget: Object) -> dict[str, int]:
    """What the disruption controller writes."""
    spec = budget["spec"]
    pods = [
        pod for pod in store.list(PODS, budget["metadata"]["namespace"]) if selectors.matches(spec.get("selector"), pod)
    ]
    healthy = len([pod for pod in pods if _is_healthy(pod)])
    expected = len(pods)
    if "maxUnavailable" in spec:
        desired = max(0, expected - _share(spec["maxUnavailable"], expected))
    else:
        desired = _share(spec.get("minAvailable", 1), expected)
    allowed = max(0, healthy - desired)
    found = {"currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": expected}
    return {**found, "disruptionsAllowed": allowed}


def _share(told: Any, of: int) -> int:
    return math.ceil(int(told[:-1]) * of / 100) if isinstance(told, str) and told.endswith("%") else int(told)


def _is_healthy(pod: Object) -> bool:
    """A pod without conditions counts as ready."""
    conditions = {item["type"]: item["status"] for item in pod.get("status", {}).get("conditions", [])}
    return conditions.get("Ready", "True") == "True" and not pod["metadata"].get("deletionTimestamp")


def _refused(budget: str, counted: dict[str, int]) -> errors.TooManyRequests:
    healthy, needed = counted["currentHealthy"], counted["desiredHealthy"]
    why = f"The disruption budget {budget} needs {needed} healthy pods and has {healthy} currently"
    return errors.TooManyRequests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        {"causes": [{"reason": "DisruptionBudget", "message": why}]},
    )
