"""The controller of MachineSets: as many Machines as they say, and which of them goes first."""

from __future__ import annotations

import random
import string
from typing import Any

from support.stand_in.controllers import objects
from support.stand_in.controllers.cluster import Cluster
from support.stand_in.controllers.objects import MACHINE_SETS, MACHINES, NAMESPACE, NODES, Object

CONTROLLER = "machineset-controller"
OLD_DELETE, DELETE = "machine.openshift.io/cluster-api-delete-machine", "machine.openshift.io/delete-machine"
LABEL = "machine.openshift.io/cluster-api-machineset"
SUFFIX = 5
MARKED, WITHOUT_NODE, REST = range(3)


class MachineSetController:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def reconcile(self) -> None:
        for one in self._cluster.store.list(MACHINE_SETS, NAMESPACE):
            if objects.is_deleted(one):
                continue
            self._count(one, self.machines(one))
            self._tell(one, self.machines(one))

    def machines(self, one: Object) -> list[Object]:
        """Those that its selector names, no other set owns, and nobody deletes."""
        wanted = objects.spec(one).get("selector", {}).get("matchLabels", {})
        found = self._cluster.store.list(MACHINES, NAMESPACE, wanted)
        found = [item for item in found if not objects.is_deleted(item)]
        return [item for item in found if not item["metadata"].get("ownerReferences") or objects.owned_by(item, one)]

    def _count(self, one: Object, own: list[Object]) -> None:
        missing = int(objects.spec(one).get("replicas", 1)) - len(own)
        for _number in range(missing):
            self._create(one)
        for machine in self._victims(one, own)[: max(0, -missing)]:
            self._cluster.store.delete(MACHINES, objects.name(machine), NAMESPACE)

    def _create(self, one: Object) -> None:
        template = objects.spec(one)["template"]
        suffix = "".join(random.choice(string.ascii_lowercase + string.digits) for _ in range(SUFFIX))  # noqa: S311 - a name
        metadata = dict(template.get("metadata") or {})
        new = {
            "apiVersion": one["apiVersion"],
            "kind": "Machine",
            "metadata": {
                **metadata,
                "name": f"{objects.name(one)}-{suffix}",
                "namespace": NAMESPACE,
                "ownerReferences": [objects.owner(one)],
            },
            "spec": template.get("spec", {}),
        }
        self._cluster.store.create(MACHINES, new, manager=CONTROLLER)

    def _victims(self, one: Object, own: list[Object]) -> list[Object]:
        """The first that go first."""
        policy = objects.spec(one).get("deletePolicy") or "Random"
        shuffled = random.sample(own, len(own))
        if policy in ("Newest", "Oldest"):
            shuffled.sort(key=lambda item: item["metadata"]["creationTimestamp"], reverse=policy == "Newest")
            return sorted(shuffled, key=lambda item: not self._is_marked(item))
        return sorted(shuffled, key=self._order)

    def _order(self, machine: Object) -> int:
        if self._is_marked(machine) or objects.status(machine).get("errorReason"):
            return MARKED
        return REST if objects.status(machine).get("nodeRef") else WITHOUT_NODE

    def _is_marked(self, machine: Object) -> bool:
        """With any value."""
        known = (DELETE, OLD_DELETE) if self._cluster.is_at_least(4, 12) else (OLD_DELETE,)
        return any(objects.annotations_of(machine).get(key) for key in known)

    def _tell(self, one: Object, own: list[Object]) -> None:
        nodes = {objects.name(node): node for node in self._cluster.store.list(NODES)}
        linked = [nodes.get((objects.status(item).get("nodeRef") or {}).get("name", "")) for item in own]
        ready = [node for node in linked if node and objects.condition(node, "Ready").get("status") == "True"]
        counts: dict[str, Any] = {
            "replicas": len(own),
            "fullyLabeledReplicas": len(own),
            "readyReplicas": len(ready),
            "availableReplicas": len(ready),
            "observedGeneration": one["metadata"].get("generation", 1),
        }

        def change(item: Object) -> None:
            item["status"] = {**objects.status(item), **counts}

        if any(objects.status(one).get(key) != value for key, value in counts.items()):
            self._cluster.change(MACHINE_SETS, one, change, CONTROLLER, subresource="status")
