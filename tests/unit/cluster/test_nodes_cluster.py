"""The nodes of a cluster and those of the lab: what is refused, and what the host notes."""

from __future__ import annotations

import fcntl
import json
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from unit.cluster import nodes_samples as samples
from unit.cluster.nodes_samples import cluster as cluster_of
from unit.cluster.nodes_samples import wanted, with_host, with_machine, without

from ansible_collections.nometal.ipi.plugins.module_utils._bmc.power import Said
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.errors import ApiError
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.installation import Installation
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes import cluster, record
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.cluster import GROW, SHRINK, Cluster, Task
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.record import Record
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.backup import EtcdBackup
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._lab import paths
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import Identity

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.errors import Reason
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.seen import Seen
    from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step

FOUR = wanted(samples.lab(4))
OWN = paths.Paths("ha")


@dataclass
class Api:
    """A cluster that stays as it is; also its client and its port."""

    directory: Path
    seen: Seen
    error: ApiError | None = None
    steps: list[str] = field(default_factory=list)
    program = PurePath("/usr/bin/oc")

    def run(self, *_words: str) -> str:
        if self.error:
            raise self.error
        return "{}"

    def read(self) -> Seen:
        return self.seen

    def apply(self, step: Step) -> None:
        self.steps.append(str(step))
        raise OperatorError("interrupted")

    def of(self, part: str, workers: int, *, logins: bool = True, **changes: Any) -> Cluster:
        model = samples.lab(workers)
        accounts = {
            Identity("ha").vm_name(node["name"]): {"username": "admin", "password": f"secret-of-{node['name']}"}
            for node in model["nodes"]
        }
        if logins:
            file = self.directory / "bmc/ha/credentials.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(accounts))
        installation = Installation(paths=OWN, bmc_home=str(self.directory / "bmc"))
        return Cluster(replace(Task(part, model, installation, version="4.20.3"), **changes))


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Api:
    """A cluster with four workers, which the host has noted."""
    monkeypatch.setattr(paths, "INSTALLS", tmp_path / "install")
    monkeypatch.setattr(paths, "RUNS", tmp_path / "run")
    OWN.directory.mkdir(parents=True)
    record.write(OWN, Record(list(FOUR.hosts)))
    made = Api(tmp_path, cluster_of(FOUR))
    monkeypatch.setattr(Cluster, "_client", lambda _self: made)
    monkeypatch.setattr(cluster, "ClusterPort", lambda *_arguments: made)
    monkeypatch.setattr(cluster, "ROLLOUT_SECONDS", 0.2)
    monkeypatch.setattr(cluster, "ROLLOUT_PAUSE", 0.01)
    return made


def test_a_new_worker_is_foreseen_before_its_bmc_has_a_login(api: Api) -> None:
    api.seen = without(api.seen, "worker-3")
    foreseen = api.of(GROW, 4, logins=False).look()
    assert foreseen.steps == ["register worker-3", f"scale {samples.SET} (3 -> 4)"]
    with pytest.raises(OperatorError, match="worker-3 have no login"):
        api.of(GROW, 4, logins=False).follow()
    assert api.steps == []


@pytest.mark.parametrize("reason", ["unauthorized", "forbidden", "other"])
@pytest.mark.parametrize("forces", [False, True])
def test_no_force_removes_nodes_of_a_cluster_that_runs(api: Api, reason: Reason, *, forces: bool) -> None:
    api.error = ApiError(reason, "The cluster's API: You must be logged in")
    with pytest.raises(OperatorError, match=r"logged in\. worker-3 cannot be taken out of it\. .* not removed by"):
        api.of(SHRINK, 3, forces=forces).look()
    assert api.of(SHRINK, 4, forces=forces).look().gone == []
    [warning] = api.of(GROW, 4).look().warnings
    assert "You must be logged in. Whether its nodes are as in lab_spec is not known" in warning


def test_nodes_of_a_cluster_that_is_gone_are_removed_by_force(api: Api) -> None:
    api.error = ApiError("unreachable", "The cluster's API: connection refused")
    with pytest.raises(OperatorError, match="cluster_nodes_force_removal=true removes them"):
        api.of(SHRINK, 3).look()
    assert api.of(SHRINK, 3, forces=True).look().gone == ["ha-worker-3"]


@pytest.mark.parametrize("forces", [False, True])
def test_nothing_is_replaced_without_the_cluster(api: Api, *, forces: bool) -> None:
    api.error = ApiError("unreachable", "The cluster's API: connection refused")
    with pytest.raises(OperatorError, match="worker-1 cannot be replaced without it"):
        api.of(SHRINK, 4, replaces=["worker-1"], forces=forces).look()


@pytest.mark.parametrize(
    ("failed", "again"),
    [
        (lambda seen: seen, False),
        (lambda seen: with_machine(seen, "worker-1", phase="Failed"), True),
        (lambda seen: with_host(seen, "worker-1", error_message="timeout"), True),
        (lambda seen: without(seen, "worker-1"), False),
    ],
)
def test_a_replacement_that_has_failed_is_replaced(api: Api, failed: Callable[[Seen], Seen], *, again: bool) -> None:
    record.write(OWN, Record(list(FOUR.hosts), {"worker-1": "uid-of-the-first"}))
    api.seen = failed(api.seen)
    foreseen = api.of(SHRINK, 4, replaces=["worker-1"]).look()
    assert foreseen.steps == (["remove worker-1"] if again else [])
    assert api.of(SHRINK, 4).look().steps == []


@pytest.fixture
def begun(api: Api) -> Api:
    """The replacement of a node of the control plane, which is drained."""
    record.write(OWN, Record(list(FOUR.hosts), {"control-plane-0": "uid-control-plane-0"}))
    spec: dict[str, Any] = {"providerSpec": {"value": {}}}
    marked = {"machine.openshift.io/delete-machine": "ha"}
    api.seen = samples.with_etcd(with_machine(api.seen, "control-plane-0", annotations=marked, spec=spec))
    api.seen = with_machine(api.seen, "control-plane-1", spec=spec)
    return api


def test_a_replacement_that_has_changed_nothing_in_etcd_is_cancelled(begun: Api) -> None:
    steps = ["keep control-plane-0", "unmark ha-x7k2p-control-plane-0 (control-plane-0)"]
    assert begun.of(SHRINK, 4, cancels=True).look().steps == steps
    begun.seen = with_machine(begun.seen, "control-plane-0", annotations={})
    assert begun.of(SHRINK, 4, cancels=True).follow().steps == steps[:1]
    assert record.read(OWN).replacing == {}
    assert (begun.of(SHRINK, 4, cancels=True).look().steps, begun.of(SHRINK, 4).look().steps) == ([], [])


def test_another_node_is_replaced_in_place_of_one_that_has_changed_nothing_in_etcd(begun: Api) -> None:
    """It has failed since, so the first one must stay."""
    begun.seen = samples.with_etcd(begun.seen, "control-plane-2")
    with pytest.raises(OperatorError, match="control-plane-0 cannot be replaced: etcd would lose its quorum"):
        begun.of(SHRINK, 4).look()
    assert begun.of(SHRINK, 4, replaces=["control-plane-2"]).look().steps == [
        *("keep control-plane-0", "remove control-plane-2"),
        "unmark ha-x7k2p-control-plane-0 (control-plane-0)",
    ]
    assert begun.of(SHRINK, 4, replaces=["worker-1"], cancels=True).look().steps[0] == "keep control-plane-0"


@pytest.mark.parametrize(
    "changed",
    [
        lambda seen: with_host(seen, "control-plane-0", online=False),
        lambda seen: with_host(seen, "control-plane-0", deletion=True),
        lambda seen: with_host(seen, "control-plane-0", uid="new"),
        lambda seen: with_machine(seen, "control-plane-0", deletion=True),
        lambda seen: replace(seen, etcd=replace(seen.etcd, members=seen.etcd.members[1:])),
        lambda seen: without(seen, "control-plane-0"),
    ],
)
def test_a_replacement_that_has_changed_more_goes_on(begun: Api, changed: Callable[[Seen], Seen]) -> None:
    begun.seen = changed(begun.seen)
    with pytest.raises(OperatorError, match=r"replacement of control-plane-0 cannot be cancelled.* Run this again"):
        begun.of(SHRINK, 4, cancels=True).look()
    with pytest.raises(OperatorError, match="control-plane-0 and control-plane-2 cannot be replaced at the same time"):
        begun.of(SHRINK, 4, replaces=["control-plane-2"]).look()
    begun.of(GROW, 4, cancels=True).look()


def test_an_arbiter_is_not_replaced(api: Api) -> None:
    model = samples.lab_of("nodes: {control_plane: {count: 2}, arbiters: {count: 1}, workers: {count: 4}}")
    with pytest.raises(OperatorError, match="arbiter-0: no arbiter is replaced this way"):
        api.of(SHRINK, 4, replaces=["arbiter-0"], model=model).look()


def test_a_record_of_what_was_replaced_is_noted_as_done(api: Api) -> None:
    """A run was ended before it could."""
    record.write(OWN, Record(list(FOUR.hosts), {"control-plane-0": "uid-of-the-first"}))
    api.seen = samples.with_etcd(api.seen)
    assert not api.of(GROW, 4).look().noted
    assert api.of(GROW, 4).follow().failure == ""
    assert (record.read(OWN).replacing, api.of(GROW, 4).look().noted) == ({}, True)


def test_a_node_of_the_control_plane_that_is_begun_is_not_forgotten_without_the_cluster(api: Api) -> None:
    record.write(OWN, Record(list(FOUR.hosts), {"control-plane-0": "uid-control-plane-0"}))
    api.error = ApiError("unreachable", "The cluster's API: connection refused")
    with pytest.raises(OperatorError, match="control-plane-0 cannot be replaced without it"):
        api.of(SHRINK, 3, forces=True).look()


@pytest.mark.parametrize("name", ["control-plane-0", "worker-1"])
def test_a_replacement_does_not_end_while_the_cluster_is_silent(api: Api, name: str) -> None:
    """etcd rolls out when grow looks first: with its guard off, and a member less."""
    record.write(OWN, Record(list(FOUR.hosts), {name: f"uid-{name}"}))
    api.error = ApiError("unreachable", "etcd: none of its pods is ready")
    for act in (Cluster.look, Cluster.follow):
        with pytest.raises(OperatorError, match=f"{name} cannot be made known to it: run this again when it answers"):
            act(api.of(GROW, 4))


@pytest.mark.parametrize(("replacing", "asked"), [({"worker-1": "uid-of-the-first"}, 3), ({}, 1)])
def test_a_cluster_that_is_silent_for_a_moment_is_asked_again_while_a_node_is_replaced(
    api: Api, monkeypatch: pytest.MonkeyPatch, replacing: dict[str, str], asked: int
) -> None:
    record.write(OWN, Record(list(FOUR.hosts), replacing))
    looks: list[int] = []

    def read(_self: Api) -> Seen:
        looks.append(1)
        if len(looks) < 3:
            raise ApiError("unreachable", "etcd: none of its pods is ready")
        return api.seen

    monkeypatch.setattr(Api, "read", read)
    assert api.of(GROW, 4).look().reachable == bool(replacing)
    assert len(looks) == asked


@pytest.mark.parametrize(
    ("said", "is_off"),
    [
        *((Said("Off"), True), (Said("On"), False), (Said("Paused"), False)),
        *((Said(trouble="404: no such system"), True), (Said(trouble="There is no such VM."), True)),
        *((Said(trouble="Node Busy"), False), (Said(trouble="ConnectionRefusedError: no"), False)),
    ],
)
def test_what_its_bmc_says_of_a_vm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said, *, is_off: bool
) -> None:
    installation = Installation(paths=OWN, bmc_home=str(tmp_path))
    assert cluster.off(installation, ["control-plane-0"]) == []  # there are no BMCs on this host
    bmcs = SimpleNamespace(power=lambda vms: dict.fromkeys(vms, said))
    monkeypatch.setattr(cluster, "Bmcs", lambda _home, _lab: bmcs)
    assert cluster.off(installation, ["control-plane-0"]) == (["control-plane-0"] if is_off else [])


@pytest.fixture
def replaced(api: Api, monkeypatch: pytest.MonkeyPatch) -> Api:
    """Whose etcd cannot be backed up."""
    monkeypatch.setattr(EtcdBackup, "take", refuse)
    spec: dict[str, Any] = {"providerSpec": {"value": {}}}
    api.seen = samples.with_etcd(with_machine(api.seen, "control-plane-1", spec=spec))
    return api


@pytest.mark.parametrize("act", [Cluster.look, Cluster.follow])
def test_by_kubectl_no_replacement_is_begun(
    replaced: Api, monkeypatch: pytest.MonkeyPatch, act: Callable[[Cluster], object]
) -> None:
    monkeypatch.setattr(Api, "program", PurePath("kubectl"))
    with pytest.raises(OperatorError, match=r"only `kubectl`\. Nothing was changed\..*cluster_nodes_backup=false"):
        act(replaced.of(SHRINK, 4, replaces=["control-plane-0"]))
    assert (replaced.steps, record.read(OWN).replacing) == ([], {})
    assert replaced.of(SHRINK, 4, replaces=["worker-0"]).look().steps == ["remove worker-0"]


def test_without_a_backup_of_etcd_no_replacement_is_begun(replaced: Api) -> None:
    with pytest.raises(OperatorError, match=r"by control-plane-1: no pod\. Nothing was changed\. .*_backup=false"):
        replaced.of(SHRINK, 4, replaces=["control-plane-0"]).follow()
    assert (replaced.steps, record.read(OWN).replacing) == ([], {})


@pytest.mark.parametrize("program", ["oc", "kubectl"])
def test_the_backup_of_etcd_can_be_left_out(replaced: Api, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(Api, "program", PurePath(program))
    done = replaced.of(SHRINK, 4, replaces=["control-plane-0"], backs_up=False).follow()
    assert (done.failure, done.warnings) == ("interrupted", [])
    assert (replaced.steps, record.read(OWN).replacing) == (
        ["cordon control-plane-0"],
        {"control-plane-0": "uid-control-plane-0"},
    )


def refuse(*_arguments: object) -> str:
    raise OperatorError("no pod")


def test_vms_of_a_growth_that_is_taken_back_go(api: Api) -> None:
    record.write(OWN, Record([name for name in FOUR.hosts if name != "worker-3"]))
    api.seen = without(api.seen, "worker-3")
    assert api.of(GROW, 4).follow().failure == "interrupted"
    assert api.steps == ["register worker-3"]
    assert api.of(SHRINK, 3).look().gone == ["ha-worker-3"]
    assert api.of(SHRINK, 4).look().gone == []


def test_another_run_that_changes_nodes_is_named(api: Api) -> None:
    """By an earlier lab_spec it removes what this one has, and no look at the cluster shows that."""
    assert api.of(SHRINK, 4).look().to_dict()["busy"] is False
    OWN.nodes_lock.parent.mkdir(parents=True)
    with OWN.nodes_lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert api.of(SHRINK, 4).look().to_dict()["busy"] is True
