"""A node of the control plane is replaced: by oc, against the stand-in's API, etcd and controllers."""

from __future__ import annotations

import json
import sys
import tarfile
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support import kubernetes_api
from support.stand_in.controllers import etcd, objects
from support.stand_in.controllers.objects import ETCDS, HOSTS, MACHINES, NAMESPACE, NODES, SECRETS, Object
from support.stand_in.kubernetes.server import Switches
from support.stand_in_machines import FakeBmc, FakeCluster, FakeMachines, Machine
from support.waiting import wait_until
from unit.cluster import nodes_samples as samples

from ansible_collections.nometal.ipi.plugins.module_utils._bmc.power import Said
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.installation import Installation
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes import cluster, following, manifests, port
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.cluster import GROW, SHRINK, Cluster, Task
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._lab import paths
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import Identity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from support.kubernetes_api import KubernetesApi
    from support.stand_in.controllers.cluster import Access

    from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step

NAME = "control-plane-1"
NODES_OF_CONTROL_PLANE = ["control-plane-0", NAME, "control-plane-2"]
STEP_SECONDS = 0.05
"""Of real time, for each second of the cluster's."""
LOOPBACK = {"vips": {"api": ["127.0.0.1"], "ingress": []}, "domain": ""}
MODEL = {**samples.lab(1), **LOOPBACK}
LEAVES = [
    *("back up etcd", f"cordon {NAME}", f"drain {NAME}", f"mark lab-x7k2p-master-1 ({NAME})", f"switch off {NAME}"),
    *(f"remove member {NAME}", "unguard etcd", f"forget {NAME}"),
    *(f"delete machine lab-x7k2p-master-1 ({NAME})", f"remove {NAME}"),
    f"delete etcd secrets etcd-peer-{NAME}, etcd-serving-{NAME}, etcd-serving-metrics-{NAME}",
]
TESTS = Path(__file__).parents[2]
OC = """#!/bin/sh
case " $* " in *" etcdctl "* | *" debug "* | *" adm "*) {stand_in} ;; esac
exec {kubectl} "$@"
"""
"""What kubectl can do it does without the stand-in's start."""
COMES = [f"register {NAME}", f"make machine {NAME} (lab-x7k2p-master-3)", "guard etcd"]


class Killed(BaseException):
    """The run, at this moment."""


@dataclass
class Machines(FakeMachines):
    systems: dict[str, Machine] = field(default_factory=dict)
    """By what ends the URLs of their BMCs."""

    def bmc(self, access: Access) -> FakeBmc:
        return FakeBmc(self.systems[access.address.rpartition("/")[2]], access)


class Bench:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.fake = FakeCluster()
        self.machines = self.fake.cluster.machinery = self.fake.machines = Machines()
        self.hosts = samples.wanted(MODEL).hosts
        self._ends, self._lock = threading.Event(), threading.Lock()
        for number, name in enumerate(self.hosts):
            self.new_vm(name)
            own = [manifests.bare_metal_host(self.hosts[name], "ha", held=False)]
            own.append(manifests.bmc_secret(self.hosts[name], "ha"))
            for item, kind in zip(own, (HOSTS, SECRETS), strict=True):
                del item["metadata"]["labels"]  # the installer made them
                self.fake.store.create(kind, item)
            if name in NODES_OF_CONTROL_PLANE:
                self._make_machine(name, number)
        self.fake.store.create(ETCDS, {"metadata": {"name": "cluster"}, "spec": {}})
        self.fake.workers(1)
        self.fake.until(lambda: self.ready == {*self.hosts} and not self.fake.pending(), 400)
        self.fake.run(10)

    def new_vm(self, name: str) -> None:
        facts, number = self.hosts[name].facts, [*self.hosts].index(name) + 1
        made = Machine(number, ("admin", f"secret-of-{name}"), obeys=True)
        self.machines.machines[facts["bootMACAddress"]] = made
        self.machines.systems[facts["bmc"]["address"].rpartition("/")[2]] = made

    def vm(self, name: str) -> Machine:
        return self.machines.machines[self.hosts[name].facts["bootMACAddress"]]

    def _make_machine(self, name: str, number: int) -> None:
        """By hand, as the installer makes those of the control plane."""
        value = {"customDeploy": {"method": "install_coreos"}, "userData": {"name": "master-user-data-managed"}}
        metadata = {
            "name": f"lab-x7k2p-master-{number}",
            "namespace": NAMESPACE,
            "labels": {objects.ROLE_OF_MACHINE: "master"},
            "annotations": {objects.HOST_OF_MACHINE: f"{NAMESPACE}/{name}"},
        }
        self.fake.store.create(MACHINES, {"metadata": metadata, "spec": {"providerSpec": {"value": value}}})

    @property
    def ready(self) -> set[str]:
        every = self.fake.store.list(NODES)
        return {objects.name(one) for one in every if objects.condition(one, "Ready").get("status") == "True"}

    @property
    def members(self) -> dict[str, Object]:
        return etcd.read_members(self.fake.cluster)

    def has_quorum(self) -> bool:
        members = self.members
        return 2 * sum(self.vm(name).on for name in members) > len(members)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Controllers, which live on the control plane."""

        def run() -> None:
            while not self._ends.wait(STEP_SECONDS):
                with self._lock:
                    if self.has_quorum():
                        self.fake.run(1)

        thread = threading.Thread(target=run, name="controllers")
        thread.start()
        try:
            yield
        finally:
            self._ends.set()
            thread.join()

    def task(self, part: str, *replaces: str) -> Task:
        accounts = {
            Identity("ha").vm_name(name): {"username": "admin", "password": f"secret-of-{name}"} for name in self.hosts
        }
        file = self.directory / "bmc/ha/credentials.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(accounts))
        installation = Installation(
            paths=paths.Paths("ha"),
            api_vips=["127.0.0.1"],
            bmc_home=str(self.directory / "bmc"),
            tools=str(self.directory / "tools"),
            libvirt_uri="test:///default",
        )
        return Task(part, MODEL, installation, version="4.20.3", drain_seconds=20, replaces=replaces)

    def follow(self, part: str, *replaces: str) -> dict[str, Any]:
        result = Cluster(self.task(part, *replaces)).follow().to_dict()
        assert "failed" not in result, result
        return result

    def follow_again(self, part: str, *replaces: str) -> dict[str, Any]:
        """Until a run is not killed. What was begun is remembered."""
        while True:
            with suppress(Killed):
                return self.follow(part, *replaces)
            replaces = ()

    def power(self, vms: Iterable[str]) -> dict[str, Said]:
        """As their BMCs say."""
        own = {vm: self.vm(vm.removeprefix("ha-")) for vm in vms}
        return {vm: Said("" if one.fails else "On" if one.on else "Off", one.fails) for vm, one in own.items()}

    def changes(self) -> list[str]:
        """That would be made, by both parts."""
        looks = [Cluster(self.task(part)).look() for part in (SHRINK, GROW)]
        assert looks[1].noted
        return [step for look in looks for step in (*look.steps, *look.waits, *look.gone)]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Three nodes and a worker, as the installer has left them."""
    monkeypatch.setattr(paths, "INSTALLS", tmp_path / "install")
    monkeypatch.setattr(paths, "RUNS", tmp_path / "run")
    for each in (port, following):
        monkeypatch.setattr(each, "PAUSE", 0.05)
    made = Bench(tmp_path)
    monkeypatch.setattr(cluster, "Bmcs", lambda _home, _lab: made)
    with kubernetes_api.start(tmp_path / "api", store=made.fake.store) as api, made.running():
        api.server.look = lambda: Switches(refuse=not made.has_quorum())
        _write(made, api)
        yield made


def _write(bench: Bench, api: KubernetesApi) -> None:
    """What the installation has left on the host."""
    own = paths.Paths("ha")
    own.kubeconfig.parent.mkdir(parents=True)
    own.kubeconfig.write_text(api.kubeconfig.read_text())
    names = [{"name": name} for name in bench.hosts]
    own.config.write_text(yaml.safe_dump({"platform": {"baremetal": {"hosts": names}}}))
    oc = bench.directory / "tools/oc"
    oc.parent.mkdir()
    oc.with_name("stand-in-installer.json").write_text(json.dumps({"*": {"kubectl": str(api.program)}}))
    program = f"import sys; sys.argv[0] = '{oc}'; from support.stand_in import oc; sys.exit(oc.main('4.20.3'))"
    stand_in = f'PYTHONPATH={TESTS} exec {sys.executable} -c "{program}" "$@"'
    oc.write_text(OC.format(stand_in=stand_in, kubectl=api.program))
    oc.chmod(0o755)


def assert_is_whole(bench: Bench, before: Object) -> None:
    assert bench.ready == {*bench.hosts}
    assert sorted(bench.members) == NODES_OF_CONTROL_PLANE
    assert bench.members[NAME]["id"] != before[NAME]["id"]
    assert {name: one for name, one in bench.members.items() if name != NAME}.items() <= before.items()
    operator = bench.fake.get(ETCDS, "cluster")
    assert not objects.spec(operator).get("unsupportedConfigOverrides")
    assert not objects.annotations_of(operator)
    assert objects.condition(operator, "NodeInstallerProgressing")["reason"] == "AllNodesAtLatestRevision"
    machine = bench.fake.get(MACHINES, "lab-x7k2p-master-3")
    assert objects.spec(bench.fake.get(HOSTS, NAME))["consumerRef"]["name"] == "lab-x7k2p-master-3"
    assert objects.status(machine)["phase"] == "Running"
    assert not bench.fake.get(MACHINES, "lab-x7k2p-master-1")
    assert bench.vm(NAME).system
    assert bench.changes() == []


def test_a_node_that_is_healthy_is_replaced(bench: Bench) -> None:
    before = bench.members
    assert bench.changes() == []
    assert Cluster(bench.task(SHRINK, NAME)).look().steps == [f"remove {NAME}"]
    left = bench.follow(SHRINK, NAME)
    assert (left["steps"], left["gone"], left["warnings"]) == (LEAVES, [f"ha-{NAME}"], [])
    assert bench.vm(NAME).done[-1] == "shut down"
    assert (bench.ready, bench.vm(NAME).system) == ({*bench.hosts} - {NAME}, True)  # its disks go with the VM
    [backup] = paths.Paths("ha").backups.iterdir()
    assert tarfile.is_tarfile(backup)

    bench.new_vm(NAME)
    come = bench.follow(GROW)
    assert come["steps"] == COMES
    assert_is_whole(bench, before)


@pytest.mark.full
def test_a_node_that_is_dead_is_replaced_although_every_run_is_killed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each step, as far as the steps themselves go."""
    before, done = bench.members, []
    bench.vm(NAME).on, bench.vm(NAME).fails = False, "404: no such system"
    apply = port.ClusterPort.apply

    def killed(self: port.ClusterPort, step: Step) -> None:
        apply(self, step)
        done.append(str(step))
        if step.verb != "drain":  # a run that is killed then drains again
            raise Killed

    monkeypatch.setattr(port.ClusterPort, "apply", killed)
    assert bench.follow_again(SHRINK, NAME)["gone"] == [f"ha-{NAME}"]
    bench.new_vm(NAME)
    bench.follow_again(GROW)
    assert done == [*LEAVES[1:], *COMES]
    assert_is_whole(bench, before)


def test_without_a_quorum_of_the_others_nothing_is_changed(bench: Bench) -> None:
    bench.vm("control-plane-2").on, bench.vm("control-plane-2").fails = False, "404: no such system"
    wait_until("its member is not healthy", lambda: "control-plane-2" not in bench.ready)
    version = [one["metadata"]["resourceVersion"] for one in bench.fake.store.list(MACHINES)]
    with pytest.raises(OperatorError, match=r"control-plane-1 cannot be replaced: etcd would lose its quorum"):
        Cluster(bench.task(SHRINK, NAME)).follow()
    with pytest.raises(OperatorError, match="cannot be replaced at the same time"):
        Cluster(bench.task(SHRINK, NAME, "control-plane-2")).follow()
    assert [one["metadata"]["resourceVersion"] for one in bench.fake.store.list(MACHINES)] == version
    assert not paths.Paths("ha").nodes.exists()
