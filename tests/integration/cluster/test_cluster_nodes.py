"""A cluster's nodes follow the lab: by kubectl of Debian, against the stand-in's API."""

from __future__ import annotations

import copy
import json
import stat
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support import cluster_controllers
from support.cluster_controllers import HOSTS, MACHINES, NAMESPACE, SET, SETS, Controllers
from unit.cluster import nodes_samples as samples

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api import client as api_client
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.installation import Installation
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes import cluster, following, manifests, port
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.cluster import GROW, SHRINK, Cluster, Task
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.wait import Clock
from ansible_collections.nometal.ipi.plugins.module_utils._lab import paths
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import Identity

if TYPE_CHECKING:
    from pathlib import Path

    from support.kubernetes_api import KubernetesApi

LOOPBACK = {"vips": {"api": ["127.0.0.1"], "ingress": []}, "domain": ""}


def lab(workers: int = 2, spares: str = "{count: 0}", overrides: str = "{}", more: str = "") -> dict[str, Any]:
    return {**samples.lab(workers, spares, overrides, more), **LOOPBACK}


@dataclass
class Bench:
    api: KubernetesApi
    controllers: Controllers
    directory: Path

    def task(self, part: str, model: dict[str, Any], **changes: Any) -> Task:
        """With accounts for all nodes, as stage bmc makes them."""
        accounts = {
            Identity("ha").vm_name(node["name"]): {"username": "admin", "password": f"secret-of-{node['name']}"}
            for node in model["nodes"]
        }
        self.accounts.parent.mkdir(parents=True, exist_ok=True)
        self.accounts.write_text(json.dumps(accounts))
        installation = Installation(
            paths=paths.Paths("ha"),
            api_vips=["127.0.0.1"],
            bmc_home=str(self.directory / "bmc"),
            libvirt_uri="test:///default",
        )
        return replace(Task(part, model, installation, version="4.20.3", drain_seconds=5), **changes)

    @property
    def accounts(self) -> Path:
        return self.directory / "bmc/ha/credentials.json"

    def look(self, part: str, model: dict[str, Any], **changes: Any) -> dict[str, Any]:
        return Cluster(self.task(part, model, **changes)).look().to_dict()

    def follow(self, part: str, model: dict[str, Any], **changes: Any) -> dict[str, Any]:
        with self.controllers.running():
            return Cluster(self.task(part, model, **changes)).follow().to_dict()

    def names(self, kind: str) -> list[str]:
        return [item["metadata"]["name"] for item in self.api.store.list(kind, "" if kind == "nodes" else NAMESPACE)]

    @property
    def workers(self) -> list[str]:
        return [name for name in self.names("nodes") if name.startswith("worker")]

    @property
    def replicas(self) -> int:
        return int(self.api.store.get(SETS, SET, NAMESPACE)["spec"]["replicas"])

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in paths.Paths("ha").node_events.read_text().splitlines()]


@pytest.fixture
def bench(kubernetes_api: KubernetesApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A cluster with two workers, as the installer has left it."""
    monkeypatch.setattr(paths, "INSTALLS", tmp_path / "install")
    monkeypatch.setattr(paths, "RUNS", tmp_path / "run")
    monkeypatch.setattr(api_client, "SEARCHED", str(kubernetes_api.program.parent))
    for each in (port, following):
        monkeypatch.setattr(each, "PAUSE", 0.05)
    own = paths.Paths("ha")
    own.kubeconfig.parent.mkdir(parents=True)
    own.kubeconfig.write_text(kubernetes_api.kubeconfig.read_text())
    model = samples.wanted(lab())
    names = [{"name": name} for name in model.hosts]
    own.config.write_text(yaml.safe_dump({"platform": {"baremetal": {"hosts": names}}}))
    hosts = [manifests.bare_metal_host(host, "ha", held=False) for host in model.hosts.values()]
    secrets = [manifests.bmc_secret(host, "ha") for host in model.hosts.values()]
    for item in (*hosts, *secrets):
        del item["metadata"]["labels"]  # the installer made them
    controllers = Controllers(kubernetes_api.store)
    clock = Clock(controllers.now, controllers.sleep)
    monkeypatch.setattr(cluster, "Follower", partial(following.Follower, clock=clock))
    controllers.install(copy.deepcopy(hosts), copy.deepcopy(secrets), 2)
    return Bench(kubernetes_api, controllers, tmp_path)


def test_a_cluster_that_is_as_the_lab_is_left_alone(bench: Bench) -> None:
    before = bench.api.store.version
    for part in (SHRINK, GROW):
        result = bench.follow(part, lab())
        assert (result["changed"], result["steps"], result["gone"], result["warnings"]) == (False, [], [], [])
    assert bench.api.store.version == before


def test_check_mode_tells_and_changes_nothing(bench: Bench) -> None:
    before = bench.api.store.version
    grown = bench.look(GROW, lab(3))
    assert grown["steps"] == ["register worker-2", f"scale {SET} (2 -> 3)"]
    assert (grown["changed"], "worker-2" in grown["diff"]["after"]) == (True, True)
    shrunk = bench.look(SHRINK, lab(1))
    assert (shrunk["steps"], shrunk["gone"]) == (["remove worker-1"], [])
    assert "worker-1" not in shrunk["diff"]["after"]
    assert bench.api.store.version == before
    assert not paths.Paths("ha").nodes.exists()


def test_new_workers_are_foreseen_before_their_bmcs_have_logins(bench: Bench) -> None:
    bench.task(GROW, lab(2))
    of_two = bench.accounts.read_text()
    task = bench.task(GROW, lab(3))
    bench.accounts.write_text(of_two)
    assert Cluster(task).look().to_dict()["steps"] == ["register worker-2", f"scale {SET} (2 -> 3)"]
    with pytest.raises(OperatorError, match=r"The BMCs of worker-2 have no login: playbooks/bmc\.yml"):
        Cluster(task).follow()
    assert "worker-2" not in bench.names(HOSTS)


def test_growing_and_shrinking(bench: Bench) -> None:
    result = bench.follow(GROW, lab(4))
    assert result["steps"] == [
        *("register worker-2", "register worker-3", "release worker-2", "release worker-3"),
        f"scale {SET} (2 -> 4)",
    ]
    assert bench.workers == ["worker-0", "worker-1", "worker-2", "worker-3"]
    states = [event["state"] for event in bench.events if event["who"] == "worker-3"]
    assert states[0] == "is made known to the cluster"
    assert bench.follow(GROW, lab(4))["steps"] == []

    result = bench.follow(SHRINK, lab(1))
    assert result["gone"] == ["ha-worker-1", "ha-worker-2", "ha-worker-3"]
    assert (bench.workers, bench.replicas) == (["worker-0"], 1)
    assert not [name for name in (*bench.names(HOSTS), *bench.names("secrets")) if name.startswith("worker-1")]
    assert bench.look(SHRINK, lab(1))["gone"] == result["gone"]  # until the VMs are removed, and all is done
    assert bench.look(GROW, lab(1))["noted"] is False
    last = bench.follow(GROW, lab(1))
    assert (last["steps"], last["noted"], bench.look(GROW, lab(1))["noted"]) == ([], True, True)
    assert bench.look(SHRINK, lab(1))["gone"] == []


def test_no_host_is_removed_before_its_machine_and_node_are_gone(bench: Bench) -> None:
    bench.follow(SHRINK, lab(1))
    changes = bench.api.server.audit.changes()
    order = [f"{verb} {name}" for verb, _kind, name in changes]
    words = [word for word in order if "worker" in word]
    assert words[-1].startswith("delete worker-1-bmc-secret"), words
    assert words.index("delete worker-1") > words.index("patch ha-x7k2p-worker-1"), words
    machines = [item for item in bench.names(MACHINES) if item.endswith("-worker-1")]
    assert machines == []


def test_the_number_that_lab_spec_leaves_out_leaves(bench: Bench) -> None:
    bench.follow(SHRINK, lab(1, overrides="{worker-0: {remove: true}}"))
    assert bench.workers == ["worker-1"]


def test_spares(bench: Bench) -> None:
    registered, written = lab(2, "{count: 1, register: true}"), lab(2, "{count: 1}")
    assert bench.follow(GROW, registered)["steps"] == ["register spare-0"]
    spare = bench.api.store.get(HOSTS, "spare-0", NAMESPACE)
    assert (spare["spec"]["consumerRef"]["kind"], spare["spec"]["online"]) == (manifests.HOLDER, False)
    assert bench.follow(GROW, registered)["steps"] == []
    result = bench.follow(SHRINK, written)
    assert result["steps"] == ["remove spare-0", "delete secrets spare-0-bmc-secret"]
    file = paths.Paths("ha").spares
    assert bench.follow(GROW, written)["steps"] == [f"write {file}"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    bench.api.kubectl("apply", "-f", str(file))
    for part in (SHRINK, GROW):
        result = bench.follow(part, written)
        assert (result["steps"], result["gone"]) == ([], [])
    assert "spare-0" in bench.names(HOSTS)
    bench.api.store.delete(HOSTS, "spare-0", NAMESPACE)
    assert bench.look(GROW, lab())["steps"] == [f"remove {file}"]


def test_a_spare_becomes_a_worker(bench: Bench) -> None:
    bench.follow(GROW, lab(2, "{count: 1, register: true}"))
    bench.follow(SHRINK, lab(3))
    bench.follow(GROW, lab(3))
    assert bench.workers == ["worker-0", "worker-1", "worker-2"]
    assert "spare-0" not in bench.names(HOSTS)


def test_what_has_changed_of_a_bmc_reaches_the_cluster(bench: Bench) -> None:
    result = bench.follow(GROW, lab(more="bmc: {port: 8100}"))
    assert sorted(result["steps"]) == sorted(f"update {name} (address of its BMC)" for name in bench.names(HOSTS))
    for host in bench.api.store.list(HOSTS, NAMESPACE):
        assert ":8100/" in host["spec"]["bmc"]["address"]
        assert host["metadata"].get("annotations", {}) == {}
        assert host["spec"]["consumerRef"]["kind"] == "Machine"
    assert bench.follow(GROW, lab(more="bmc: {port: 8100}"))["steps"] == []


def test_a_changed_password_reaches_the_cluster_and_nothing_shows_it(bench: Bench) -> None:
    name = "worker-0-bmc-secret"
    former = manifests.login_data(replace(samples.wanted(lab()).hosts["worker-0"], username="former"))
    bench.api.store.change("secrets", name, NAMESPACE, lambda item: item.update(data=former))
    result = bench.follow(GROW, lab())
    assert result["steps"] == ["update worker-0 (login of its BMC)"]
    data = bench.api.store.get("secrets", name, NAMESPACE)["data"]
    assert samples.decoded(data["password"]) == "secret-of-worker-0"
    assert "secret-of" not in json.dumps([result, bench.events])


def test_replacing(bench: Bench) -> None:
    uid = bench.api.store.get(HOSTS, "worker-0", NAMESPACE)["metadata"]["uid"]
    assert bench.follow(SHRINK, lab(), replaces=["worker-0"])["gone"] == ["ha-worker-0"]
    assert bench.workers == ["worker-1"]
    assert bench.follow(SHRINK, lab())["gone"] == ["ha-worker-0"]  # a later run goes on with it
    bench.follow(GROW, lab())
    assert bench.workers == ["worker-0", "worker-1"]
    assert bench.api.store.get(HOSTS, "worker-0", NAMESPACE)["metadata"]["uid"] != uid
    assert bench.follow(SHRINK, lab())["gone"] == []


def test_what_the_lab_has_not_is_not_replaced(bench: Bench) -> None:
    with pytest.raises(OperatorError, match="worker-9: must be nodes of the lab"):
        bench.look(SHRINK, lab(), replaces=["worker-9"])


def test_no_count_removes_a_node_of_the_control_plane(bench: Bench) -> None:
    fewer = lab()
    fewer["nodes"] = [node for node in fewer["nodes"] if node["name"] != "control-plane-2"]
    for part in (SHRINK, GROW):
        with pytest.raises(OperatorError, match="no longer has control-plane-2"):
            bench.look(part, fewer)


def test_a_wrong_password_is_named(bench: Bench) -> None:
    bench.controllers.passwords["worker-2"] = "another"
    result = bench.follow(GROW, lab(3))
    assert result["failed"]
    assert "worker-2: registration error: HTTP GET /redfish/v1/Systems returned code 401" in result["msg"]
    assert "playbooks/bmc.yml" in result["msg"]
    assert [finding["code"] for finding in result["findings"]] == ["metal.password"]
    assert bench.replicas == 2
    del bench.controllers.passwords["worker-2"]
    assert bench.follow(GROW, lab(3))["steps"] == ["release worker-2", f"scale {SET} (2 -> 3)"]
    assert bench.workers == ["worker-0", "worker-1", "worker-2"]


def test_a_node_that_does_not_come_and_its_certificate_requests(bench: Bench) -> None:
    bench.controllers.broken.add("worker-2")
    spec = {"request": "", "signerName": "kubernetes.io/kubelet-serving", "usages": []}
    request = {"metadata": {"name": "csr-7"}, "spec": spec}
    bench.api.store.create("certificatesigningrequests.certificates.k8s.io", request)
    result = bench.follow(GROW, lab(3))
    [finding] = result["findings"]
    assert (finding["code"], finding["subject"]) == ("nodes.requests", "worker-2")
    assert finding["facts"] == {"requests": ["csr-7"]}


def test_what_blocks_a_drain_is_named_and_nothing_is_removed(bench: Bench) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    budget = {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec, "status": {"disruptionsAllowed": 0}}
    bench.api.store.create("poddisruptionbudgets.policy", budget)
    pod = {
        "metadata": {"name": "web-0", "namespace": "shop", "labels": {"app": "web"}},
        "spec": {"nodeName": "worker-1", "containers": []},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }
    bench.api.store.create("pods", pod)
    result = bench.follow(SHRINK, lab(1), drain_seconds=1)
    assert result["failed"]
    assert "worker-1 cannot be drained: shop/web-0: Cannot evict pod" in result["msg"]
    assert (result["steps"], bench.replicas, bench.workers) == (["cordon worker-1"], 2, ["worker-0", "worker-1"])
    bench.api.store.delete("poddisruptionbudgets.policy", "web", "shop")
    assert bench.follow(SHRINK, lab(1))["gone"] == ["ha-worker-1"]


def test_a_node_that_is_dead_leaves(bench: Bench) -> None:
    """Its pods stay Terminating."""
    status = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
    bench.api.store.change("nodes", "worker-1", "", lambda item: item.update(status=status), subresource="status")
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
    pod = {
        "metadata": {"name": "web-0", "namespace": "shop", "ownerReferences": [owner]},
        "spec": {"nodeName": "worker-1", "containers": []},
    }
    bench.api.store.create("pods", pod)
    assert bench.follow(SHRINK, lab(1), drain_seconds=60)["gone"] == ["ha-worker-1"]


def test_a_mark_of_an_earlier_lab_spec_is_removed(bench: Bench) -> None:
    machine = f"{cluster_controllers.INFRA}-worker-0"
    bench.api.kubectl("annotate", MACHINES, machine, "-n", NAMESPACE, f"{cluster_controllers.MARK}=ha")
    assert bench.look(SHRINK, lab(1))["steps"] == ["remove worker-1", f"unmark {machine} (worker-0)"]
    bench.follow(SHRINK, lab(1))
    assert bench.workers == ["worker-0"]
    annotations = bench.api.store.get(MACHINES, machine, NAMESPACE)["metadata"]["annotations"]
    assert cluster_controllers.MARK not in annotations


@pytest.mark.parametrize("forces", [False, True])
def test_a_cluster_that_does_not_answer(bench: Bench, *, forces: bool) -> None:
    bench.api.server.stop()
    assert bench.look(SHRINK, lab(), forces=forces)["reachable"] is False
    [warning] = bench.look(GROW, lab())["warnings"]
    assert "Whether its nodes are as in lab_spec is not known" in warning
    if forces:
        assert bench.look(SHRINK, lab(1), forces=True)["gone"] == ["ha-worker-1"]
    else:
        with pytest.raises(OperatorError, match=r"worker-1 cannot be taken out of it\. Nothing was changed"):
            bench.look(SHRINK, lab(1))
        with pytest.raises(OperatorError, match="worker-2 cannot be made known"):
            bench.look(GROW, lab(3))


def test_controllers_of_these_tests_have_the_names_of_the_installer() -> None:
    assert cluster_controllers.SET == samples.SET
