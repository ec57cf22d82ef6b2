"""What the controllers find of an installation, as if they had done it themselves."""

from __future__ import annotations

from typing import Any

from support.stand_in.bmc import BmcFailed
from support.stand_in.controllers import objects
from support.stand_in.controllers.cluster import Cluster
from support.stand_in.controllers.kubelets import KubeletController, node_of
from support.stand_in.controllers.metal3_host import PROVISIONED, Metal3Host
from support.stand_in.controllers.objects import (
    BUDGETS,
    DAEMON_SETS,
    DEPLOYMENTS,
    HOSTS,
    NAMESPACE,
    NODES,
    SECRETS,
    Object,
)

INSTALLER = "cluster-bootstrap"
WORKER = "node-role.kubernetes.io/worker"
DNS, INGRESS = "openshift-dns", "openshift-ingress"
ROUTERS = 2


def take_over(cluster: Cluster, kubelets: KubeletController) -> None:
    for item in cluster.store.list(HOSTS, NAMESPACE):
        host = Metal3Host(cluster, item)
        if host.state == PROVISIONED and not host.status.get("hardware"):
            _take_host(cluster, host)
            kubelets.adopt(host)
    _run_pods(cluster)


def _take_host(cluster: Cluster, host: Metal3Host) -> None:
    network = cluster.find(SECRETS, str(host.spec.get("preprovisioningNetworkDataName", "")), NAMESPACE)
    try:
        nmstate = objects.decoded(network, "nmstate") if network else ""
        hardware = cluster.machinery.hardware(host.mac, host.name, nmstate)
    except BmcFailed:  # it is off
        hardware = {"hostname": host.name, "nics": []}
    now = objects.moment(cluster.clock())
    host.update(
        hardware=hardware,
        operationHistory={"provision": {"start": now, "end": now}},
        provisioning={**host.provisioning, "customDeploy": host.spec.get("customDeploy"), "bootMode": "UEFI"},
    )
    node = cluster.find(NODES, node_of(host))
    if node:
        _take_node(cluster, host, node)


def _take_node(cluster: Cluster, host: Metal3Host, node: Object) -> None:
    found = [{"type": "InternalIP", "address": nic["ip"]} for nic in host.status["hardware"]["nics"]]
    addresses = [*found, {"type": "Hostname", "address": objects.name(node)}]

    def locate(item: Object) -> None:
        item.setdefault("status", {})["addresses"] = addresses

    def identify(item: Object) -> None:
        item.setdefault("spec", {})["providerID"] = f"baremetalhost:///{NAMESPACE}/{host.name}/{host.uid}"

    cluster.change(NODES, node, locate, "kubelet", subresource="status")
    cluster.change(NODES, node, identify, "nodelink-controller")


def _run_pods(cluster: Cluster) -> None:
    """Some that a drain leaves, some that it moves, and a budget for these."""
    workers = len([node for node in cluster.store.list(NODES) if WORKER in objects.labels_of(node)])
    router = {"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": "default"}
    spec: dict[str, Any] = {"selector": {"matchLabels": router}}
    template = {"metadata": {"labels": router}, "spec": {"nodeSelector": {WORKER: ""}}}
    dns = {"dns.operator.openshift.io/daemonset-dns": "default"}
    wanted: tuple[tuple[str, str, str, Object], ...] = (
        (
            DAEMON_SETS,
            "dns-default",
            DNS,
            {"selector": {"matchLabels": dns}, "template": {"metadata": {"labels": dns}}},
        ),
        (DEPLOYMENTS, "router-default", INGRESS, {**spec, "replicas": min(ROUTERS, workers), "template": template}),
        (BUDGETS, "router-default", INGRESS, {**spec, "maxUnavailable": "50%"}),
    )
    for kind, name, namespace, told in wanted:
        if not cluster.find(kind, name, namespace):
            cluster.store.create(kind, {"metadata": {"name": name, "namespace": namespace}, "spec": told}, INSTALLER)
