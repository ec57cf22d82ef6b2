"""The stand-in's MachineSets, Machines and drains."""

from __future__ import annotations

from typing import Any

import pytest
from support.stand_in.controllers import objects
from support.stand_in.controllers.objects import (
    BUDGETS,
    DAEMON_SETS,
    DEPLOYMENTS,
    HOSTS,
    MACHINE_SETS,
    MACHINES,
    NAMESPACE,
    NODES,
    PODS,
)
from support.stand_in_machines import SET, FakeCluster

DELETE, OLD_DELETE = "machine.openshift.io/delete-machine", "machine.openshift.io/cluster-api-delete-machine"


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


def _run_workers(cluster: FakeCluster, count: int, hosts: int | None = None) -> None:
    for number in range(hosts or count):
        cluster.host(f"worker-{number}", online=False)
    cluster.workers(count)
    cluster.until(lambda: _phases(cluster) == ["Running"] * count and len(_ready(cluster)) == count)


def _phases(cluster: FakeCluster) -> list[str]:
    return [objects.status(item).get("phase", "") for item in cluster.store.list(MACHINES)]


def _ready(cluster: FakeCluster) -> list[str]:
    nodes = cluster.store.list(NODES)
    return [objects.name(node) for node in nodes if objects.condition(node, "Ready").get("status") == "True"]


def _machine_of(cluster: FakeCluster, host: str) -> str:
    return str(objects.spec(cluster.get(HOSTS, host))["consumerRef"]["name"])


def test_a_machine_set_that_is_scaled_up_gives_nodes(cluster: FakeCluster) -> None:
    _run_workers(cluster, 2, hosts=3)
    machines = cluster.store.list(MACHINES)
    assert all(objects.name(item).startswith(f"{SET}-") for item in machines)
    assert len(_ready(cluster)) == 2
    cluster.run(2)
    status = objects.status(cluster.get(MACHINE_SETS, SET))
    assert (status["replicas"], status["readyReplicas"]) == (2, 2)
    machine = machines[0]
    host = objects.annotations_of(machine)["metal3.io/BareMetalHost"].removeprefix(f"{NAMESPACE}/")
    node = objects.status(machine)["nodeRef"]["name"]
    assert node == host
    assert objects.spec(machine)["providerID"] == objects.spec(cluster.get(NODES, node))["providerID"]
    assert {"type": "InternalDNS", "address": node} in objects.status(machine)["addresses"]
    cluster.scale(3)
    cluster.until(lambda: len(_ready(cluster)) == 3)


def test_a_machine_without_a_host_says_so_and_goes_first(cluster: FakeCluster) -> None:
    _run_workers(cluster, 1)
    cluster.scale(2)
    cluster.run(3)
    [waiting] = [item for item in cluster.store.list(MACHINES) if objects.status(item)["phase"] == "Provisioning"]
    status = objects.status(waiting)
    told = (status["errorReason"], status["errorMessage"])
    assert told == ("InsufficientResources", "No available BareMetalHost found")
    cluster.scale(1)
    cluster.run(3)
    assert cluster.names(MACHINES) == [_machine_of(cluster, "worker-0")]


@pytest.mark.parametrize(
    ("release", "annotation"), [((4, 11), OLD_DELETE), ((4, 12), DELETE), ((4, 20), OLD_DELETE), ((4, 20), DELETE)]
)
def test_the_annotated_machine_goes_and_its_host_is_cleaned_and_off(release: tuple[int, int], annotation: str) -> None:
    cluster = FakeCluster(release)
    _run_workers(cluster, 3)
    victim = _machine_of(cluster, "worker-1")
    cluster.mark(MACHINES, victim, annotation, "yes")
    cluster.scale(2)
    cluster.until(lambda: victim not in cluster.names(MACHINES))
    assert cluster.names(NODES) == ["worker-0", "worker-2"]
    host = cluster.get(HOSTS, "worker-1")
    assert (cluster.state("worker-1"), objects.status(host)["poweredOn"]) == ("available", False)
    assert not {"consumerRef", "customDeploy", "userData"} & objects.spec(host).keys()
    machine = next(item for item in cluster.machines.machines.values() if item.number == 2)
    assert (machine.on, machine.system) == (False, False)


def test_before_4_12_the_new_annotation_means_nothing() -> None:
    cluster = FakeCluster((4, 11))
    _run_workers(cluster, 8)
    for number in range(7):
        cluster.mark(MACHINES, _machine_of(cluster, f"worker-{number}"), OLD_DELETE, "yes")
    cluster.mark(MACHINES, kept := _machine_of(cluster, "worker-7"), DELETE, "yes")
    cluster.scale(1)
    cluster.until(lambda: cluster.names(MACHINES) == [kept])


def test_a_machine_that_is_deleted_is_replaced(cluster: FakeCluster) -> None:
    _run_workers(cluster, 1, hosts=2)
    [old] = cluster.names(MACHINES)
    cluster.store.delete(MACHINES, old, NAMESPACE)
    cluster.until(lambda: old not in cluster.names(MACHINES) and _phases(cluster) == ["Running"])


def test_hosts_are_chosen_by_the_selector(cluster: FakeCluster) -> None:
    for number in range(3):
        cluster.host(f"worker-{number}", online=False)
    cluster.change(HOSTS, "worker-1", lambda item: item["metadata"].update(labels={"of": "this"}))
    cluster.workers(2, hostSelector={"matchExpressions": [{"key": "of", "operator": "in", "values": ["this"]}]})
    cluster.until(lambda: _ready(cluster) == ["worker-1"])
    assert sorted(_phases(cluster)) == ["Provisioning", "Running"]


@pytest.mark.parametrize("spoilt", ["error", "consumed", "externally"])
def test_who_is_not_free_is_not_taken(cluster: FakeCluster, spoilt: str) -> None:
    more: dict[str, dict[str, Any]] = {
        "error": {},
        "consumed": {"consumerRef": {"kind": "Own", "name": "mine"}},
        "externally": {"externallyProvisioned": True},
    }
    machine = cluster.host("worker-0", **more[spoilt])
    cluster.until(lambda: cluster.state("worker-0") in ("available", "externally provisioned"))
    if spoilt == "error":
        machine.login = ("operator", "another")
        cluster.secret("worker-0", ("operator", "changed"))
        cluster.run(1)
    cluster.workers(1)
    cluster.run(10)
    assert _phases(cluster) == ["Provisioning"]


def test_an_unknown_key_of_the_provider_fails_the_machine(cluster: FakeCluster) -> None:
    cluster.workers(1, colour="red")
    cluster.run(2)
    status = objects.status(cluster.only(MACHINES))
    assert status["phase"] == "Failed"
    assert 'unknown field "colour"' in status["errorMessage"]


def test_a_machine_whose_host_vanishes_has_failed(cluster: FakeCluster) -> None:
    _run_workers(cluster, 1)
    cluster.respec("worker-0", customDeploy=None)
    cluster.run(3)
    status = objects.status(cluster.only(MACHINES))
    assert (status["phase"], status["errorMessage"]) == ("Failed", "can't find created instance")


def test_a_disruption_budget_holds_up_a_drain_until_it_allows_it(cluster: FakeCluster) -> None:
    _deploy(cluster, replicas=1)
    _run_workers(cluster, 1)
    cluster.until(lambda: len(cluster.names(PODS)) == 2)
    _budget(cluster, 1)
    cluster.scale(0)
    cluster.run(30)
    assert cluster.names(NODES) == ["worker-0"]
    assert objects.spec(cluster.only(NODES))["unschedulable"]
    assert _phases(cluster) == ["Deleting"]
    assert cluster.events().count("DrainRequeued") == 1
    _budget(cluster, 0)
    cluster.until(lambda: not cluster.names(NODES))
    assert "DrainSucceeded" in cluster.events()


def test_what_may_not_be_drained_is_not(cluster: FakeCluster) -> None:
    _deploy(cluster, replicas=1)
    _run_workers(cluster, 1)
    cluster.until(lambda: len(cluster.names(PODS)) == 2)
    _budget(cluster, 1)
    cluster.mark(MACHINES, cluster.names(MACHINES)[0], "machine.openshift.io/exclude-node-draining")
    cluster.scale(0)
    cluster.until(lambda: not cluster.names(NODES))


def test_a_hook_is_waited_for(cluster: FakeCluster) -> None:
    _run_workers(cluster, 1)
    [name] = cluster.names(MACHINES)
    hooks = {"preDrain": [{"name": "one", "owner": "me"}]}
    cluster.change(MACHINES, name, lambda item: item["spec"].update(lifecycleHooks=hooks))
    cluster.scale(0)
    cluster.run(20)
    assert "unschedulable" not in objects.spec(cluster.only(NODES))
    cluster.change(MACHINES, name, lambda item: item["spec"].pop("lifecycleHooks"))
    cluster.until(lambda: not cluster.names(MACHINES))


def test_pods_move_to_the_nodes_that_are_left(cluster: FakeCluster) -> None:
    _deploy(cluster, replicas=4)
    _run_workers(cluster, 2)
    cluster.until(lambda: len(cluster.names(PODS)) == 6)
    cluster.mark(MACHINES, _machine_of(cluster, "worker-1"), DELETE, "yes")
    cluster.scale(1)
    cluster.until(lambda: cluster.names(NODES) == ["worker-0"])
    cluster.run(2)
    assert {objects.spec(pod)["nodeName"] for pod in cluster.store.list(PODS)} == {"worker-0"}
    assert len(cluster.names(PODS)) == 5


def _deploy(cluster: FakeCluster, replicas: int) -> None:
    more: dict[str, Any]
    for kind, name, more in ((DEPLOYMENTS, "web", {"replicas": replicas}), (DAEMON_SETS, "dns", {})):
        labels = {"app": name}
        spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}, **more}
        cluster.store.create(kind, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})


def _budget(cluster: FakeCluster, least: int) -> None:
    spec = {"minAvailable": least, "selector": {"matchLabels": {"app": "web"}}}
    whole = {"metadata": {"name": "web", "namespace": "default"}, "spec": spec}
    cluster.store.apply(BUDGETS, whole, manager="test", force=True)
