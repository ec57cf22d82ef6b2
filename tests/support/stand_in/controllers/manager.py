"""All controllers of a cluster, one after the other, again and again."""

from __future__ import annotations

import syslog
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Protocol

from support.stand_in import pki
from support.stand_in.controllers.approver import ApproverController, SignerController
from support.stand_in.controllers.cluster import Cluster
from support.stand_in.controllers.etcd import EtcdController
from support.stand_in.controllers.hosts import HostController
from support.stand_in.controllers.kubelets import KubeletController
from support.stand_in.controllers.machines import MachineController
from support.stand_in.controllers.machinesets import MachineSetController
from support.stand_in.controllers.workloads import WorkloadController

QUIET_SECONDS, LOOK_SECONDS, SHORTEST_SECONDS = 5.0, 0.5, 0.05
"""How long nothing has changed where it is looked at less often, and how often then; and how often at most."""
MOST_HOSTS = 32
Report = Callable[[str], None]


class Controller(Protocol):
    def reconcile(self) -> None: ...


class Manager:
    def __init__(self, cluster: Cluster, ca: pki.Pair, version: str, report: Report = syslog.syslog) -> None:
        """`report` is told what a controller fails with; it is tried again."""
        self._cluster = cluster
        self._report = report
        self._busy: set[str] = set()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(MOST_HOSTS, thread_name_prefix="bmc")
        self.kubelets = KubeletController(cluster, version)
        self._controllers: tuple[Controller, ...] = (
            HostController(cluster, self._beside),
            MachineSetController(cluster),
            MachineController(cluster),
            ApproverController(cluster),
            SignerController(cluster, ca),
            self.kubelets,
            WorkloadController(cluster),
            EtcdController(cluster),
        )

    def run(self, stop: threading.Event) -> None:
        """Until it is told to stop, and what has begun with BMCs has ended."""
        version, changed = -1, time.monotonic()
        try:
            while not stop.is_set():
                since = self._cluster.store.version
                for controller in self._controllers:
                    self._try(controller.reconcile)
                if since != version:
                    version, changed = since, time.monotonic()
                quiet = time.monotonic() - changed > QUIET_SECONDS
                step = max(SHORTEST_SECONDS, min(LOOK_SECONDS, self._cluster.step()))
                self._cluster.store.wait(LOOK_SECONDS if quiet else step, since)
                stop.wait(SHORTEST_SECONDS / 5)  # in which what changes at once is taken together
        finally:
            self._pool.shutdown()

    def _beside(self, key: str, function: Callable[[], None]) -> None:
        """One at a time for each key."""
        with self._lock:
            if key in self._busy:
                return
            self._busy.add(key)
        self._pool.submit(self._end, key, function)

    def _end(self, key: str, function: Callable[[], None]) -> None:
        try:
            self._try(function)
        finally:
            with self._lock:
                self._busy.discard(key)

    def _try(self, function: Callable[[], Any]) -> None:
        try:
            function()
        except Exception as error:
            self._report(f"{getattr(function, '__qualname__', function)}: {error!r}")
