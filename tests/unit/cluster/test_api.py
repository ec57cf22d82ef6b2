"""The client of the cluster's API, by a program that records what it is called with, and objects as it gives them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api import client as api_client
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import Client, client_with
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.errors import ApiError, error_of
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import (
    DETACHED,
    HOSTS,
    MACHINE_SETS,
    BareMetalHost,
    CertificateRequest,
    Machine,
    MachineSet,
    Node,
)

RECORDER = """#!/usr/bin/env python3
import json, os, pathlib, sys
calls = pathlib.Path(__file__).with_name("calls")
stdin = sys.stdin.read()
with calls.open("a") as file:
    print(json.dumps([sys.argv[1:], stdin, dict(os.environ)]), file=file)
sys.stdout.write(pathlib.Path(__file__).with_name("stdout").read_text())
sys.stderr.write(pathlib.Path(__file__).with_name("stderr").read_text())
sys.exit(int(pathlib.Path(__file__).with_name("code").read_text()))
"""


class Recorder:
    def __init__(self, directory: Path, name: str = "kubectl") -> None:
        self.directory = directory
        program = directory / name
        program.write_text(RECORDER)
        program.chmod(0o755)
        self.answers()
        self.client = Client(program, directory / "kubeconfig", directory)

    def answers(self, stdout: str = "", stderr: str = "", code: int = 0) -> None:
        for name, text in (("stdout", stdout), ("stderr", stderr), ("code", str(code))):
            (self.directory / name).write_text(text)

    @property
    def calls(self) -> list[tuple[list[str], str, dict[str, str]]]:
        return [json.loads(line) for line in (self.directory / "calls").read_text().splitlines()]

    @property
    def words(self) -> list[str]:
        """Of the last call, without what all calls have."""
        *words, kubeconfig, timeout = self.calls[-1][0]
        assert (kubeconfig, timeout) == (f"--kubeconfig={self.directory}/kubeconfig", "--request-timeout=10s")
        return words


@pytest.fixture
def kubectl(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path)


@pytest.fixture
def oc(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path, "oc")


def test_objects_are_read(kubectl: Recorder) -> None:
    kubectl.answers(json.dumps({"kind": "BareMetalHostList", "items": [{"metadata": {"name": "a"}}]}))
    assert kubectl.client.get(HOSTS, namespace="openshift-machine-api") == [{"metadata": {"name": "a"}}]
    asked = ["get", HOSTS, "--output=json", "--ignore-not-found", "--namespace=openshift-machine-api"]
    assert kubectl.words == asked
    kubectl.answers(json.dumps({"kind": "BareMetalHost", "metadata": {"name": "a"}}))
    assert kubectl.client.get(HOSTS, "a", "n") == [{"kind": "BareMetalHost", "metadata": {"name": "a"}}]
    kubectl.client.get("pods", selector="k8s-app=etcd", all_namespaces=True)
    options = ["--output=json", "--ignore-not-found", "--selector=k8s-app=etcd", "--all-namespaces"]
    assert kubectl.words == ["get", "pods", *options]


def test_objects_are_read_with_their_managers(kubectl: Recorder) -> None:
    kubectl.answers(json.dumps({"kind": "NodeList", "items": [{"metadata": {"managedFields": []}}]}))
    assert kubectl.client.listed("/api/v1/nodes") == [{"metadata": {"managedFields": []}}]
    assert kubectl.words == ["get", "--raw", "/api/v1/nodes"]


def test_what_is_not_there_is_no_error(kubectl: Recorder) -> None:
    assert kubectl.client.get(HOSTS, "a", "n") == []


def test_the_program_has_none_of_the_environment(kubectl: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/another/cluster")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.test")
    kubectl.client.get("nodes")
    environment = kubectl.calls[0][2]
    assert environment["HOME"] == str(kubectl.directory)
    assert not {"KUBECONFIG", "HTTPS_PROXY"} & {*environment}


@pytest.mark.parametrize("force", [False, True])
def test_objects_are_applied_by_standard_input(kubectl: Recorder, *, force: bool) -> None:
    secret = {"kind": "Secret", "stringData": {"password": "PLANT"}}
    kubectl.client.apply([secret], force=force)
    [(words, stdin, _)] = kubectl.calls
    assert {"--server-side", "--field-manager=nometal.ipi", "--filename=-"} <= {*words}
    assert ("--force-conflicts" in words) == force
    assert json.loads(stdin)["items"] == [secret]
    assert "PLANT" not in " ".join(words)


def test_a_secret_is_not_patched(kubectl: Recorder) -> None:
    with pytest.raises(ValueError, match="applied"):
        kubectl.client.patch("secrets", "a", "n", {"data": {}})


def test_changes(kubectl: Recorder) -> None:
    kubectl.client.annotate(HOSTS, "a", "n", {DETACHED: "", "b": None})
    *words, patch, manager, namespace = kubectl.words
    assert (words, namespace) == (["patch", HOSTS, "a", "--type=merge"], "--namespace=n")
    assert manager == "--field-manager=nometal.ipi"
    assert json.loads(patch.partition("=")[2]) == {"metadata": {"annotations": {DETACHED: "", "b": None}}}
    kubectl.client.patch(HOSTS, "a", "n", [{"op": "remove", "path": "/spec/x"}], merge=False)
    assert kubectl.words[3] == "--type=json"
    kubectl.client.scale(MACHINE_SETS, "demo-worker-0", "n", 4)
    assert kubectl.words == ["scale", MACHINE_SETS, "demo-worker-0", "--replicas=4", "--namespace=n"]
    kubectl.client.delete(HOSTS, "a", "n")
    assert kubectl.words == ["delete", HOSTS, "a", "--wait=false", "--ignore-not-found", "--namespace=n"]


def test_only_oc_administers_by_adm(tmp_path: Path) -> None:
    for name, adm in (("oc", ["adm"]), ("kubectl", [])):
        program = Recorder(tmp_path, name)
        program.client.cordon("a")
        assert program.words == [*adm, "cordon", "a"]
        program.client.uncordon("a")
        assert program.words == [*adm, "uncordon", "a"]
        program.client.approve(["csr-1", "csr-2"])
        assert program.words == [*adm, "certificate", "approve", "csr-1", "csr-2"]
        program.client.drain("a", 30)
        assert program.words[: len(adm) + 2] == [*adm, "drain", "a"]


def test_nothing_to_approve(oc: Recorder) -> None:
    oc.client.approve([])
    assert not (oc.directory / "calls").exists()


REFUSED = "Cannot evict pod as it would violate the pod's disruption budget"
DRAINS = f"""node/worker-1 cordoned
evicting pod shop/db-0
error when evicting pods/"db-0" -n "shop" (will retry after 5s): {REFUSED}.
evicting pod shop/db-0
error when evicting pods/"db-0" -n "shop" (will retry after 5s): {REFUSED}.
There are pending nodes to be drained:
 worker-1
error when evicting pods/"db-0" -n "shop": global timeout reached: 30s
error: drain did not complete within 30s
"""


def test_what_blocks_a_drain_is_named_once(kubectl: Recorder) -> None:
    kubectl.answers(stderr=DRAINS, code=1)
    assert kubectl.client.drain("worker-1", 30) == [f"shop/db-0: {REFUSED}"]


@pytest.mark.parametrize("is_silent", [False, True])
def test_pods_of_a_silent_node_are_not_waited_for(kubectl: Recorder, *, is_silent: bool) -> None:
    kubectl.client.drain("worker-1", 30, is_silent=is_silent)
    assert ({"--skip-wait-for-delete-timeout=1", "--grace-period=1"} <= {*kubectl.words}) == is_silent


def test_a_drain_that_is_refused(kubectl: Recorder) -> None:
    kubectl.answers(stderr='Error from server (NotFound): nodes "worker-1" not found\n', code=1)
    with pytest.raises(ApiError) as refused:
        kubectl.client.drain("worker-1", 30)
    assert refused.value.reason == "not found"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ('Error from server (NotFound): nodes "a" not found', "not found"),
        ('error: the server doesn\'t have a resource type "baremetalhosts"', "not found"),
        ('error: no objects passed to scale machinesets.machine.openshift.io "workers" not found', "not found"),
        ("Error from server (Conflict): Apply failed with 1 conflict: ...", "conflict"),
        ("error: Apply failed with 2 conflicts: conflicts with x using v1: ...", "conflict"),
        ("Error from server (Forbidden): nodes is forbidden: User x cannot list", "forbidden"),
        ("error: You must be logged in to the server (Unauthorized)", "unauthorized"),
        ('The BareMetalHost "a" is invalid: spec.online: Required value', "invalid"),
        ('Error from server (Forbidden): admission webhook "x.metal3.io" denied the request: bmc', "invalid"),
        (
            "The connection to the server api.x:6443 was refused - did you specify the right host?",
            "unreachable",
        ),
        ("Unable to connect to the server: dial tcp: lookup api.x: no such host", "unreachable"),
        ("Error from server (ServiceUnavailable): apiserver is shutting down", "unreachable"),
        ("error: anything else", "other"),
        ("", "other"),
    ],
)
def test_why_it_is_not_done(kubectl: Recorder, said: str, reason: str) -> None:
    log = "E1120 12:00:00.123456     123 memcache.go:265] couldn't get current server API group list: https://a\n"
    kubectl.answers(stderr=f"Warning: old\n{log if said else ''}{said}\n", code=1)
    with pytest.raises(ApiError) as refused:
        kubectl.client.run("get", "nodes")
    assert refused.value.reason == reason
    assert str(refused.value).startswith(f"The cluster's API: {said[:20]}")


def test_a_secret_in_what_it_says_is_masked() -> None:
    assert "PLANT" not in str(error_of("Unable to connect to https://me:PLANT@api"))


def test_no_answer(kubectl: Recorder) -> None:
    (kubectl.directory / "kubectl").write_text("#!/bin/sh\nexec sleep 3600\n")
    with pytest.raises(ApiError) as silent:
        kubectl.client.run("get", "nodes", seconds=0.1)
    assert silent.value.reason == "unreachable"


def test_a_program_that_does_not_run(tmp_path: Path) -> None:
    with pytest.raises(ApiError, match="does not run on this host: No such file"):
        Client(tmp_path / "oc", tmp_path / "kubeconfig", tmp_path).get("nodes")


def test_which_client_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools, path, kubeconfig = tmp_path / "tools", tmp_path / "path", tmp_path / "kubeconfig"
    monkeypatch.setattr(api_client, "SEARCHED", str(path))

    def found() -> str:
        client = client_with(kubeconfig, tmp_path, str(tools))
        return str(client.program.relative_to(tmp_path)) if client else ""

    kubeconfig.touch()
    assert found() == ""
    for program in ("path/kubectl", "path/oc", "tools/oc"):
        (tmp_path / program).parent.mkdir(exist_ok=True)
        (tmp_path / program).touch(mode=0o755)
        assert found() == program
    kubeconfig.unlink()
    assert found() == ""


HOST: dict[str, Any] = {
    "metadata": {"name": "worker-0", "labels": {"a": "b"}, "deletionTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {
        "online": True,
        "bootMACAddress": "52:54:00:AA:BB:CC",
        "bmc": {"address": "redfish://h", "credentialsName": "worker-0-bmc-secret"},
        "consumerRef": {"name": "demo-worker-0-x"},
    },
    "status": {
        "provisioning": {"state": "provisioned"},
        "operationalStatus": "error",
        "errorType": "power management error",
        "errorMessage": "https://me:PLANT@bmc failed",
        "poweredOn": True,
    },
}


def test_hosts() -> None:
    host = BareMetalHost.from_dict(HOST)
    assert (host.name, host.state, host.consumer, host.boot_mac) == (
        *("worker-0", "provisioned", "demo-worker-0-x"),
        "52:54:00:aa:bb:cc",
    )
    assert (host.online, host.powered_on, host.deletion) == (True, True, True)
    assert (host.error_type, host.error_message) == ("power management error", "https://***@bmc failed")
    assert BareMetalHost.from_dict({"metadata": {"name": "b"}}) == BareMetalHost("b")


def test_machines() -> None:
    labels = {
        "machine.openshift.io/cluster-api-machineset": "demo-worker-0",
        "machine.openshift.io/cluster-api-machine-role": "worker",
    }
    host = {"metal3.io/BareMetalHost": "openshift-machine-api/worker-0"}
    machine = Machine.from_dict(
        {
            "metadata": {"name": "demo-worker-0-x", "labels": labels, "annotations": host},
            "status": {"phase": "Running", "nodeRef": {"name": "worker-0"}},
        }
    )
    assert (machine.host, machine.node, machine.role) == ("worker-0", "worker-0", "worker")
    assert (machine.machine_set, machine.phase) == ("demo-worker-0", "Running")
    template = {"metadata": {"labels": labels}}
    items = {"metadata": {"name": "s"}, "spec": {"replicas": 2, "template": template}, "status": {"readyReplicas": 1}}
    machine_set = MachineSet.from_dict(items)
    assert (machine_set.replicas, machine_set.ready, machine_set.role) == (2, 1, "worker")


def test_nodes() -> None:
    node = Node.from_dict(
        {
            "metadata": {"name": "a", "labels": {"node-role.kubernetes.io/worker": "", "other": ""}},
            "spec": {"unschedulable": True},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "False"}],
                "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}, {"type": "Hostname", "address": "a"}],
            },
        }
    )
    assert node == Node("a", "True", unschedulable=True, roles=["worker"], addresses=["192.0.2.1"])
    assert not Node.from_dict({"metadata": {"name": "b"}}).is_ready


def test_certificate_requests() -> None:
    item: dict[str, Any] = {
        "metadata": {"name": "csr-1", "creationTimestamp": "1970-01-01T00:01:00Z"},
        "spec": {
            "signerName": "kubernetes.io/kubelet-serving",
            "username": "system:node:a",
            "groups": ["system:nodes"],
            "usages": ["server auth"],
            "request": "UEVN",
        },
    }
    request = CertificateRequest.from_dict(item)
    assert (request.request, request.age(100.0), request.pending) == ("PEM", 40.0, True)
    assert (request.signer, request.groups) == ("kubernetes.io/kubelet-serving", ["system:nodes"])
    approved = {**item, "status": {"conditions": [{"type": "Approved"}]}}
    assert not CertificateRequest.from_dict(approved).pending
    assert not CertificateRequest.from_dict({"spec": {"request": "no base64"}}).request
