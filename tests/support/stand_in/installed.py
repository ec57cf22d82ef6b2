"""A cluster after its installation: it lives while most of its control plane does, and sleeps while that is off."""

from __future__ import annotations

import syslog
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from support.stand_in import pki, scenario
from support.stand_in.bmc import BmcFailed
from support.stand_in.controllers import etcd, handover
from support.stand_in.controllers.cluster import Cluster
from support.stand_in.controllers.kubelets import node_of, role_of
from support.stand_in.controllers.manager import Manager
from support.stand_in.controllers.metal3_host import EXTERNALLY, PROVISIONED, Metal3Host
from support.stand_in.controllers.objects import HOSTS, NAMESPACE
from support.stand_in.controllers.vms import Vms
from support.stand_in.kubernetes.store import Store
from support.stand_in.lab import Lab
from support.stand_in.release import kubernetes
from support.stand_in.state import State

LOOK_SECONDS, SAVE_SECONDS = 0.3, 1.0
MASTER, ARBITER = "master", "arbiter"


class Front(Protocol):
    """The addresses of the cluster with what answers there."""

    def open(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Told:
    media: str
    """Where the image server is."""
    signer: pki.Pair
    """Of the kubelets' certificates."""


class Installed:
    def __init__(self, lab: Lab, told: Told, store: Store, front: Front, state: State) -> None:
        self._vms = Vms(told.media, str(lab.config["networking"]["machineNetwork"][0]["cidr"]))
        self._store = store
        store.clock = self._now
        self._lab = lab
        self._signer = told.signer
        self._cluster = Cluster(
            store,
            self._vms,
            lab.infra_id,
            lab.release,
            self._now,
            step=lambda: self._play().speed,
            poll=lambda: self._play().poll,
        )
        self._front = front
        self._state = state
        self._manager = self._new_manager()
        self._running: tuple[threading.Thread, threading.Event] | None = None
        self._saved = (-1, 0.0)

    def take_over(self) -> None:
        handover.take_over(self._cluster, self._manager.kubelets)

    def load(self) -> None:
        found = self._state.load()
        self._store.load(found["store"])
        self._manager.kubelets.load(found["kubelets"])

    def run(self, *, is_open: bool) -> None:
        """Until its system is nowhere any more."""
        self._state.note_process()
        if is_open:
            self._begin()
        try:
            while self._is_anywhere():
                with suppress(BmcFailed):  # libvirt may be restarted
                    self._follow()
                self._save()
                time.sleep(LOOK_SECONDS)
            self._state.end()
        finally:
            self._save(at_once=True)
            self._pause()

    def _follow(self) -> None:
        lives = self._has_quorum()
        if lives and not self._running:
            self._front.open()
            self._begin()
        elif not lives and self._running:
            self._pause()
            self._save(at_once=True)

    def _begin(self) -> None:
        stop = threading.Event()
        running = threading.Thread(target=self._manager.run, args=(stop,), name="controllers")
        running.start()
        self._running = (running, stop)

    def _pause(self) -> None:
        if self._running:
            self._front.close()
            running, stop = self._running
            stop.set()
            running.join()
            kubelets = self._manager.kubelets.dump()
            self._manager = self._new_manager()
            self._manager.kubelets.load(kubelets)
            self._running = None

    def _new_manager(self) -> Manager:
        version = f"v{kubernetes(self._lab.version)}"
        return Manager(
            self._cluster, self._signer, version, lambda text: syslog.syslog(f"{self._lab.infra_id}: {text}")
        )

    def _has_quorum(self) -> bool:
        """Of etcd: who was removed from it, or has not joined it so far, does not count."""
        members = etcd.read_members(self._cluster)
        hosts = self._hosts()
        own = [host for host in hosts if role_of(host) == MASTER and (not members or node_of(host) in members)]
        own += [host for host in hosts if role_of(host) == ARBITER]
        return 2 * len([host for host in own if self._vms.runs(host.mac)]) > len(own)

    def _is_anywhere(self) -> bool:
        """On, or on a disk; and nobody else has taken its machines."""
        if not self._state.exists:
            return False
        try:
            return any(self._vms.is_on(host.mac) or self._vms.carries(host.mac) for host in self._hosts())
        except BmcFailed:
            return True

    def _hosts(self) -> list[Metal3Host]:
        hosts = [Metal3Host(self._cluster, item) for item in self._store.list(HOSTS, NAMESPACE)]
        return [host for host in hosts if host.state in (PROVISIONED, EXTERNALLY)]

    def _save(self, *, at_once: bool = False) -> None:
        version, when = self._saved
        due = at_once or (self._store.version != version and time.monotonic() - when > SAVE_SECONDS)
        if due:
            content: dict[str, Any] = {"store": self._store.dump(), "kubelets": self._manager.kubelets.dump()}
            self._saved = (content["store"]["version"], time.monotonic())
            self._state.save(content)

    def _now(self) -> float:
        return time.time() + self._play().later

    def _play(self) -> scenario.Scenario:
        return scenario.read(self._lab.name)
