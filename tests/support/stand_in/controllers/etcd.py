"""etcd and its operator, as far as a control plane node can be replaced: members, Secrets, pods and conditions."""

from __future__ import annotations

import json
import zlib

from support.stand_in.controllers import objects
from support.stand_in.controllers.cluster import Cluster
from support.stand_in.controllers.objects import (
    CONFIG_MAPS,
    ETCDS,
    MACHINES,
    NODES,
    PODS,
    ROLE_OF_MACHINE,
    SECRETS,
    Object,
)
from support.stand_in.controllers.workloads import MASTER
from support.stand_in.kubernetes.errors import Exists

OPERATOR, ETCD = "etcd-operator", "etcd"
NAMESPACE = "openshift-etcd"
SECRET_PREFIXES = ("etcd-peer", "etcd-serving", "etcd-serving-metrics")
MEMBERS = "stand-in-etcd-members"
"""The ConfigMap that says who is a member: what real members keep among themselves."""
INSTALLED = "stand-in/installed"
"""Annotation of the same: the ids of members that have been rolled out, which needs no quorum when they come back."""
HOOK = {"name": "EtcdQuorumOperator", "owner": "clusteroperator/etcd"}
"""Until its node is no member of etcd, the Machine is not drained."""
UNGUARDED = "useUnsupportedUnsafeNonHANonProductionUnstableEtcd"
ROLLOUT_STEPS = 2


class EtcdController:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._rollout = 0.0
        self._forced = ""

    def reconcile(self) -> None:
        operator = self._cluster.find(ETCDS, "cluster")
        if not operator:
            return
        nodes = [node for node in self._cluster.store.list(NODES) if MASTER in objects.labels_of(node)]
        if not nodes:
            return
        members = read_members(self._cluster)
        if not members:
            members = {objects.name(node): _member(node) for node in nodes}
            write_members(self._cluster, members)
        for node in nodes:
            self._keep_secrets(operator, objects.name(node))
            self._join(operator, node, nodes, members)
        self._note_installed(members)
        if self._cluster.is_at_least(4, 11):
            self._keep_hooks(members)
        self._tell(operator, nodes, members)

    def _join(self, operator: Object, node: Object, nodes: list[Object], members: dict[str, Object]) -> None:
        """One at a time, once the others are healthy: a member that is gone would cost the quorum."""
        name = objects.name(node)
        there = {objects.name(one): one for one in nodes}
        lost = [member for member in members if member not in there or not _is_ready(there[member])]
        may = self._may_roll_out(operator, _member(node)["id"], members)
        if name not in members and not lost and _is_ready(node) and may:
            members[name] = _member(node)
            write_members(self._cluster, members)

    def _may_roll_out(self, operator: Object, identity: str, members: dict[str, Object]) -> bool:
        """On a new node only while the others bear to lose one, or with the quorum guard off."""
        overrides = objects.spec(operator).get("unsupportedConfigOverrides") or {}
        bears_a_loss = len(members) > len(members) // 2 + 1
        return bool(overrides.get(UNGUARDED)) or bears_a_loss or identity in self._installed()

    def _installed(self) -> set[str]:
        found = self._cluster.find(CONFIG_MAPS, MEMBERS, NAMESPACE)
        return set(objects.annotations_of(found).get(INSTALLED, "").split()) if found else set()

    def _note_installed(self, members: dict[str, Object]) -> None:
        known = self._installed()
        every = known | {one["id"] for one in members.values()}
        found = self._cluster.find(CONFIG_MAPS, MEMBERS, NAMESPACE)
        if found and every != known:
            noted = {INSTALLED: " ".join(sorted(every))}
            self._cluster.change(CONFIG_MAPS, found, lambda item: item["metadata"].update(annotations=noted), ETCD)

    def _keep_hooks(self, members: dict[str, Object]) -> None:
        for machine in self._cluster.store.list(MACHINES, objects.NAMESPACE, {ROLE_OF_MACHINE: "master"}):
            hooks = (objects.spec(machine).get("lifecycleHooks") or {}).get("preDrain") or []
            others = [hook for hook in hooks if hook != HOOK]
            is_member = (objects.status(machine).get("nodeRef") or {}).get("name") in members
            wanted = hooks if is_member else others
            if not objects.is_deleted(machine):
                wanted = [*others, HOOK]
            if wanted != hooks:

                def keep(item: Object, wanted: list[Object] = wanted) -> None:
                    item.setdefault("spec", {}).setdefault("lifecycleHooks", {})["preDrain"] = wanted

                self._cluster.change(MACHINES, machine, keep, OPERATOR)

    def _keep_secrets(self, operator: Object, node: str) -> None:
        """A Secret that was deleted comes back, and its node's pod is rolled out again."""
        for prefix in SECRET_PREFIXES:
            name = f"{prefix}-{node}"
            if not self._cluster.find(SECRETS, name, NAMESPACE):
                new = {"metadata": {"name": name, "namespace": NAMESPACE}, "type": "kubernetes.io/tls", "data": {}}
                try:
                    self._cluster.store.create(SECRETS, new, manager=OPERATOR)
                except Exists:
                    continue
                self._rollout = self._cluster.clock() + ROLLOUT_STEPS * self._cluster.step()
        forced = objects.spec(operator).get("forceRedeploymentReason", "")
        if forced != self._forced:
            self._rollout, self._forced = self._cluster.clock() + ROLLOUT_STEPS * self._cluster.step(), forced

    def _tell(self, operator: Object, nodes: list[Object], members: dict[str, Object]) -> None:
        ready = {objects.name(node) for node in nodes if _is_ready(node)}
        healthy = [name for name in members if name in ready]
        lost = sorted(set(members) - set(healthy))
        rolling = self._cluster.clock() < self._rollout
        now = self._cluster.clock()
        available = len(healthy) * 2 > len(members)
        text = f"{len(healthy)} members are available"
        text += f", {', '.join(lost)} {'is' if len(lost) == 1 else 'are'} unhealthy" if lost else ""
        wanted = {
            "EtcdMembersAvailable": (
                "True" if available else "False",
                "EtcdQuorate" if available else "NoQuorum",
                text,
            ),
            "EtcdMembersDegraded": ("True", "UnhealthyMembers", text) if lost else ("False", "AsExpected", text),
            "NodeInstallerProgressing": ("True", "NodeInstaller", "rolling out")
            if rolling
            else ("False", "AllNodesAtLatestRevision", f"{len(nodes)} nodes are at revision 7"),
        }
        known = {kind: objects.condition(operator, kind) for kind in wanted}
        if any((known[kind].get("status"), known[kind].get("message")) != told[::2] for kind, told in wanted.items()):

            def tell(item: Object) -> None:
                for kind, told in wanted.items():
                    objects.with_condition(item, now, kind, *told)

            self._cluster.change(ETCDS, operator, tell, OPERATOR, subresource="status")
        self._tell_pods(nodes, healthy)

    def _tell_pods(self, nodes: list[Object], healthy: list[str]) -> None:
        for node in nodes:
            pod = self._cluster.find(PODS, f"{ETCD}-{objects.name(node)}", NAMESPACE)
            state = "True" if objects.name(node) in healthy else "False"
            if pod and objects.condition(pod, "Ready").get("status") != state:

                def tell(item: Object, state: str = state) -> None:
                    objects.with_condition(item, self._cluster.clock(), "Ready", state)

                self._cluster.change(PODS, pod, tell, OPERATOR, subresource="status")


def read_members(cluster: Cluster) -> dict[str, Object]:
    """By the name of their node."""
    found = cluster.find(CONFIG_MAPS, MEMBERS, NAMESPACE)
    return {name: json.loads(text) for name, text in ((found or {}).get("data") or {}).items()}


def write_members(cluster: Cluster, members: dict[str, Object]) -> None:
    data = {name: json.dumps(member) for name, member in members.items()}
    found = cluster.find(CONFIG_MAPS, MEMBERS, NAMESPACE)
    if found:
        cluster.change(CONFIG_MAPS, found, lambda item: item.update(data=data), ETCD)
    else:
        new = {"metadata": {"name": MEMBERS, "namespace": NAMESPACE}, "data": data}
        cluster.store.create(CONFIG_MAPS, new, manager=ETCD)


def _member(node: Object) -> Object:
    every = objects.status(node).get("addresses") or ()
    address = next((one["address"] for one in every if one["type"] == "InternalIP"), "127.0.0.1")
    host = f"[{address}]" if ":" in address else address
    number = zlib.crc32(objects.uid(node).encode())
    return {"id": f"{number:016x}", "peer": f"https://{host}:2380", "client": f"https://{host}:2379"}


def _is_ready(node: Object) -> bool:
    return objects.condition(node, "Ready").get("status") == "True"
