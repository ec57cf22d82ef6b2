"""The stand-in's kubelets, the approval of their requests, and etcd."""

from __future__ import annotations

import base64

import pytest
from support.stand_in.controllers import certificates, etcd, objects
from support.stand_in.controllers.certificates import CLIENT, DAY, HOUR, SERVING
from support.stand_in.controllers.kubelets import LEAST_PATIENCE_SECONDS
from support.stand_in.controllers.objects import (
    CONFIG_MAPS,
    ETCDS,
    HOSTS,
    LEASES,
    MACHINES,
    NAMESPACE,
    NODES,
    PODS,
    REQUESTS,
    SECRETS,
)
from support.stand_in_machines import FakeCluster, Machine


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def worker(cluster: FakeCluster) -> Machine:
    """Whose Node is ready."""
    machine = cluster.host("worker-0", online=False)
    cluster.workers(1)
    cluster.until(lambda: _ready(cluster) == "True")
    return machine


def _ready(cluster: FakeCluster, name: str = "worker-0") -> str:
    return str(objects.condition(cluster.get(NODES, name), "Ready").get("status", ""))


def _signers(cluster: FakeCluster) -> list[str]:
    items = sorted(cluster.store.list(REQUESTS), key=lambda item: int(item["metadata"]["resourceVersion"]))
    return [item["spec"]["signerName"] for item in items]


@pytest.mark.usefixtures("worker")
def test_a_new_node_asks_for_two_certificates_and_gets_them(cluster: FakeCluster) -> None:
    assert _signers(cluster) == [CLIENT, SERVING]
    client, serving = sorted(cluster.store.list(REQUESTS), key=lambda item: item["spec"]["signerName"])
    assert objects.condition(client, "Approved")["reason"] == "NodeCSRApprove"
    asked = certificates.asked(serving)
    assert asked == certificates.Asked("system:node:worker-0", ("system:nodes",), ("worker-0",), ("192.168.77.21",))
    made = base64.b64decode(objects.status(client)["certificate"]).decode()
    approved = objects.condition(client, "Approved")["lastTransitionTime"]
    assert certificates.expiry(made) - objects.seconds(approved) == DAY
    node = cluster.get(NODES, "worker-0")
    assert "node-role.kubernetes.io/worker" in objects.labels_of(node)
    assert cluster.names(LEASES) == ["worker-0"]


def test_a_node_whose_vm_is_off_is_unknown_until_it_is_on(cluster: FakeCluster, worker: Machine) -> None:
    cluster.respec("worker-0", online=False)
    cluster.until(lambda: _ready(cluster) == "Unknown")
    taints = {taint["effect"] for taint in objects.spec(cluster.get(NODES, "worker-0"))["taints"]}
    assert (worker.on, taints) == (False, {"NoSchedule", "NoExecute"})
    cluster.respec("worker-0", online=True)
    cluster.until(lambda: _ready(cluster) == "True")
    assert objects.spec(cluster.get(NODES, "worker-0"))["taints"] == []


@pytest.mark.usefixtures("worker")
def test_a_certificate_is_renewed_in_time(cluster: FakeCluster) -> None:
    cluster.now += 20 * HOUR
    cluster.run(3)
    assert [objects.condition(item, "Approved")["reason"] for item in cluster.store.list(REQUESTS)].count(
        "AutoApproved"
    ) == 1
    cluster.now += 20 * DAY
    cluster.run(3)
    assert _ready(cluster) == "True"


@pytest.mark.usefixtures("worker")
def test_a_certificate_that_ended_while_it_was_off_is_for_somebody_to_approve(cluster: FakeCluster) -> None:
    cluster.respec("worker-0", online=False)
    cluster.until(lambda: _ready(cluster) == "Unknown")
    cluster.now += 4 * DAY
    cluster.respec("worker-0", online=True)
    cluster.run(6)
    assert _ready(cluster) == "Unknown"
    [client] = cluster.pending()
    assert client["spec"]["username"] == certificates.BOOTSTRAPPER
    cluster.now += LEAST_PATIENCE_SECONDS
    cluster.run(2)
    assert len(cluster.pending()) == 2  # it has lost its patience
    for request in cluster.pending():
        cluster.approve(request)
    cluster.until(lambda: _ready(cluster) == "True")
    cluster.run(3)
    assert cluster.pending() == []
    assert _signers(cluster).count(SERVING) == 2


def test_what_a_kubelet_has_outlives_the_process(cluster: FakeCluster, worker: Machine) -> None:
    again = type(cluster.kubelets)(cluster.cluster, "v1.33.5")
    again.load(cluster.kubelets.dump())
    before = cluster.names(REQUESTS)
    cluster.now += 2
    again.reconcile()
    assert worker.on
    assert cluster.names(REQUESTS) == before


def test_strangers_are_not_approved(cluster: FakeCluster, worker: Machine) -> None:
    cluster.foreign_request("worker-0")  # it is there
    cluster.foreign_request("elsewhere")
    pem = certificates.request("worker-0", ["worker-0", "192.168.77.5"])
    cluster.store.create(REQUESTS, certificates.object_of(pem, SERVING, "system:node:worker-0", certificates.KUBELETS))
    cluster.run(3)
    assert len(cluster.pending()) == 3
    assert worker.on


def _stop_before_the_node(cluster: FakeCluster) -> None:
    cluster.host("worker-0", online=False)
    cluster.workers(1)
    kubelets = cluster.controllers.pop(5)
    cluster.until(lambda: {objects.status(one).get("phase") for one in cluster.store.list(MACHINES)} == {"Provisioned"})
    cluster.controllers.insert(5, kubelets)


def test_who_comes_two_hours_after_its_machine_is_not_approved(cluster: FakeCluster) -> None:
    _stop_before_the_node(cluster)
    cluster.now += 2 * HOUR
    cluster.run(5)
    assert (len(cluster.pending()), cluster.names(NODES)) == (1, [])


def test_the_approval_of_new_nodes_can_be_disabled(cluster: FakeCluster) -> None:
    config = {"data": {"config.yaml": "nodeClientCert:\n  disabled: true\n"}}
    place = {"name": "machine-approver-config", "namespace": "openshift-cluster-machine-approver"}
    cluster.store.create(CONFIG_MAPS, {"metadata": place, **config})
    _stop_before_the_node(cluster)
    cluster.run(5)
    assert len(cluster.pending()) == 1


def test_too_many_pending_requests_stop_the_approver(cluster: FakeCluster) -> None:
    _stop_before_the_node(cluster)
    for number in range(102):
        cluster.foreign_request(f"stranger-{number}")
    cluster.run(5)
    assert cluster.names(NODES) == []


def test_a_new_node_is_one_only_by_the_system_that_was_written_last(cluster: FakeCluster, worker: Machine) -> None:
    cluster.scale(0)
    cluster.until(lambda: not cluster.names(MACHINES))
    cluster.scale(1)
    cluster.until(lambda: _ready(cluster) == "True")
    assert _signers(cluster).count(CLIENT) == 2
    assert worker.system


def test_a_member_of_etcd_is_replaced(cluster: FakeCluster) -> None:
    cluster.store.create(ETCDS, {"metadata": {"name": "cluster"}, "spec": {}})
    for number in range(3):
        _control_plane(cluster, f"control-plane-{number}")
    cluster.until(lambda: len(etcd.read_members(cluster.cluster)) == 3 and len(cluster.names(NODES)) == 3)
    cluster.run(5)
    assert _etcd(cluster, "EtcdMembersAvailable") == ("True", "3 members are available")
    assert "etcd-serving-metrics-control-plane-1" in cluster.names(SECRETS)

    cluster.respec("control-plane-1", online=False)
    cluster.until(lambda: _ready(cluster, "control-plane-1") == "Unknown")
    cluster.run(2)
    available, text = _etcd(cluster, "EtcdMembersAvailable")
    assert (available, text) == ("True", "2 members are available, control-plane-1 is unhealthy")
    cluster.store.delete(MACHINES, "lab-x7k2p-control-plane-1", NAMESPACE)
    cluster.run(20)
    assert "control-plane-1" in cluster.names(NODES)  # it is a member still
    members = etcd.read_members(cluster.cluster)
    etcd.write_members(cluster.cluster, {name: one for name, one in members.items() if name != "control-plane-1"})
    cluster.until(lambda: len(cluster.names(NODES)) == 2)
    cluster.store.delete(HOSTS, "control-plane-1", NAMESPACE)
    cluster.until(lambda: len(cluster.names(HOSTS)) == 2)

    _control_plane(cluster, "control-plane-3")
    cluster.until(lambda: len(cluster.names(NODES)) == 3)
    cluster.run(5)
    assert "control-plane-3" not in etcd.read_members(cluster.cluster)
    unguarded = {"unsupportedConfigOverrides": {etcd.UNGUARDED: True}}
    cluster.change(ETCDS, "cluster", lambda item: item.update(spec=unguarded))
    cluster.run(5)
    assert _etcd(cluster, "EtcdMembersAvailable") == ("True", "3 members are available")
    assert "etcd-control-plane-3" in cluster.names(PODS)

    cluster.store.delete(SECRETS, "etcd-peer-control-plane-0", etcd.NAMESPACE)
    cluster.run(1)
    assert _etcd(cluster, "NodeInstallerProgressing")[0] == "True"
    cluster.run(5)
    assert _etcd(cluster, "NodeInstallerProgressing")[0] == "False"
    assert "etcd-peer-control-plane-0" in cluster.names(SECRETS)


def _etcd(cluster: FakeCluster, kind: str) -> tuple[str, str]:
    found = objects.condition(cluster.get(ETCDS, "cluster"), kind)
    return found.get("status", ""), found.get("message", "")


def _control_plane(cluster: FakeCluster, name: str) -> None:
    """A host, and a Machine by hand."""
    cluster.host(name, online=False)
    value = {"customDeploy": {"method": "install_coreos"}, "userData": {"name": "master-user-data-managed"}}
    role = {"machine.openshift.io/cluster-api-machine-role": "master"}
    cluster.store.create(
        MACHINES,
        {
            "metadata": {
                "name": f"lab-x7k2p-{name}",
                "namespace": NAMESPACE,
                "labels": role,
                "annotations": {"metal3.io/BareMetalHost": f"{NAMESPACE}/{name}"},
            },
            "spec": {"providerSpec": {"value": value}},
        },
    )
