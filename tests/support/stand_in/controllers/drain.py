"""How the machine controller drains a node: cordon, evict, and again what a PodDisruptionBudget holds back."""

from __future__ import annotations

from support.stand_in.controllers import objects
from support.stand_in.controllers.cluster import Cluster
from support.stand_in.controllers.objects import NODES, PODS, Object
from support.stand_in.kubernetes import eviction
from support.stand_in.kubernetes.errors import NotFound, TooManyRequests

CONTROLLER = "machine-drain-controller"
MIRROR = "kubernetes.io/config.mirror"
RETRY_STEPS = 0.5


class Drain:
    def __init__(self, cluster: Cluster, machine: Object, node: Object) -> None:
        self._cluster = cluster
        self._machine = machine
        self._node = objects.name(node)
        self._due = 0.0
        self._failed = False

    def go_on(self) -> bool:
        """Whether nothing is left that it would evict."""
        if self._cluster.clock() < self._due:
            return False
        node = self._cluster.find(NODES, self._node)
        if not node:
            return True
        if not objects.spec(node).get("unschedulable"):
            self._cluster.change(
                NODES, node, lambda item: item.setdefault("spec", {}).update(unschedulable=True), CONTROLLER
            )
            self._cluster.tell(self._machine, "DrainProceeds", "Node drain proceeds", CONTROLLER)
        blocked = [why for pod in evictable(self._cluster, self._node) if (why := self._evict(pod))]
        if blocked:
            self._due = self._cluster.clock() + RETRY_STEPS * self._cluster.step()
            if not self._failed:
                self._cluster.tell(self._machine, "DrainRequeued", f"Node drain requeued: {blocked[0]}", CONTROLLER)
            self._failed = True
            return False
        self._cluster.tell(self._machine, "DrainSucceeded", "Node drain succeeded", CONTROLLER)
        return True

    def _evict(self, pod: Object) -> str:
        """Why not."""
        place = f"{objects.namespace(pod)}/{objects.name(pod)}"
        try:
            eviction.evict(self._cluster.store, objects.name(pod), objects.namespace(pod))
        except NotFound:
            return ""
        except TooManyRequests as error:
            return f"error when evicting pods/{place}: {error}"
        return ""


def evictable(cluster: Cluster, node: str) -> list[Object]:
    """Not those of DaemonSets, nor static ones."""
    found = [pod for pod in cluster.store.list(PODS) if objects.spec(pod).get("nodeName") == node]
    return [pod for pod in found if MIRROR not in objects.annotations_of(pod) and not _of_daemon_set(pod)]


def _of_daemon_set(pod: Object) -> bool:
    return any(owner.get("kind") == "DaemonSet" for owner in pod["metadata"].get("ownerReferences") or ())
