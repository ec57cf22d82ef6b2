"""A cluster of the stand-in's controllers whose machines are stopped and started, with an API on loopback for kubectl.

with power_cluster.start(tmp_path) as cluster:
    cluster.stop(), cluster.start()

The clock is the cluster's own: it goes on while the controllers run, and `cluster.rest(4 * DAY)` moves it. The API
answers while the control plane has a quorum.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from support import kubernetes_api
from support.power_fakes import Log
from support.stand_in.controllers import objects
from support.stand_in.controllers.objects import HOSTS, MACHINES, NAMESPACE, NODES, Object
from support.stand_in.kubernetes.server import Switches
from support.stand_in_machines import FakeCluster, Machine

from ansible_collections.nometal.ipi.plugins.module_utils._bmc.power import Power, Reset, Said
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import Client
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.cluster import Cluster
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.nodes import Node, Record
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.power import Lab
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.start import ClusterStart, Limits
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.stop import ClusterStop, Options
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.switching import Switching
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from support.kubernetes_api import KubernetesApi

    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding

DOMAIN = "lab.lab.example.test"
NAMES = {
    **{f"control-plane-{number}": Role.CONTROL_PLANE for number in range(3)},
    **{f"worker-{number}": Role.WORKER for number in range(2)},
}
QUORUM = 2
STEP_SECONDS = 0.02
"""Of real time, for each second of the cluster's."""


@dataclass
class Bmcs:
    """Of the stand-in's machines, which shut down when they are asked to unless they do not obey."""

    machines: dict[str, Machine]
    """By the name of the VM."""
    asked: list[str] = field(default_factory=list)

    def awaited(self) -> list[str]:
        return []

    def power(self, names: Iterable[str]) -> dict[str, Said]:
        return {name: Said(Power.ON if self.machines[name].on else Power.OFF) for name in names}

    def reset(self, kind: Reset, names: Iterable[str]) -> dict[str, str]:
        for name in names:
            machine = self.machines[name]
            if kind is not Reset.SHUT_DOWN or machine.on:  # otherwise it is only to stay off
                self.asked.append(f"{kind} {name[len('lab-') :]}")
            machine.on = kind is Reset.ON or (kind is Reset.SHUT_DOWN and machine.on and not machine.obeys)
        return {}


@dataclass
class PowerCluster:
    fake: FakeCluster
    api: KubernetesApi
    directory: Path
    log: Log = field(default_factory=Log)
    findings: list[Finding] = field(default_factory=list)
    """What a diagnosis is to find."""

    def __post_init__(self) -> None:
        machines = {name: self.fake.machines.machines[self._mac(name)] for name in NAMES}
        self.nodes = [
            Node(name, f"lab-{name}", role, f"{name}.{DOMAIN}", (machines[name].address,), (machines[name].mac,))
            for name, role in NAMES.items()
        ]
        self.bmcs = Bmcs({f"lab-{name}": machine for name, machine in machines.items()})
        self.record = Record(self.directory, "lab")
        self.client = Client(self.api.program, self.api.kubeconfig, self.directory)
        self._ends = threading.Event()
        self._lock = threading.Lock()

    def stop(self, **options: Any) -> dict[str, Any]:
        backup, check_mode = options.pop("backup", None), options.pop("check_mode", False)
        settings = Options(**{"drain_seconds": 5, **options})
        cluster = Cluster(self.client, self.nodes)
        holders = [self.bmcs.machines["lab-control-plane-1"].mac]
        now = lambda: self.fake.now  # noqa: E731 - the cluster's
        return ClusterStop(self._lab(check_mode), cluster, settings, lambda: holders, backup, now).run()

    def start(self, *, check_mode: bool = False, **limits: float) -> dict[str, Any]:
        cluster, wanted = Cluster(self.client, self.nodes), Limits(**{"quiet": 4, "silence": 2, **limits})
        return ClusterStart(self._lab(check_mode), cluster, lambda _names: self.findings, wanted).run()

    def rest(self, seconds: float) -> None:
        with self._lock:
            self.fake.now += seconds

    def switch(self, *, on: bool) -> None:
        """As a power cut does, and whoever switches all on by hand."""
        with self._lock:
            for machine in self.bmcs.machines.values():
                machine.on = on

    def node(self, name: str) -> Object:
        return self.fake.get(NODES, name)

    def ready(self) -> set[str]:
        found = self.fake.store.list(NODES)
        return {objects.name(item) for item in found if objects.condition(item, "Ready").get("status") == "True"}

    def unschedulable(self) -> set[str]:
        return {objects.name(item) for item in self.fake.store.list(NODES) if objects.spec(item).get("unschedulable")}

    def run(self) -> None:
        """The controllers, until `end`."""
        while not self._ends.wait(STEP_SECONDS):
            with self._lock:
                if self.has_quorum():  # controllers live on the control plane
                    self.fake.run(1)
                else:
                    self.fake.now += 1

    def end(self) -> None:
        self._ends.set()

    def has_quorum(self) -> bool:
        machines = self.bmcs.machines
        return sum(machine.on for name, machine in machines.items() if "control-plane" in name) >= QUORUM

    def _lab(self, check_mode: bool) -> Lab:
        return Lab(self.nodes, Switching(self.bmcs, self.log, 3), self.record, check_mode)

    def _mac(self, name: str) -> str:
        return str(objects.spec(self.fake.get(HOSTS, name))["bootMACAddress"])


@contextmanager
def start(directory: Path) -> Iterator[PowerCluster]:
    """Three control plane nodes and two workers, all ready."""
    fake = FakeCluster()
    for name, role in NAMES.items():
        fake.host(name, online=False).obeys = True
        if role == Role.CONTROL_PLANE:
            _machine(fake, name)
    fake.workers(2)
    fake.until(lambda: len(fake.store.list(NODES)) == len(NAMES), 400)
    fake.until(lambda: not fake.pending() and _all_ready(fake), 400)
    fake.run(20)
    with kubernetes_api.start(directory / "api", store=fake.store) as api:
        cluster = PowerCluster(fake, api, directory)
        api.server.look = lambda: Switches(refuse=not cluster.has_quorum())
        runs = threading.Thread(target=cluster.run, name="controllers")
        runs.start()
        try:
            yield cluster
        finally:
            cluster.end()
            runs.join()


def _all_ready(fake: FakeCluster) -> bool:
    return all(objects.condition(item, "Ready").get("status") == "True" for item in fake.store.list(NODES))


def _machine(fake: FakeCluster, name: str) -> None:
    """By hand, as the installer makes those of the control plane."""
    value = {"customDeploy": {"method": "install_coreos"}, "userData": {"name": "master-user-data-managed"}}
    metadata = {
        "name": f"lab-x7k2p-{name}",
        "namespace": NAMESPACE,
        "labels": {"machine.openshift.io/cluster-api-machine-role": "master"},
        "annotations": {"metal3.io/BareMetalHost": f"{NAMESPACE}/{name}"},
    }
    fake.store.create(MACHINES, {"metadata": metadata, "spec": {"providerSpec": {"value": value}}})
