"""Nodes, as their kubelets make them: certificates, the Node, its lease, and what becomes of it when the VM is off."""

from __future__ import annotations

import base64
from dataclasses import asdict, dataclass
from typing import Any

from support.stand_in.controllers import certificates, objects
from support.stand_in.controllers.approver import FIRST_SECONDS
from support.stand_in.controllers.certificates import BOOTSTRAPPER, BOOTSTRAPPERS, CLIENT, KUBELETS, PREFIX, SERVING
from support.stand_in.controllers.cluster import Cluster
from support.stand_in.controllers.metal3_host import EXTERNALLY, PROVISIONED, Metal3Host
from support.stand_in.controllers.objects import HOSTS, LEASES, NAMESPACE, NODES, REQUESTS, Object
from support.stand_in.kubernetes.errors import Exists

KUBELET, LIFECYCLE = "kubelet", "kube-controller-manager"
LEASE_NAMESPACE = "kube-node-lease"
BOOT_STEPS, READY_STEPS, GRACE_STEPS, PATIENCE_STEPS = 1, 1, 0.7, 15
LEAST_PATIENCE_SECONDS = 60
"""However fast the scenario is: whoever approves takes that long."""
HEARTBEAT_STEPS = 0.5
RENEWAL = 0.2
"""Of its time, before a certificate ends."""
ROLES = {"master": ("control-plane", "master"), "arbiter": ("arbiter",), "worker": ("worker",)}
UNREACHABLE = "node.kubernetes.io/unreachable"


@dataclass
class Files:
    """What a kubelet has on its disk."""

    system: str
    """When it was written."""
    client: float = 0
    """The end of its certificate, 0 without one."""
    client_since: float = 0
    serving: float = 0
    serving_since: float = 0
    asked: str = ""
    """The name of the request that it waits for."""
    asked_serving: str = ""


class KubeletController:
    def __init__(self, cluster: Cluster, version: str) -> None:
        self._cluster = cluster
        self._version = version
        self.files: dict[str, Files] = {}
        """By the host's uid."""
        self._on: dict[str, float] = {}
        """Since when it is on."""
        self._off: dict[str, float] = {}

    def adopt(self, host: Metal3Host) -> None:
        """One that has its certificates from the installation, and its Node."""
        now = self._cluster.clock()
        end = now + FIRST_SECONDS
        self.files[host.uid] = Files(_written(host), client=end, client_since=now, serving=end, serving_since=now)

    def dump(self) -> dict[str, Any]:
        return {uid: asdict(files) for uid, files in self.files.items()}

    def load(self, dumped: dict[str, Any]) -> None:
        self.files = {uid: Files(**files) for uid, files in dumped.items()}

    def reconcile(self) -> None:
        seen = set()
        for item in self._cluster.store.list(HOSTS, NAMESPACE):
            host = Metal3Host(self._cluster, item)
            if host.state not in (PROVISIONED, EXTERNALLY):
                continue
            name = node_of(host)
            seen.add(name)
            if self._is_up(host):
                self._run(host, name)
            else:
                self._lose(name)
        for node in self._cluster.store.list(NODES):
            if objects.name(node) not in seen:
                self._lose(objects.name(node))

    def _is_up(self, host: Metal3Host) -> bool:
        now = self._cluster.clock()
        if not self._cluster.machinery.runs(host.mac):
            self._on.pop(host.uid, None)
            return False
        since = self._on.setdefault(host.uid, now)
        return now - since >= BOOT_STEPS * self._cluster.step()

    def _run(self, host: Metal3Host, name: str) -> None:
        now, written = self._cluster.clock(), _written(host)
        files = self.files.get(host.uid)
        if files is None or files.system != written:
            files = self.files[host.uid] = Files(written)
        self._collect(files)
        node = self._cluster.find(NODES, name)
        if files.client <= now:
            self._ask(files, name, bootstrap=True)
            self._lose(name)
            return
        if now > files.client - (files.client - files.client_since) * RENEWAL:
            self._ask(files, name, bootstrap=False)
        if not node:
            self._off.pop(name, None)
            self._register(host, name, files)
            return
        self._off.pop(name, None)
        if files.serving <= now or now > files.serving - (files.serving - files.serving_since) * RENEWAL:
            self._ask_to_serve(files, name, node)
        self._report(node, files)

    def _collect(self, files: Files) -> None:
        for kind, name in (("client", files.asked), ("serving", files.asked_serving)):
            request = self._cluster.find(REQUESTS, name) if name else None
            issued = objects.status(request).get("certificate") if request else None
            if issued:
                end = certificates.expiry(base64.b64decode(issued).decode())
                now = self._cluster.clock()
                if kind == "client":
                    files.client, files.client_since, files.asked = end, now, ""
                else:
                    files.serving, files.serving_since, files.asked_serving = end, now, ""

    def _ask(self, files: Files, name: str, *, bootstrap: bool) -> None:
        if not self._is_asking(files.asked):
            user, groups = (BOOTSTRAPPER, BOOTSTRAPPERS) if bootstrap else (f"{PREFIX}{name}", KUBELETS)
            files.asked = self._create(certificates.object_of(certificates.request(name), CLIENT, user, groups))

    def _ask_to_serve(self, files: Files, name: str, node: Object) -> None:
        if not self._is_asking(files.asked_serving):
            names = [one["address"] for one in objects.status(node).get("addresses") or ()]
            pem = certificates.request(name, list(dict.fromkeys(names)))
            files.asked_serving = self._create(certificates.object_of(pem, SERVING, f"{PREFIX}{name}", KUBELETS))

    def _is_asking(self, request: str) -> bool:
        """A kubelet loses its patience after a quarter of an hour, and asks again."""
        found = self._cluster.find(REQUESTS, request) if request else None
        if not found or objects.condition(found, "Denied"):
            return False
        age = self._cluster.clock() - objects.seconds(found["metadata"]["creationTimestamp"])
        return age <= max(PATIENCE_STEPS * self._cluster.step(), LEAST_PATIENCE_SECONDS)

    def _create(self, request: Object) -> str:
        return objects.name(self._cluster.store.create(REQUESTS, request, manager=KUBELET))

    def _register(self, host: Metal3Host, name: str, files: Files) -> None:
        hardware = host.status.get("hardware") or {}
        found = [{"type": "InternalIP", "address": nic["ip"]} for nic in hardware.get("nics") or () if nic.get("ip")]
        marks = {f"node-role.kubernetes.io/{label}": "" for label in ROLES[role_of(host)]}
        node = {
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **marks},
            },
            "spec": {},
            "status": {
                "addresses": [*found, {"type": "Hostname", "address": name}],
                "nodeInfo": {"kubeletVersion": self._version, "osImage": "Red Hat Enterprise Linux CoreOS"},
                "capacity": {"cpu": "4", "pods": "250"},
                "allocatable": {"cpu": "4", "pods": "250"},
            },
        }
        if "master" in ROLES[role_of(host)]:
            node["spec"] = {"taints": [{"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}]}
        self._set(node, "False", "KubeletNotReady", "container runtime network not ready")
        made = self._cluster.store.create(NODES, node, manager=KUBELET)
        self._ask_to_serve(files, name, made)

    def _report(self, node: Object, files: Files) -> None:
        """Ready some steps after it has got its certificate."""
        now = self._cluster.clock()
        if now - files.client_since < READY_STEPS * self._cluster.step():
            return
        self._renew_lease(objects.name(node))
        if objects.condition(node, "Ready").get("status") != "True":

            def ready(item: Object) -> None:
                self._set(item, "True", "KubeletReady", "kubelet is posting ready status")

            self._cluster.change(NODES, node, ready, KUBELET, subresource="status")
        if any(taint.get("key") == UNREACHABLE for taint in objects.spec(node).get("taints") or ()):
            self._cluster.change(NODES, node, _reachable, LIFECYCLE)

    def _lose(self, name: str) -> None:
        """What nobody reports of is not known after a while."""
        node = self._cluster.find(NODES, name)
        if not node:
            self._off.pop(name, None)
            return
        since = self._off.setdefault(name, self._cluster.clock())
        over = self._cluster.clock() - since >= GRACE_STEPS * self._cluster.step()
        if not over or objects.condition(node, "Ready").get("status") == "Unknown":
            return

        def unknown(item: Object) -> None:
            self._set(item, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")

        self._cluster.change(NODES, node, unknown, LIFECYCLE, subresource="status")
        self._cluster.change(NODES, node, self._unreachable, LIFECYCLE)

    def _unreachable(self, item: Object) -> None:
        _reachable(item)
        now = objects.moment(self._cluster.clock())
        for effect in ("NoSchedule", "NoExecute"):
            item["spec"].setdefault("taints", []).append({"key": UNREACHABLE, "effect": effect, "timeAdded": now})

    def _set(self, node: Object, state: str, reason: str, message: str) -> None:
        now = self._cluster.clock()
        objects.with_condition(node, now, "Ready", state, reason, message)
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure"):
            objects.with_condition(node, now, kind, "Unknown" if state == "Unknown" else "False", reason)
        for one in node["status"]["conditions"]:
            one["lastHeartbeatTime"] = objects.moment(now)

    def _renew_lease(self, name: str) -> None:
        now = self._cluster.clock()
        lease = self._cluster.find(LEASES, name, LEASE_NAMESPACE)
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": objects.moment(now)}
        if not lease:
            new = {"metadata": {"name": name, "namespace": LEASE_NAMESPACE}, "spec": spec}
            try:
                self._cluster.store.create(LEASES, new, manager=KUBELET)
            except Exists:
                return
        elif now - objects.seconds(lease["spec"]["renewTime"]) >= max(10, HEARTBEAT_STEPS * self._cluster.step()):
            self._cluster.change(LEASES, lease, lambda item: item["spec"].update(spec), KUBELET)


def node_of(host: Metal3Host) -> str:
    """What the system takes for its name."""
    return str((host.status.get("hardware") or {}).get("hostname") or host.name)


def role_of(host: Metal3Host) -> str:
    """By the user data that its system was written with."""
    role = str((host.spec.get("userData") or {}).get("name", "")).partition("-")[0]
    return role if role in ROLES else "worker"


def _written(host: Metal3Host) -> str:
    return str(((host.status.get("operationHistory") or {}).get("provision") or {}).get("end", ""))


def _reachable(item: Object) -> None:
    spec = item.setdefault("spec", {})
    spec["taints"] = [taint for taint in spec.get("taints") or () if taint.get("key") != UNREACHABLE]
