"""The cluster as it grows, by itself: whoever watches or does not."""

from __future__ import annotations

import threading
import time

from support.stand_in import bootstrap, release, scenario
from support.stand_in.host import PROVISIONED, Host
from support.stand_in.lab import Lab
from support.stand_in.resets import Resets
from support.stand_in.scenario import API, BOOTSTRAP, CONSOLE, CONTROL_PLANE, ETCD, INITIALIZE, OPERATORS

OPERATORS_OF_ALL = (
    *("authentication", "baremetal", "cloud-controller-manager", "cloud-credential", "cluster-autoscaler"),
    *("config-operator", "console", "control-plane-machine-set", "csi-snapshot-controller", "dns", "etcd"),
    *("image-registry", "ingress", "insights", "kube-apiserver", "kube-controller-manager", "kube-scheduler"),
    *("kube-storage-version-migrator", "machine-api", "machine-approver", "machine-config", "marketplace"),
    *("monitoring", "network", "node-tuning", "olm", "openshift-apiserver", "openshift-controller-manager"),
    *("openshift-samples", "operator-lifecycle-manager", "operator-lifecycle-manager-catalog"),
    *("operator-lifecycle-manager-packageserver", "service-ca", "storage"),
)
LAST = ("ingress", "authentication", "console")
"""They need workers, or each other."""
AT_A_STEP = 3
MANIFESTS = 959
"""What the cluster version operator counts by."""


class World(threading.Thread):
    def __init__(self, lab: Lab, media: str) -> None:
        super().__init__(name="cluster", daemon=True)
        self.lab = lab
        authority = str(lab.platform.get("bmcVerifyCA", ""))
        self.hosts = {
            told["name"]: Host(told, authority, f"{media}/images/boot-{told['name']}.iso", self._sleep, self._hold)
            for told in lab.hosts("master", "arbiter", "worker")
        }
        self._first = [host["name"] for host in lab.hosts("master", "arbiter")]
        self._resets = Resets()
        self._resets.start()
        self.api_is_up = threading.Event()
        self.bootstrapped = threading.Event()
        self.etcd_member_removed = threading.Event()
        self.ready: list[str] = []
        """Operators."""
        self.stable = False
        self.console = False

    def run(self) -> None:
        self._reach(API, 5)
        self.api_is_up.set()
        self._reach(BOOTSTRAP, 2)
        if not self.lab.terraform:
            for name in self._first:
                self.register(name)
                self.hosts[name].deploy.set()
        self._until_provisioned(self._first)
        self._reach(ETCD, 3)
        self.bootstrapped.set()
        self.etcd_member_removed.set()
        self._grow()

    def register(self, name: str) -> None:
        if not self.hosts[name].is_alive():
            self.hosts[name].start()

    def _grow(self) -> None:
        workers = [name for name in self.hosts if name not in self._first]
        for name in workers:
            self.register(name)
            self.hosts[name].deploy.set()
        early = [name for name in OPERATORS_OF_ALL if name not in LAST]
        while len(self.ready) < len(early):
            self._sleep(1)
            self.ready = early[: len(self.ready) + AT_A_STEP]
        self._until_provisioned(workers)
        self._reach(INITIALIZE, 2)
        self.ready = [*early, *LAST]
        self._reach(OPERATORS, 2)
        self.stable = True
        self._reach(CONSOLE, 1)
        self.console = True

    @property
    def share(self) -> tuple[int, int]:
        """How many manifests are done, of how many."""
        return MANIFESTS * len(self.ready) // len(OPERATORS_OF_ALL), MANIFESTS

    @property
    def kubernetes(self) -> str:
        return release.kubernetes(self.lab.version)

    def _until_provisioned(self, names: list[str]) -> None:
        while any(self.hosts[name].state != PROVISIONED for name in names):
            time.sleep(0.05)

    def _hold(self, host: Host) -> None:
        """A host of the control plane, or the one that the scenario names, stays with its medium's system running."""
        first = host.name in self._first
        stage = CONTROL_PLANE if first else INITIALIZE
        self._was_reset(host)
        while (play := self._play()).stops_at(stage) and (play.host == host.name or (first and not play.host)):
            if play.fail == stage:
                host.error = ("inspection error", play.message or "timeout reached while inspecting the node")
            elif self._was_reset(host):
                break
            time.sleep(0.1)
        host.error = None

    def _was_reset(self, host: Host) -> bool:
        with bootstrap.connection() as connection:
            names = [node.name() for node in bootstrap.nodes(connection, [host.told]).values()]
        return any(self._resets.of(name) for name in names)

    def _reach(self, stage: str, steps: float) -> None:
        """Some steps on the way, and then no further while the scenario stops there."""
        self._sleep(steps)
        while self._play().stops_at(stage):
            time.sleep(0.1)

    def _sleep(self, steps: float) -> None:
        time.sleep(steps * self._play().speed)

    def _play(self) -> scenario.Scenario:
        return scenario.read(self.lab.name)
