"""The client of the cluster's API, with clients of several releases and an API that behaves as the real one."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from support import kubectl, kubernetes_api, stand_in_mirror

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import Client
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.errors import ApiError
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import (
    HOSTS,
    MACHINE_SETS,
    NODES,
    REQUESTS,
    SECRETS,
    BareMetalHost,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.kubernetes_api import KubernetesApi

NAMESPACE = "openshift-machine-api"
BUDGETS = "poddisruptionbudgets.policy"
OC = "oc"


@pytest.fixture(params=[*kubectl.SUITES, OC])
def api(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KubernetesApi]:
    """With kubectl of two releases, and an oc."""
    suite = kubectl.NEWEST if request.param == OC else request.param
    with kubernetes_api.start(tmp_path / "api", suite=suite) as started:
        if request.param == OC:
            program = stand_in_mirror.program(tmp_path / "bin" / OC, "4.20.3")
            scenario = {"*": {"kubectl": str(started.program)}}
            program.with_name("stand-in-installer.json").write_text(json.dumps(scenario))
            started.program = program
        yield started


@pytest.fixture
def client(api: KubernetesApi, tmp_path: Path) -> Client:
    home = tmp_path / "home"
    home.mkdir()
    return Client(api.program, api.kubeconfig, home)


def host(name: str = "worker-2", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"online": True, "bootMACAddress": "52:54:00:00:00:01", **spec},
    }


def secret(word: str = "first") -> dict[str, Any]:
    metadata = {"name": "worker-2-bmc-secret", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"password": word}}


def pod(name: str, **labels: str) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
    return {
        "metadata": {"name": name, "namespace": "app", "labels": labels, "ownerReferences": [owner]},
        "spec": {"nodeName": "worker-0", "containers": []},
    }


def refused(api: KubernetesApi, client: Client) -> str:
    with pytest.raises(ApiError) as caught:
        client.get(NODES)
    return caught.value.reason


def test_objects_are_applied_and_read(api: KubernetesApi, client: Client) -> None:
    assert client.get(HOSTS, namespace=NAMESPACE) == []
    client.apply([secret(), host()])
    [found] = client.get(HOSTS, "worker-2", NAMESPACE)
    assert BareMetalHost.from_dict(found).boot_mac == "52:54:00:00:00:01"
    assert [item["metadata"]["name"] for item in client.get(HOSTS, all_namespaces=True)] == ["worker-2"]
    assert client.get(HOSTS, "another", NAMESPACE) == []
    version = api.store.version
    client.apply([secret(), host()])
    assert api.store.version == version
    assert len(client.get(f"{HOSTS},{SECRETS}", namespace=NAMESPACE)) == 2
    client.apply([secret("second")])
    assert api.store.get(SECRETS, "worker-2-bmc-secret", NAMESPACE)["data"] == {"password": "c2Vjb25k"}
    assert {entry.manager for entry in api.server.audit.entries() if entry.verb == "patch"} == {"nometal.ipi"}


def test_what_others_have_set_stays_unless_forced(api: KubernetesApi, client: Client) -> None:
    client.apply([host()])
    api.store.change(HOSTS, "worker-2", NAMESPACE, lambda item: item["spec"].update(online=False), manager="oc-edit")
    with pytest.raises(ApiError, match="oc-edit") as caught:
        client.apply([host()])
    assert caught.value.reason == "conflict"
    client.apply([host()], force=True)
    assert api.store.get(HOSTS, "worker-2", NAMESPACE)["spec"]["online"] is True


def test_objects_are_changed(api: KubernetesApi, client: Client) -> None:
    api.store.create(HOSTS, host())
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}}
    api.store.create(MACHINE_SETS, {"metadata": {"name": "workers", "namespace": NAMESPACE}, "spec": spec})
    client.patch(HOSTS, "worker-2", NAMESPACE, {"spec": {"online": False}})
    client.annotate(HOSTS, "worker-2", NAMESPACE, {"a": "b", "c": "d"})
    client.annotate(HOSTS, "worker-2", NAMESPACE, {"a": None})
    client.scale(MACHINE_SETS, "workers", NAMESPACE, 4)
    found = api.store.get(HOSTS, "worker-2", NAMESPACE)
    assert (found["spec"]["online"], found["metadata"]["annotations"]) == (False, {"c": "d"})
    assert api.store.get(MACHINE_SETS, "workers", NAMESPACE)["spec"]["replicas"] == 4
    client.patch(HOSTS, "worker-2", NAMESPACE, [{"op": "remove", "path": "/metadata/annotations"}], merge=False)
    assert "annotations" not in api.store.get(HOSTS, "worker-2", NAMESPACE)["metadata"]


def test_deletion_does_not_wait(api: KubernetesApi, client: Client) -> None:
    metadata = {**host()["metadata"], "finalizers": [HOSTS]}
    api.store.create(HOSTS, {**host(), "metadata": metadata})
    client.delete(HOSTS, "worker-2", NAMESPACE)
    client.delete(HOSTS, "another", NAMESPACE)
    [found] = client.get(HOSTS, "worker-2", NAMESPACE)
    assert BareMetalHost.from_dict(found).deletion


def test_nodes_are_drained_as_far_as_budgets_allow(api: KubernetesApi, client: Client) -> None:
    api.store.create(NODES, {"metadata": {"name": "worker-0"}})
    for item in (pod("web-0", app="web"), pod("other", app="other")):
        api.store.create("pods", item)
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    api.store.create(BUDGETS, {"metadata": {"name": "web", "namespace": "app"}, "spec": budget})
    client.cordon("worker-0")
    assert api.store.get(NODES, "worker-0")["spec"] == {"unschedulable": True}
    assert [pod for pod in client.drain("worker-0", 5) if pod.startswith("app/web-0: ")]
    assert "web-0" in [item["metadata"]["name"] for item in api.store.list("pods")]
    api.store.delete(BUDGETS, "web", "app")
    assert client.drain("worker-0", 60) == []
    assert api.store.list("pods") == []
    client.uncordon("worker-0")
    assert not api.store.get(NODES, "worker-0")["spec"].get("unschedulable")


def test_pods_of_a_silent_node_stay_terminating_and_are_not_waited_for(api: KubernetesApi, client: Client) -> None:
    status = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
    api.store.create(NODES, {"metadata": {"name": "worker-0"}, "status": status})
    api.store.change(NODES, "worker-0", "", lambda item: item.update(status=status), subresource="status")
    api.store.create("pods", pod("web-0", app="web"))
    assert client.drain("worker-0", 3)
    assert api.store.get("pods", "web-0", "app")["metadata"]["deletionTimestamp"]
    assert client.drain("worker-0", 60, is_silent=True) == []


def test_requests_are_approved(api: KubernetesApi, client: Client) -> None:
    names = ["csr-1", "csr-2", "csr-3"]
    for name in names:
        api.store.create(REQUESTS, {"metadata": {"name": name}, "spec": {"signerName": "x", "request": "eA=="}})
    client.approve(names[:2])
    approved = [item["metadata"]["name"] for item in api.store.list(REQUESTS) if item.get("status")]
    assert approved == names[:2]


def test_why_it_does_not_work(api: KubernetesApi, client: Client) -> None:
    cases = {
        "invalid": lambda: client.apply([host(bootMode="bios")]),
        "not found": lambda: client.scale(MACHINE_SETS, "workers", NAMESPACE, 2),
        "conflict": lambda: client.run("create", "-f", "-", "--validate=false", stdin=json.dumps(host())),
    }
    api.store.create(HOSTS, host())
    for reason, call in cases.items():
        with pytest.raises(ApiError) as caught:
            call()
        assert caught.value.reason == reason, caught.value
    node = api.kubeconfig_of("system:node:worker-0", ["system:nodes"])
    with pytest.raises(ApiError) as caught:
        Client(api.program, node, client.home).get(SECRETS, namespace=NAMESPACE)
    assert caught.value.reason == "forbidden"


def test_an_api_that_is_not_there(api: KubernetesApi, client: Client) -> None:
    api.store.create(NODES, {"metadata": {"name": "worker-0"}})
    assert len(client.get(NODES)) == 1
    api.server.switches.unavailable = True
    assert refused(api, client) == "unreachable"
    api.server.switches.unavailable = False
    api.server.stop()
    assert refused(api, client) == "unreachable"


def test_who_the_api_does_not_know(api: KubernetesApi, client: Client, tmp_path: Path) -> None:
    lines = [line for line in api.kubeconfig.read_text().splitlines() if "client-key" not in line]
    unknown = re.sub("client-certificate-data: .*", "token: unknown", "\n".join(lines))
    (tmp_path / "unknown").write_text(unknown)
    with pytest.raises(ApiError) as caught:
        Client(api.program, tmp_path / "unknown", client.home).get(NODES)
    assert caught.value.reason == "unauthorized"
