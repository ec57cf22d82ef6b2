"""What a cluster's controllers do with hosts, Machines and Nodes, at once and without any machine.

For tests of what asks the API: `stand_in/controllers` are the ones that drive BMCs.
"""

from __future__ import annotations

import base64
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.stand_in.kubernetes.store import Store

HOSTS, MACHINES, SETS = "baremetalhosts.metal3.io", "machines.machine.openshift.io", "machinesets.machine.openshift.io"
NAMESPACE = "openshift-machine-api"
SET, INFRA = "ha-x7k2p-worker-0", "ha-x7k2p"
ROLE = "machine.openshift.io/cluster-api-machine-role"
OF_SET = "machine.openshift.io/cluster-api-machineset"
MARK = "machine.openshift.io/delete-machine"
DETACHED = "baremetalhost.metal3.io/detached"
FINALIZER, OF_MACHINE = "baremetalhost.metal3.io", "machine.machine.openshift.io"
IDLE_SECONDS = 60.0
NEXT = {"": "registering", "registering": "inspecting", "inspecting": "available", "provisioning": "provisioned"}
Object = dict[str, Any]


class Controllers:
    def __init__(self, store: Store) -> None:
        self.store = store
        self.passwords: dict[str, str] = {}
        """Of BMCs, by host; of others, any is right."""
        self.broken: set[str] = set()
        """Hosts whose Node never comes."""
        self.failure: BaseException | None = None
        self._number = 0
        self._settled = -1
        self._seconds = 0.0

    # A cluster as it is installed

    def install(self, hosts: list[Object], secrets: list[Object], replicas: int) -> None:
        labels = {ROLE: "worker", OF_SET: SET}
        template = {"metadata": {"labels": labels}, "spec": {"providerSpec": {"value": {}}}}
        spec = {"replicas": replicas, "selector": {"matchLabels": {OF_SET: SET}}, "template": template}
        self.store.create(SETS, {"metadata": {"name": SET, "namespace": NAMESPACE}, "spec": spec})
        for secret in secrets:
            self.store.create("secrets", secret, "installer")
        for host in hosts:
            name = host["metadata"]["name"]
            self._make_machine(f"{INFRA}-{name}", {} if name.startswith("control-plane") else labels, name)
            host["metadata"]["finalizers"] = [FINALIZER]
            host["spec"]["consumerRef"] = {"kind": "Machine", "name": f"{INFRA}-{name}"}
            host["status"] = {"provisioning": {"state": "provisioned"}, "operationalStatus": "OK", "poweredOn": True}
            self.store.create(HOSTS, host, "installer")
            self._make_node(name)

    # Looking at everything, again and again

    def sleep(self, seconds: float) -> None:
        """For whoever waits for them, who would wait for ever."""
        if self.failure:
            raise self.failure
        if self._settled == self.store.version:
            self._seconds += IDLE_SECONDS
        self.store.wait(seconds)

    def now(self) -> float:
        """Time passes only while they have nothing to do: a busy machine makes nobody late."""
        return self._seconds

    @contextmanager
    def running(self) -> Iterator[None]:
        stop = threading.Event()

        def work() -> None:
            try:
                while not stop.is_set():
                    since = self.store.version
                    self.reconcile()
                    if self.store.version == since:
                        self._settled = since
                        self.store.wait(0.2, since)
            except BaseException as error:
                self.failure = error

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
        if self.failure:
            raise self.failure

    def reconcile(self) -> None:
        for host in self.store.list(HOSTS, NAMESPACE):
            self._host(host)
        self._machine_set(self.store.get(SETS, SET, NAMESPACE))
        for machine in self.store.list(MACHINES, NAMESPACE):
            self._machine(machine)

    def _host(self, host: Object) -> None:
        metadata, state = host["metadata"], _state(host)
        if metadata.get("deletionTimestamp"):
            if state in ("provisioned", "provisioning"):
                self._set_state(host, "deprovisioning")
            else:
                self._change(HOSTS, host, lambda item: item["metadata"].pop("finalizers", None))
        elif FINALIZER not in metadata.get("finalizers", []):
            self._change(HOSTS, host, lambda item: item["metadata"].update(finalizers=[FINALIZER]))
        elif DETACHED in metadata.get("annotations", {}):
            self._set_status(host, operationalStatus="detached")
        elif host.get("status", {}).get("operationalStatus") == "detached":
            self._set_status(host, operationalStatus="OK")
        elif state == "deprovisioning":
            self._set_state(host, "available", poweredOn=False)
        else:
            self._go_on(host, state)

    def _go_on(self, host: Object, state: str) -> None:
        if self._has_login(host):
            wants_image = bool(host["spec"].get("customDeploy"))
            if state in NEXT:
                self._set_state(host, NEXT[state], errorType="", errorMessage="", operationalStatus="OK")
            elif state == "available" and wants_image:
                self._set_state(host, "provisioning", poweredOn=True)
        elif state == "registering":
            said = "HTTP GET /redfish/v1/Systems returned code 401. Unauthorized"
            self._set_status(host, errorType="registration error", errorMessage=said, operationalStatus="error")
        elif state == "":
            self._set_state(host, "registering")

    def _has_login(self, host: Object) -> bool:
        name = host["spec"]["bmc"]["credentialsName"]
        secrets = {item["metadata"]["name"]: item for item in self.store.list("secrets", NAMESPACE)}
        if name not in secrets:
            return False
        password = base64.b64decode(secrets[name]["data"]["password"]).decode()
        return self.passwords.get(host["metadata"]["name"], password) == password

    def _machine_set(self, machine_set: Object) -> None:
        own = [item for item in self.store.list(MACHINES, NAMESPACE, {OF_SET: SET}) if not _is_going(item)]
        surplus = len(own) - machine_set["spec"]["replicas"]
        first = sorted(own, key=lambda item: MARK not in item["metadata"].get("annotations", {}))
        for machine in first[: max(surplus, 0)]:
            self.store.delete(MACHINES, machine["metadata"]["name"], NAMESPACE)
        for _missing in range(-surplus):
            self._number += 1
            self._make_machine(f"{SET}-new{self._number}", {ROLE: "worker", OF_SET: SET}, "")

    def _machine(self, machine: Object) -> None:
        host = self._host_of(machine)
        if _is_going(machine):
            self._let_go(machine, host)
        elif host is None:
            self._choose(machine)
        elif _state(host) == "provisioned" and not machine.get("status", {}).get("nodeRef"):
            name = host["metadata"]["name"]
            if name in self.broken:
                return
            self._make_node(name)
            self._set_status(machine, MACHINES, phase="Running", nodeRef={"kind": "Node", "name": name})

    def _let_go(self, machine: Object, host: Object | None) -> None:
        if host and host["spec"].get("customDeploy") is None and _state(host) == "available":
            self._change(HOSTS, host, lambda item: item["spec"].pop("consumerRef", None))
        elif host and _state(host) == "provisioned":
            self._change(HOSTS, host, _without_image)
            self._set_state(host, "deprovisioning")
        elif host is None:
            node = machine.get("status", {}).get("nodeRef", {}).get("name")
            if node and any(item["metadata"]["name"] == node for item in self.store.list("nodes")):
                self.store.delete("nodes", node)
            self._change(MACHINES, machine, lambda item: item["metadata"].pop("finalizers", None))

    def _choose(self, machine: Object) -> None:
        free = [
            item
            for item in self.store.list(HOSTS, NAMESPACE)
            if _state(item) == "available" and not item["spec"].get("consumerRef") and not _is_going(item)
        ]
        if not free:
            self._set_status(machine, MACHINES, phase="Provisioning", errorMessage="No available BareMetalHost found")
            return
        name, own = free[-1]["metadata"]["name"], machine["metadata"]["name"]
        wanted = {"consumerRef": {"kind": "Machine", "name": own}, "customDeploy": {"method": "install_coreos"}}
        self._change(HOSTS, free[-1], lambda item: item["spec"].update(wanted, online=True))
        annotation = {"metal3.io/BareMetalHost": f"{NAMESPACE}/{name}"}
        self._change(MACHINES, machine, lambda item: item["metadata"].setdefault("annotations", {}).update(annotation))
        self._set_status(machine, MACHINES, phase="Provisioned", errorMessage="")

    def _host_of(self, machine: Object) -> Object | None:
        own = machine["metadata"]["name"]
        found = self.store.list(HOSTS, NAMESPACE)
        return next((item for item in found if item["spec"].get("consumerRef", {}).get("name") == own), None)

    def _make_machine(self, name: str, labels: Object, host: str) -> None:
        annotations = {"metal3.io/BareMetalHost": f"{NAMESPACE}/{host}"} if host else {}
        metadata = {"name": name, "namespace": NAMESPACE, "labels": labels, "annotations": annotations}
        status = {"phase": "Running", "nodeRef": {"kind": "Node", "name": host}} if host else {}
        body = {"metadata": {**metadata, "finalizers": [OF_MACHINE]}, "spec": {}, "status": status}
        self.store.create(MACHINES, body, "controllers")

    def _make_node(self, name: str) -> None:
        status = {"conditions": [{"type": "Ready", "status": "True"}]}
        self.store.create("nodes", {"metadata": {"name": name}, "spec": {}, "status": status})

    def _set_state(self, host: Object, state: str, **more: Any) -> None:
        self._set_status(host, provisioning={"state": state}, **more)

    def _set_status(self, item: Object, kind: str = HOSTS, **changes: Any) -> None:
        if any(item.get("status", {}).get(key) != value for key, value in changes.items()):
            self._change(kind, item, lambda read: read.setdefault("status", {}).update(changes), "status")

    def _change(self, kind: str, item: Object, function: Any, subresource: str = "") -> None:
        def changed(read: Object) -> None:
            function(read)

        self.store.change(kind, item["metadata"]["name"], NAMESPACE, changed, subresource, "controllers")


def _state(host: Object) -> str:
    return str(host.get("status", {}).get("provisioning", {}).get("state", ""))


def _without_image(host: Object) -> None:
    host["spec"].pop("customDeploy", None)
    host["spec"]["online"] = False


def _is_going(item: Object) -> bool:
    return bool(item["metadata"].get("deletionTimestamp"))
