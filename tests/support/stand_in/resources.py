"""The cluster as it is installed, in the store of its API: what operators and controllers would write there."""

from __future__ import annotations

import base64
import hashlib
import threading
import time
from typing import Any

from support.stand_in import documents
from support.stand_in.host import PROVISIONED
from support.stand_in.kubernetes.store import Exists, NotFound, Store
from support.stand_in.world import LAST, OPERATORS_OF_ALL, World

Object = dict[str, Any]
MANAGER = "cluster-bootstrap"
LOOK_SECONDS = 0.1
NAMESPACE = "openshift-machine-api"
ROLES = {"master": ["control-plane", "master"], "arbiter": ["arbiter"], "worker": ["worker"]}
CONFIG_MAPS, NODES, SECRETS = "configmaps", "nodes", "secrets"
HOSTS, MACHINES, MACHINE_SETS = (
    "baremetalhosts.metal3.io",
    *("machines.machine.openshift.io", "machinesets.machine.openshift.io"),
)
VERSIONS, OPERATORS = "clusterversions.config.openshift.io", "clusteroperators.config.openshift.io"
INFRASTRUCTURES, PROVISIONINGS = "infrastructures.config.openshift.io", "provisionings.metal3.io"
ETCDS, ROUTES = "etcds.operator.openshift.io", "routes.route.openshift.io"
POOLS = "machineconfigpools.machineconfiguration.openshift.io"
SIGNER, SIGNER_NAMESPACE = "kube-apiserver-to-kubelet-signer", "openshift-kube-apiserver-operator"
NOT_AFTER = "auth.openshift.io/certificate-not-after"
SIGNER_SECONDS = 365 * 24 * 3600
MANAGED_USER_DATA, CUSTOM_DEPLOY, LABELLED = (4, 10), (4, 10), (4, 16)
"""The releases since which there is such a thing."""


class Publisher(threading.Thread):
    """Until the cluster is installed. From then on its objects are others' to change."""

    def __init__(self, world: World, store: Store) -> None:
        super().__init__(name="publisher", daemon=True)
        self._world = world
        self._store = store
        self._last: dict[tuple[str, str, str], Object] = {}
        self.installed = threading.Event()

    def run(self) -> None:
        while not self._world.console:
            self.publish()
            time.sleep(LOOK_SECONDS)
        self.publish()
        self._publish(_spares(self._world))
        self.installed.set()

    def publish(self) -> None:
        self._publish(_objects(self._world))
        uids = {item["metadata"]["name"]: item["metadata"]["uid"] for item in self._store.list(HOSTS, NAMESPACE)}
        self._publish(_machines(self._world, uids))

    def _publish(self, found: list[tuple[str, Object]]) -> None:
        for kind, item in found:
            metadata = item["metadata"]
            key = (kind, metadata.get("namespace", ""), metadata["name"])
            if key not in self._last:
                self._create(kind, item)
            elif item.get("status") != self._last[key].get("status"):
                self._tell(kind, item)
            self._last[key] = item

    def _create(self, kind: str, item: Object) -> None:
        try:
            self._store.create(kind, item, MANAGER)
        except Exists:
            self._tell(kind, item)

    def _tell(self, kind: str, item: Object) -> None:
        metadata, status = item["metadata"], item.get("status", {})

        def tell(there: Object) -> None:
            there["status"] = {**there.get("status", {}), **status}

        try:
            self._store.change(kind, metadata["name"], metadata.get("namespace", ""), tell, "status", MANAGER)
        except NotFound:
            return  # it has been deleted, and stays so


def _objects(world: World) -> list[tuple[str, Object]]:
    found = _platform(world)
    for role, label in (("master", "control-plane"), ("arbiter", "arbiter"), ("worker", "")):
        for told in world.lab.hosts(role):
            found += _host(world, told, label, world.hosts[told["name"]])
    found += [(NODES, node) for node in _nodes(world)]
    found += [(OPERATORS, operator) for operator in _operators(world)]
    return [*found, (VERSIONS, _version(world)), (ETCDS, _etcd(world)), *_ends(world)]


def _platform(world: World) -> list[tuple[str, Object]]:
    """What the installer's manifests say."""
    lab = world.lab
    status = {
        "infrastructureName": lab.infra_id,
        "controlPlaneTopology": "HighlyAvailable",
        "apiServerURL": f"https://{lab.api}:6443",
        "platform": "BareMetal",
        "platformStatus": {
            "type": "BareMetal",
            "baremetal": {
                "apiServerInternalIP": lab.api_vips[0],
                "apiServerInternalIPs": lab.api_vips,
                "ingressIP": lab.ingress_vips[0],
                "ingressIPs": lab.ingress_vips,
            },
        },
    }
    found: list[tuple[str, Object]] = [
        (INFRASTRUCTURES, {"metadata": {"name": "cluster"}, "spec": {}, "status": status}),
        (
            PROVISIONINGS,
            {
                "metadata": {"name": "provisioning-configuration"},
                "spec": {"provisioningNetwork": lab.provisioning_network},
            },
        ),
    ]
    authority = str(lab.platform.get("bmcVerifyCA", ""))
    if authority:
        found.append((CONFIG_MAPS, {"metadata": _named("bmc-verify-ca"), "data": {"verify_ca.crt": authority}}))
    return [*found, *((SECRETS, _secret(_user_data(world, role), {"userData": "{}"})) for role in ("master", "worker"))]


def _host(world: World, told: Object, label: str, host: Any) -> list[tuple[str, Object]]:
    """A BareMetalHost with its Secrets. The status is that of the host, once there is one."""
    name, bmc = told["name"], told["bmc"]
    secrets = [_secret(f"{name}-bmc-secret", {key: str(bmc.get(key, "")) for key in ("username", "password")})]
    spec: Object = {
        "online": True,
        "bootMACAddress": told["bootMACAddress"],
        "bootMode": told.get("bootMode", "UEFI"),
        "automatedCleaningMode": "metadata",
        "bmc": {
            "address": bmc["address"],
            "credentialsName": f"{name}-bmc-secret",
            "disableCertificateVerification": bool(bmc.get("disableCertificateVerification", False)),
        },
        **({"rootDeviceHints": told["rootDeviceHints"]} if told.get("rootDeviceHints") else {}),
    }
    if told.get("networkConfig"):
        secrets.append(_secret(f"{name}-network-config-secret", {"nmstate": documents.dump(told["networkConfig"])}))
        spec["preprovisioningNetworkDataName"] = f"{name}-network-config-secret"
    metadata: Object = {**_named(name), "finalizers": ["baremetalhost.metal3.io"]}
    if label and world.lab.release >= LABELLED:
        metadata["labels"] = {"installer.openshift.io/role": label}
    item: Object = {"metadata": metadata, "spec": spec}
    if host:
        spec["consumerRef"] = {
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "Machine",
            "name": _machine_of(world, name),
            "namespace": NAMESPACE,
        }
        spec |= {"userData": {"name": _user_data(world, "master" if label else "worker"), "namespace": NAMESPACE}}
        if world.lab.release >= CUSTOM_DEPLOY:
            spec["customDeploy"] = {"method": "install_coreos"}
        item["status"] = _status_of(host)
    return [*((SECRETS, secret) for secret in secrets), (HOSTS, item)]


def _status_of(host: Any) -> Object:
    kind, message = host.error or ("", "")
    return {
        "provisioning": {"state": host.state},
        "operationalStatus": "error" if kind else "OK" if host.state else "",
        "errorType": kind,
        "errorMessage": message,
        "poweredOn": host.state == PROVISIONED,
    }


def _spares(world: World) -> list[tuple[str, Object]]:
    """Hosts that no pool has a place for: registered at the end by those who drive the cluster from then on."""
    return [entry for told in world.lab.spares for entry in _host(world, told, "", None)]


def _machines(world: World, uids: dict[str, str]) -> list[tuple[str, Object]]:
    """`uids`: of the hosts that there are."""
    hosts = [(role, told["name"]) for role in ROLES for told in world.lab.hosts(role)]
    found = [(MACHINES, _machine(world, role, name, uids[name])) for role, name in hosts if name in uids]
    return [(MACHINE_SETS, _machine_set(world)), *found]


def _machine(world: World, role: str, name: str, uid: str) -> Object:
    is_node = _is_node(world, name)
    provisioned = world.hosts[name].state == PROVISIONED
    labels = {
        "machine.openshift.io/cluster-api-cluster": world.lab.infra_id,
        "machine.openshift.io/cluster-api-machine-role": role,
        "machine.openshift.io/cluster-api-machine-type": role,
    }
    if role == "worker":
        labels["machine.openshift.io/cluster-api-machineset"] = _set_of(world)
    status: Object = {"phase": "Running" if is_node else "Provisioned" if provisioned else "Provisioning"}
    if is_node:
        status["nodeRef"] = {"kind": "Node", "name": name}
        status["addresses"] = [{"type": kind, "address": name} for kind in ("Hostname", "InternalDNS")]
    return {
        "metadata": {
            **_named(_machine_of(world, name)),
            "labels": labels,
            "annotations": {"metal3.io/BareMetalHost": f"{NAMESPACE}/{name}"},
            "finalizers": ["machine.machine.openshift.io"],
        },
        "spec": {
            "providerID": f"baremetalhost:///{NAMESPACE}/{name}/{uid}",
            "providerSpec": {"value": _provider_spec(world, role)},
        },
        "status": status,
    }


def _machine_set(world: World) -> Object:
    count = len(world.lab.hosts("worker"))
    ready = len([told for told in world.lab.hosts("worker") if _is_node(world, told["name"])])
    selected = {
        "machine.openshift.io/cluster-api-cluster": world.lab.infra_id,
        "machine.openshift.io/cluster-api-machineset": _set_of(world),
    }
    typed = {f"machine.openshift.io/cluster-api-machine-{key}": "worker" for key in ("role", "type")}
    template = {
        "metadata": {"labels": {**selected, **typed}},
        "spec": {"providerSpec": {"value": _provider_spec(world, "worker")}},
    }
    return {
        "metadata": _named(_set_of(world)),
        "spec": {"replicas": count, "selector": {"matchLabels": selected}, "template": template},
        "status": {"replicas": count, "readyReplicas": ready, "availableReplicas": ready},
    }


def _provider_spec(world: World, role: str) -> Object:
    found: Object = {
        "apiVersion": "baremetal.cluster.k8s.io/v1alpha1",
        "kind": "BareMetalMachineProviderSpec",
        "hostSelector": {},
        "userData": {"name": _user_data(world, role)},
    }
    if world.lab.release >= CUSTOM_DEPLOY:
        found["customDeploy"] = {"method": "install_coreos"}
    return found


def _user_data(world: World, role: str) -> str:
    pool = "master" if role == "master" else "worker"
    return f"{pool}-user-data-managed" if world.lab.release >= MANAGED_USER_DATA else f"{pool}-user-data"


def _set_of(world: World) -> str:
    return f"{world.lab.infra_id}-worker-0"


def _machine_of(world: World, host: str) -> str:
    for role in ("master", "arbiter"):
        names = [told["name"] for told in world.lab.hosts(role)]
        if host in names:
            return f"{world.lab.infra_id}-{role}-{names.index(host)}"
    return f"{_set_of(world)}-{hashlib.sha256(host.encode()).hexdigest()[:5]}"


def _is_node(world: World, host: str) -> bool:
    return world.bootstrapped.is_set() and world.hosts[host].state == PROVISIONED


def _nodes(world: World) -> list[Object]:
    found = []
    for role, labels in ROLES.items():
        for told in world.lab.hosts(role):
            if _is_node(world, told["name"]):
                marks = {f"node-role.kubernetes.io/{label}": "" for label in labels}
                status = {
                    "conditions": [_condition("Ready")],
                    "nodeInfo": {"kubeletVersion": f"v{world.kubernetes}"},
                    "addresses": [{"type": "Hostname", "address": told["name"]}],
                }
                found.append({"metadata": {"name": told["name"], "labels": marks}, "spec": {}, "status": status})
    return found


def _operators(world: World) -> list[Object]:
    return [_operator(name, world) for name in OPERATORS_OF_ALL] if world.bootstrapped.is_set() else []


def _operator(name: str, world: World) -> Object:
    ready = name in world.ready
    conditions = [
        _condition("Available", met=ready, message="" if ready else f"{name} has no replica that is available"),
        _condition("Progressing", met=not ready or (name in LAST and not world.stable)),
        _condition("Degraded", met=False),
    ]
    versions = [{"name": "operator", "version": world.lab.version}] if ready else []
    return {"metadata": {"name": name}, "status": {"conditions": conditions, "versions": versions}}


def _version(world: World) -> Object:
    done, of = world.share
    waiting = [name for name in OPERATORS_OF_ALL if name not in world.ready][-4:]
    complete = not waiting
    working = f"Working towards {world.lab.version}: {done} of {of} done ({100 * done // of}% complete)"
    working += f", waiting on {', '.join(waiting)}" if waiting else ""
    conditions = [
        _condition("Available", met=complete, message=f"Done applying {world.lab.version}" if complete else ""),
        _condition(
            "Progressing", met=not complete, message=f"Cluster version is {world.lab.version}" if complete else working
        ),
        _condition("Failing", met=False),
    ]
    history = [{"state": "Completed" if complete else "Partial", "version": world.lab.version}]
    status = {"conditions": conditions, "history": history, "desired": {"version": world.lab.version}}
    return {"metadata": {"name": "version"}, "spec": {"clusterID": world.lab.infra_id}, "status": status}


def _etcd(world: World) -> Object:
    removed = _condition("EtcdBootstrapMemberRemoved", met=world.etcd_member_removed.is_set())
    return {"metadata": {"name": "cluster"}, "spec": {}, "status": {"conditions": [removed]}}


def _ends(world: World) -> list[tuple[str, Object]]:
    """What is there from a stage on."""
    found: list[tuple[str, Object]] = []
    if world.bootstrapped.is_set():
        metadata = {"name": "bootstrap", "namespace": "kube-system"}
        found.append((CONFIG_MAPS, {"metadata": metadata, "data": {"status": "complete"}}))
        found.append((SECRETS, _signer()))
        found += [(POOLS, _pool(world, role)) for role in ("master", "worker")]
    if world.console:
        host = world.lab.console.partition("://")[2]
        metadata = {"name": "console", "namespace": "openshift-console"}
        found.append((ROUTES, {"metadata": metadata, "spec": {"host": host}}))
    return found


def _pool(world: World, role: str) -> Object:
    count = len(world.lab.hosts(role))
    ready = len([told for told in world.lab.hosts(role) if _is_node(world, told["name"])])
    conditions = [
        _condition("Updated", met=ready == count),
        _condition("Updating", met=ready != count),
        _condition("Degraded", met=False),
    ]
    status = {"conditions": conditions, "machineCount": count, "readyMachineCount": ready}
    return {"metadata": {"name": role}, "spec": {}, "status": status}


def _signer() -> Object:
    end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + SIGNER_SECONDS))
    metadata = {"name": SIGNER, "namespace": SIGNER_NAMESPACE, "annotations": {NOT_AFTER: end}}
    return {"metadata": metadata, "type": "SecretTypeTLS"}


def _secret(name: str, data: dict[str, str]) -> Object:
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    return {"metadata": _named(name), "type": "Opaque", "data": encoded}


def _named(name: str) -> Object:
    return {"name": name, "namespace": NAMESPACE}


def _condition(kind: str, *, met: bool = True, message: str = "") -> Object:
    return {"type": kind, "status": str(met), "message": message}
