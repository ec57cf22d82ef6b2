"""What the status says of a cluster, asked by a real kubectl of an API that stands in."""

from __future__ import annotations

import base64
import socket
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api import signers
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import Client
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status import cluster
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.observation import Member, Operator

if TYPE_CHECKING:
    from pathlib import Path

    from support.kubernetes_api import KubernetesApi

NAMESPACE = "openshift-machine-api"
VIPS = {cluster.API: ["127.0.0.1"], cluster.INGRESS: ["127.0.0.1"]}
EXPIRES = "2027-11-19T10:00:00Z"


def condition(name: str, status: str, message: str = "") -> dict[str, str]:
    return {"type": name, "status": status, "message": message}


def put(api: KubernetesApi, kind: str, name: str, namespace: str = "", **parts: Any) -> None:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **parts.pop("metadata", {})}
    status = parts.pop("status", None)
    api.store.create(kind, {"metadata": metadata, **parts})
    if status is not None:
        made = api.store.get(kind, name, namespace)
        api.store.update(kind, {**made, "status": status}, subresource="status")


@pytest.fixture
def api(kubernetes_api: KubernetesApi) -> KubernetesApi:
    """A cluster with a node that is well and one that is not provisioned."""
    for name, state, error in (("control-plane-0", "provisioned", ""), ("worker-0", "provisioning", "no callback")):
        status = {"provisioning": {"state": state}, "errorMessage": error}
        put(kubernetes_api, "baremetalhosts.metal3.io", name, NAMESPACE, spec={"online": True}, status=status)
        put(
            *(kubernetes_api, "machines.machine.openshift.io", f"ha-x-{name}", NAMESPACE),
            metadata={"annotations": {"metal3.io/BareMetalHost": f"{NAMESPACE}/{name}"}},
            spec={},
            status={"phase": "Running", "nodeRef": {"name": f"{name}.ha.example.test"}} if not error else {},
        )
    ready = {"conditions": [condition("Ready", "True")]}
    put(kubernetes_api, "nodes", "control-plane-0.ha.example.test", spec={"unschedulable": True}, status=ready)
    history = [{"state": "Partial", "version": "4.20.4"}, {"state": "Completed", "version": "4.20.3"}]
    put(kubernetes_api, "clusterversions.config.openshift.io", "version", spec={}, status={"history": history})
    for name, conditions in (
        ("console", [condition("Available", "True"), condition("Degraded", "True", "no answer")]),
        ("etcd", [condition("Available", "True"), condition("Degraded", "False")]),
    ):
        put(kubernetes_api, "clusteroperators.config.openshift.io", name, spec={}, status={"conditions": conditions})
    put(kubernetes_api, "namespaces", signers.NAMESPACES[signers.TO_KUBELETS])
    annotations = {signers.NOT_AFTER: EXPIRES}
    key = {"tls.key": "c2VjcmV0"}
    put(
        *(kubernetes_api, "secrets", signers.TO_KUBELETS, signers.NAMESPACES[signers.TO_KUBELETS]),
        metadata={"annotations": annotations},
        data=key,
    )
    return kubernetes_api


def client_of(api: KubernetesApi) -> Client:
    return Client(api.program, api.kubeconfig, api.directory)


def test_what_it_says_of_nodes_operators_and_certificates(api: KubernetesApi, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        ports = {cluster.API: api.server.port, cluster.INGRESS: closed.getsockname()[1]}
        monkeypatch.setattr(cluster, "PORTS", ports)
        said = cluster.ask(client_of(api), VIPS, {})
    assert said.members == {
        "control-plane-0": Member(
            host_state="provisioned",
            machine="ha-x-control-plane-0",
            machine_phase="Running",
            node="control-plane-0.ha.example.test",
            ready=True,
            cordoned=True,
        ),
        "worker-0": Member(host_state="provisioning", host_error="no callback", machine="ha-x-worker-0"),
    }
    seen = said.cluster
    assert (seen.state, seen.version, seen.operators) == ("answers", "4.20.3", 2)
    assert seen.operators_failing == [Operator("console", "degraded", "no answer")]
    certificates = {certificate.name: certificate for certificate in seen.certificates}
    assert certificates["signer of the API server's client certificates for kubelets"].expires == EXPIRES
    assert certificates["serving the API"].expires > EXPIRES[:4]
    assert "c2VjcmV0" not in repr(said)
    assert [(vip.kind, vip.answers, vip.holder) for vip in seen.vips] == [("API", True, ""), ("ingress", False, "")]


def test_nodes_that_were_installed_with_another_network_are_named(api: KubernetesApi) -> None:
    secret = {"data": {"nmstate": base64.b64encode(b"interfaces: []\n").decode()}}
    put(api, "secrets", "worker-0-network-config-secret", NAMESPACE, **secret)
    put(api, "secrets", "worker-0-bmc-secret", NAMESPACE, data={"password": "c2VjcmV0"})
    name = {"preprovisioningNetworkDataName": "worker-0-network-config-secret"}
    api.store.change(
        *("baremetalhosts.metal3.io", "worker-0", NAMESPACE),
        lambda host: host["spec"].update(name),
    )

    def changed(**networks: Any) -> set[str]:
        said = cluster.ask(client_of(api), {}, {}, networks)
        return {name for name, member in said.members.items() if member.network_changed}

    mine: dict[str, Any] = {"interfaces": []}
    other = {"interfaces": [{"name": "enp1s0"}]}
    assert changed(**{"worker-0": mine}) == set()
    assert changed(**{"worker-0": other}) == {"worker-0"}
    assert changed(**{"control-plane-0": other}) == {"control-plane-0", "worker-0"}


def test_a_cluster_without_some_kinds_says_the_rest(api: KubernetesApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "KINDS", (*cluster.KINDS, "unicorns.example.test"))
    assert set(cluster.ask(client_of(api), {}, {}).members) == {"control-plane-0", "worker-0"}


def test_an_api_that_does_not_answer_is_silent(api: KubernetesApi, tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        text = api.kubeconfig.read_text(encoding="utf-8").replace(f":{api.server.port}", f":{port}")
        elsewhere = tmp_path / "kubeconfig"
        elsewhere.write_text(text, encoding="utf-8")
        said = cluster.ask(Client(api.program, elsewhere, tmp_path), {}, {})
    assert (said.cluster.state, said.members) == ("silent", {})
    assert said.cluster.error.startswith(f"127.0.0.1:{port}: ")


def test_without_a_client_the_addresses_are_looked_at_all_the_same() -> None:
    seen = cluster.ask(None, {cluster.API: ["127.0.0.1"]}, {}).cluster
    assert (seen.state, seen.error) == ("not asked", "The host has neither oc nor kubectl.")
    assert [vip.kind for vip in seen.vips] == ["API"]


def test_one_that_accepts_connections_and_says_nothing_does_not_hold_it_up(
    api: KubernetesApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        text = api.kubeconfig.read_text(encoding="utf-8").replace(f":{api.server.port}", f":{port}")
        elsewhere = tmp_path / "kubeconfig"
        elsewhere.write_text(text, encoding="utf-8")
        said = cluster.ask(Client(api.program, elsewhere, tmp_path), {}, {})
    assert (said.cluster.state, said.cluster.error) == ("silent", "no answer within 0.2 s")
