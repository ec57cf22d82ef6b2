"""A cluster for the stand-in's controllers, without real machines, and with the test's clock."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from support.stand_in import pki
from support.stand_in.bmc import BmcFailed, BmcUnreachable
from support.stand_in.controllers import certificates, objects
from support.stand_in.controllers.approver import ApproverController, SignerController
from support.stand_in.controllers.cluster import Access, Cluster
from support.stand_in.controllers.etcd import EtcdController
from support.stand_in.controllers.hosts import HostController
from support.stand_in.controllers.kubelets import KubeletController
from support.stand_in.controllers.machines import MachineController
from support.stand_in.controllers.machinesets import LABEL, MachineSetController
from support.stand_in.controllers.objects import HOSTS, MACHINE_SETS, NAMESPACE, SECRETS, Object
from support.stand_in.controllers.workloads import WorkloadController
from support.stand_in.kubernetes.store import Store

if TYPE_CHECKING:
    from typing import Callable

START = 1_800_000_000.0
LOGIN = ("operator", "of-the-test")
SET = "lab-x7k2p-worker-0"


@dataclass
class Machine:
    """One machine and its BMC."""

    number: int
    login: tuple[str, str] = LOGIN
    on: bool = False
    system: bool = False
    medium: str = ""
    boots: str = "Hdd"
    fails: str = ""
    """With what, whatever its BMC is asked for."""
    obeys: bool = False
    """Whether its system switches itself off when it is asked to."""
    done: list[str] = field(default_factory=list)

    @property
    def mac(self) -> str:
        return f"52:54:00:00:00:{self.number:02x}"

    @property
    def address(self) -> str:
        return f"192.168.77.{20 + self.number}"


@dataclass
class FakeBmc:
    machine: Machine
    access: Access

    def power(self) -> str:
        if self.machine.fails:
            raise BmcUnreachable(self.machine.fails)
        if (self.access.username, self.access.password) != self.machine.login:
            raise BmcFailed("HTTP GET /redfish/v1/Systems/1 returned code 401. Invalid credentials.")
        return "On" if self.machine.on else "Off"

    def switch(self, wanted: str) -> None:
        if self.power() != wanted:
            self.machine.on = wanted == "On"
            self.machine.done.append(wanted)

    def shut_down(self) -> None:
        self.power()
        self.machine.done.append("shut down")
        self.machine.on = self.machine.on and not self.machine.obeys

    def insert(self, url: str) -> None:
        self.power()
        self.machine.medium = url

    def eject(self) -> None:
        self.power()
        self.machine.medium = ""

    def boot(self, target: str, _enabled: str) -> None:
        self.machine.boots = target


@dataclass
class FakeMachines:
    machines: dict[str, Machine] = field(default_factory=dict)
    """By MAC address; a BMC is found by its number, which ends its URL."""
    accesses: list[Access] = field(default_factory=list)

    def bmc(self, access: Access) -> FakeBmc:
        self.accesses.append(access)
        number = int(access.address.rpartition("/")[2])
        return FakeBmc(next(one for one in self.machines.values() if one.number == number), access)

    def medium(self, host: str) -> str:
        return f"http://192.168.77.5:6180/images/boot-{host}.iso"

    def hardware(self, mac: str, host: str, _network: str) -> Object:
        return {"hostname": host, "nics": [{"name": "eth0", "mac": mac, "ip": self.machines[mac].address}]}

    def write(self, mac: str, _hints: Object) -> None:
        self.machines[mac].system = True

    def wipe(self, mac: str) -> None:
        self.machines[mac].system = False
        self.machines[mac].done.append("wiped")

    def runs(self, mac: str) -> bool:
        machine = self.machines[mac]
        return machine.on and machine.system and not machine.medium


class FakeCluster:
    """`run()` has the controllers do what they do in so many steps of a second each."""

    def __init__(self, release: tuple[int, int] = (4, 20)) -> None:
        self.now = START
        self.store = Store(lambda: self.now)
        self.machines = FakeMachines()
        self.cluster = Cluster(self.store, self.machines, "lab-x7k2p", release, lambda: self.now, lambda: 1)
        self.ca = pki.authority("kube-csr-signer")
        self.kubelets = KubeletController(self.cluster, "v1.33.5")
        self.hosts = HostController(self.cluster)
        self.controllers: list[Any] = [
            self.hosts,
            MachineSetController(self.cluster),
            MachineController(self.cluster),
            ApproverController(self.cluster),
            SignerController(self.cluster, self.ca),
            self.kubelets,
            WorkloadController(self.cluster),
            EtcdController(self.cluster),
        ]

    def run(self, steps: int = 60) -> None:
        for _number in range(steps):
            for controller in self.controllers:
                controller.reconcile()
            self.now += 1

    def until(self, condition: Callable[[], object], steps: int = 200) -> None:
        for _number in range(steps):
            if condition():
                return
            self.run(1)
        raise AssertionError(f"{condition} is not met after {steps} steps")

    def host(self, name: str, **spec: Any) -> Machine:
        machine = Machine(len(self.machines.machines) + 1)
        self.machines.machines[machine.mac] = machine
        if not self.cluster.find(SECRETS, f"{name}-bmc-secret", NAMESPACE):
            self.secret(name)
        bmc = {
            "address": f"redfish-virtualmedia+http://127.0.0.1:8000/redfish/v1/Systems/{machine.number}",
            "credentialsName": f"{name}-bmc-secret",
        }
        whole = {"online": True, "bootMACAddress": machine.mac, "bmc": bmc, **spec}
        self.store.create(HOSTS, {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": whole})
        return machine

    def secret(self, name: str, login: tuple[str, str] = LOGIN) -> None:
        data = {key: base64.b64encode(value.encode()).decode() for key, value in zip(("username", "password"), login)}
        self.store.apply(
            SECRETS,
            {"metadata": {"name": f"{name}-bmc-secret", "namespace": NAMESPACE}, "data": data},
            manager="test",
            force=True,
        )

    def workers(self, replicas: int, **provider: Any) -> None:
        """The MachineSet."""
        labels = {LABEL: SET, "machine.openshift.io/cluster-api-cluster": "lab-x7k2p"}
        value = {
            "apiVersion": "baremetal.cluster.k8s.io/v1alpha1",
            "kind": "BareMetalMachineProviderSpec",
            "customDeploy": {"method": "install_coreos"},
            "userData": {"name": "worker-user-data-managed"},
            **provider,
        }
        role = {"machine.openshift.io/cluster-api-machine-role": "worker"}
        template = {"metadata": {"labels": {**labels, **role}}, "spec": {"providerSpec": {"value": value}}}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        self.store.create(MACHINE_SETS, {"metadata": {"name": SET, "namespace": NAMESPACE}, "spec": spec})

    def scale(self, replicas: int) -> None:
        self.change(MACHINE_SETS, SET, lambda item: item["spec"].update(replicas=replicas))

    def change(self, kind: str, name: str, function: Callable[[Object], Any], subresource: str = "") -> None:
        def changed(item: Object) -> Object:
            function(item)
            return item

        namespace = NAMESPACE if kind in (HOSTS, MACHINE_SETS, objects.MACHINES, SECRETS) else ""
        self.store.change(kind, name, namespace, changed, subresource)

    def respec(self, name: str, **changes: Any) -> None:
        """Of a host; `None` removes."""

        def change(item: Object) -> None:
            new = {**item["spec"], **changes}
            item["spec"] = {key: value for key, value in new.items() if value is not None}

        self.change(HOSTS, name, change)

    def get(self, kind: str, name: str) -> Object:
        return self.cluster.find(kind, name, NAMESPACE) or self.cluster.find(kind, name) or {}

    def state(self, name: str) -> str:
        return str((objects.status(self.get(HOSTS, name)).get("provisioning") or {}).get("state", ""))

    def names(self, kind: str) -> list[str]:
        return [objects.name(item) for item in self.store.list(kind)]

    def only(self, kind: str) -> Object:
        [found] = self.store.list(kind)
        return found

    def mark(self, kind: str, name: str, key: str, value: str | None = "") -> None:
        """By an annotation; `None` removes it."""

        def change(item: Object) -> None:
            new = {**objects.annotations_of(item), key: value}
            item["metadata"]["annotations"] = {one: text for one, text in new.items() if text is not None}

        self.change(kind, name, change)

    def events(self) -> list[str]:
        return [item["reason"] for item in self.store.list(objects.EVENTS)]

    def pending(self) -> list[Object]:
        return [item for item in self.store.list(objects.REQUESTS) if not objects.status(item).get("conditions")]

    def approve(self, request: Object) -> None:
        def change(item: Object) -> None:
            objects.with_condition(item, self.now, "Approved", "True", "KubectlApprove")

        self.change(objects.REQUESTS, objects.name(request), change, "approval")

    def foreign_request(self, node: str, signer: str = certificates.CLIENT) -> str:
        new = certificates.object_of(
            certificates.request(node), signer, certificates.BOOTSTRAPPER, certificates.BOOTSTRAPPERS
        )
        return objects.name(self.store.create(objects.REQUESTS, new))
