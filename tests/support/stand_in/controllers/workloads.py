"""Pods: those of DaemonSets and Deployments on the nodes that can have them, and static ones of the control plane."""

from __future__ import annotations

from typing import Any

from support.stand_in.controllers import objects
from support.stand_in.controllers.cluster import Cluster
from support.stand_in.controllers.drain import MIRROR
from support.stand_in.controllers.objects import BUDGETS, DAEMON_SETS, DEPLOYMENTS, NODES, PODS, Object
from support.stand_in.kubernetes import eviction
from support.stand_in.kubernetes.errors import Exists

MANAGER = "kube-controller-manager"
MASTER = "node-role.kubernetes.io/master"
STATIC = {"etcd": "openshift-etcd", "kube-apiserver": "openshift-kube-apiserver"}


class WorkloadController:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def reconcile(self) -> None:
        nodes = {objects.name(node): node for node in self._cluster.store.list(NODES)}
        pods = self._cluster.store.list(PODS)
        for pod in pods:
            is_ending = bool(pod["metadata"].get("deletionTimestamp")) and not eviction.is_silent(
                self._cluster.store, pod
            )
            if is_ending or objects.spec(pod).get("nodeName", "") not in nodes:
                eviction.end(self._cluster.store, pod)
        pods = self._cluster.store.list(PODS)
        for node in nodes.values():
            if MASTER in objects.labels_of(node):
                self._keep_static(node, pods)
        for one in self._cluster.store.list(DAEMON_SETS):
            self._keep_everywhere(one, nodes, pods)
        for one in self._cluster.store.list(DEPLOYMENTS):
            self._keep_count(one, list(nodes.values()), pods)
        for budget in self._cluster.store.list(BUDGETS):
            self._count(budget)

    def _keep_static(self, node: Object, pods: list[Object]) -> None:
        for name, namespace in STATIC.items():
            pod = f"{name}-{objects.name(node)}"
            if not any(objects.name(one) == pod for one in pods):
                marks = {"labels": {"app": name, "k8s-app": name}, "annotations": {MIRROR: "stand-in"}}
                owner = {"ownerReferences": [objects.owner(node)]}
                self._create(pod, namespace, objects.name(node), {**marks, **owner})

    def _keep_everywhere(self, one: Object, nodes: dict[str, Object], pods: list[Object]) -> None:
        own = {objects.spec(pod)["nodeName"] for pod in pods if objects.owned_by(pod, one)}
        for node in nodes:
            if node not in own:
                self._create("", objects.namespace(one), node, _of_template(one))

    def _keep_count(self, one: Object, nodes: list[Object], pods: list[Object]) -> None:
        own = [pod for pod in pods if objects.owned_by(pod, one) and not pod["metadata"].get("deletionTimestamp")]
        missing = int(objects.spec(one).get("replicas", 1)) - len(own)
        for pod in own[: max(0, -missing)]:
            self._cluster.store.delete(PODS, objects.name(pod), objects.namespace(pod))
        load = {objects.name(node): 0 for node in nodes if _takes(node, one)}
        for pod in pods:
            if objects.spec(pod).get("nodeName") in load:
                load[objects.spec(pod)["nodeName"]] += 1
        for _number in range(missing if load else 0):
            node = min(load, key=lambda name: load[name])
            load[node] += 1
            self._create("", objects.namespace(one), node, _of_template(one))

    def _create(self, name: str, namespace: str, node: str, metadata: dict[str, Any]) -> None:
        whole = {**metadata, "namespace": namespace, **({"name": name} if name else {})}
        ready = [{"type": "Ready", "status": "True"}]
        new = {
            "metadata": whole,
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "stand-in"}]},
            "status": {"phase": "Running", "conditions": ready},
        }
        try:
            self._cluster.store.create(PODS, new, manager=MANAGER)
        except Exists:
            return

    def _count(self, budget: Object) -> None:
        counted = eviction.status(self._cluster.store, budget)

        def tell(item: Object) -> None:
            item["status"] = {**objects.status(item), **counted}

        if not counted.items() <= objects.status(budget).items():
            self._cluster.change(BUDGETS, budget, tell, MANAGER, subresource="status")


def _of_template(one: Object) -> dict[str, Any]:
    template = objects.spec(one).get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    return {"generateName": f"{objects.name(one)}-", "labels": labels, "ownerReferences": [objects.owner(one)]}


def _takes(node: Object, one: Object) -> bool:
    """Pods of a Deployment: where they may go, is ready, and has no taint, but for what says where."""
    wanted = ((objects.spec(one).get("template") or {}).get("spec") or {}).get("nodeSelector") or {}
    taints = [taint for taint in objects.spec(node).get("taints") or () if taint.get("key") not in wanted]
    return bool(
        objects.condition(node, "Ready").get("status") == "True"
        and not objects.spec(node).get("unschedulable")
        and not taints
        and wanted.items() <= objects.labels_of(node).items()
    )
