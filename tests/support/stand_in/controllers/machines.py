"""The controller of Machines, with the actuator for bare metal: a Machine takes a BareMetalHost, and gives it back."""

from __future__ import annotations

import random
from typing import Any

from support.stand_in.controllers import drain, objects
from support.stand_in.controllers.cluster import Cluster
from support.stand_in.controllers.metal3_host import EXTERNALLY, PROVISIONED, Metal3Host
from support.stand_in.controllers.objects import HOST_OF_MACHINE, HOSTS, MACHINES, NAMESPACE, NODES, Object
from support.stand_in.kubernetes import schemas, selectors

ACTUATOR, CONTROLLER = "machine-controller-manager", "machine-controller"
FINALIZER = "machine.machine.openshift.io"
STATE = "machine.openshift.io/instance-state"
WITHOUT_DRAINING = "machine.openshift.io/exclude-node-draining"
MACHINE_OF_NODE = "machine.openshift.io/machine"
NO_HOST = "No available BareMetalHost found"
GONE = "can't find created instance"
PROVISIONING, HAS_SYSTEM, RUNNING, DELETING, FAILED = "Provisioning", "Provisioned", "Running", "Deleting", "Failed"


class MachineController:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._drains: dict[str, drain.Drain] = {}

    def reconcile(self) -> None:
        for item in self._cluster.store.list(MACHINES, NAMESPACE):
            if objects.is_deleted(item):
                self._delete(item)
            elif objects.status(item).get("phase") != FAILED:
                self._bring_up(item)

    def _bring_up(self, machine: Object) -> None:
        if FINALIZER not in objects.finalizers(machine):
            self._change(machine, lambda item: item["metadata"].update(finalizers=[FINALIZER]))
        unknown = schemas.unknown(schemas.PROVIDER_SPEC, self._provider(machine))
        if unknown:
            why = f'failed to unmarshal providerSpec: json: unknown field "{unknown[0]}"'
            self._tell(machine, FAILED, errorReason="InvalidConfiguration", errorMessage=why)
            return
        host = self._host(machine)
        has_had_one = objects.status(machine).get("phase") in (HAS_SYSTEM, RUNNING)
        if has_had_one and not (host and host.state in (PROVISIONED, EXTERNALLY)):
            self._tell(machine, FAILED, errorReason="", errorMessage=GONE)
            return
        host = host or self._choose(machine)
        if not host:
            self._tell(machine, PROVISIONING, errorReason="InsufficientResources", errorMessage=NO_HOST)
            return
        self._take(machine, host)
        if host.state not in (PROVISIONED, EXTERNALLY):
            self._tell(machine, PROVISIONING, errorReason=None, errorMessage=None)
            return
        self._settle(machine, host)

    def _provider(self, machine: Object) -> Object:
        return dict((objects.spec(machine).get("providerSpec") or {}).get("value") or {})

    def _host(self, machine: Object) -> Metal3Host | None:
        name = objects.annotations_of(machine).get(HOST_OF_MACHINE, "").rpartition("/")[2]
        item = self._cluster.find(HOSTS, name, NAMESPACE)
        return Metal3Host(self._cluster, item) if item else None

    def _choose(self, machine: Object) -> Metal3Host | None:
        hosts = [Metal3Host(self._cluster, item) for item in self._cluster.store.list(HOSTS, NAMESPACE)]
        own = [host for host in hosts if _is_consumed_by(host, machine)]
        free = [host for host in hosts if self._may_take(machine, host)]
        return own[0] if own else random.choice(free) if free else None  # noqa: S311 - as the real one

    def _may_take(self, machine: Object, host: Metal3Host) -> bool:
        selector = self._provider(machine).get("hostSelector") or {}
        return bool(
            host.is_free
            and not host.spec.get("consumerRef")
            and not host.is_deleted
            and not host.status.get("errorMessage")
            and not host.spec.get("externallyProvisioned")
            and selectors.matches(_expressions(selector), host.item)
        )

    def _take(self, machine: Object, host: Metal3Host) -> None:
        provider = self._provider(machine)
        wanted = {key: provider[key] for key in ("image", "customDeploy", "userData") if provider.get(key)}
        if "userData" in wanted:
            wanted["userData"] = {"namespace": NAMESPACE, **wanted["userData"]}

        def consume(item: Object) -> None:
            spec = item.setdefault("spec", {})
            spec["consumerRef"] = {key: value for key, value in objects.reference(machine).items() if key != "uid"}
            if not host.spec.get("externallyProvisioned"):
                spec.update({key: value for key, value in wanted.items() if not spec.get(key)})
            spec["online"] = True

        if not _is_consumed_by(host, machine) or (host.is_free and host.is_released):
            self._cluster.change(HOSTS, host.item, consume, ACTUATOR)
        marks = {HOST_OF_MACHINE: f"{NAMESPACE}/{host.name}", STATE: host.state}
        if not marks.items() <= objects.annotations_of(machine).items():

            def mark(item: Object) -> None:
                item["metadata"]["annotations"] = {**objects.annotations_of(item), **marks}

            self._change(machine, mark)

    def _settle(self, machine: Object, host: Metal3Host) -> None:
        provider_id = f"baremetalhost:///{NAMESPACE}/{host.name}/{host.uid}"
        if objects.spec(machine).get("providerID") != provider_id:
            self._change(machine, lambda item: item.setdefault("spec", {}).update(providerID=provider_id))
        addresses = addresses_of(host)
        node = self._node(provider_id, addresses)
        if not node:
            self._tell(machine, HAS_SYSTEM, addresses=addresses, errorReason=None, errorMessage=None)
            return
        self._link(machine, node, provider_id)
        reference = {"kind": "Node", "name": objects.name(node), "uid": objects.uid(node)}
        self._tell(machine, RUNNING, addresses=addresses, nodeRef=reference, errorReason=None, errorMessage=None)

    def _node(self, provider_id: str, addresses: list[Object]) -> Object | None:
        """By its providerID, or else by an address."""
        nodes = self._cluster.store.list(NODES)
        own = {one["address"] for one in addresses if one["type"] == "InternalIP"}
        by_id = [node for node in nodes if objects.spec(node).get("providerID") == provider_id]
        by_address = [node for node in nodes if not objects.spec(node).get("providerID") and own & _internal(node)]
        return next(iter([*by_id, *by_address]), None)

    def _link(self, machine: Object, node: Object, provider_id: str) -> None:
        def link(item: Object) -> None:
            item.setdefault("spec", {})["providerID"] = provider_id
            own = {MACHINE_OF_NODE: f"{NAMESPACE}/{objects.name(machine)}"}
            item["metadata"]["annotations"] = {**objects.annotations_of(item), **own}

        if objects.spec(node).get("providerID") != provider_id or MACHINE_OF_NODE not in objects.annotations_of(node):
            self._cluster.change(NODES, node, link, "nodelink-controller")

    def _delete(self, machine: Object) -> None:
        if FINALIZER not in objects.finalizers(machine):
            return
        self._tell(machine, DELETING)
        hooks = objects.spec(machine).get("lifecycleHooks") or {}
        if hooks.get("preDrain") and self._cluster.is_at_least(4, 10):
            return
        node = self._cluster.find(NODES, (objects.status(machine).get("nodeRef") or {}).get("name", ""))
        if node and not self._is_drained(machine, node):
            return
        if hooks.get("preTerminate") or not self._is_given_back(machine):
            return
        if node:
            self._cluster.store.delete(NODES, objects.name(node))
        self._drains.pop(objects.uid(machine), None)

        def let_go(item: Object) -> None:
            item["metadata"]["finalizers"] = [one for one in objects.finalizers(item) if one != FINALIZER]

        self._change(machine, let_go)

    def _is_drained(self, machine: Object, node: Object) -> bool:
        if objects.condition(machine, "Drained").get("status") == "True":
            return True
        if WITHOUT_DRAINING in objects.annotations_of(machine):
            self._cluster.tell(machine, "DrainSkipped", "Node drain skipped", CONTROLLER)
        else:
            running = self._drains.setdefault(objects.uid(machine), drain.Drain(self._cluster, machine, node))
            if not running.go_on():
                return False

        def note(item: Object) -> None:
            objects.with_condition(item, self._cluster.clock(), "Drained", "True", "NodeDrained", "Drain finished")

        self._change(machine, note, subresource="status")
        return True

    def _is_given_back(self, machine: Object) -> bool:
        host = self._host(machine)
        if not host or not _is_consumed_by(host, machine):
            return True
        given = ("image", "customDeploy", "userData")

        def clear(item: Object) -> None:
            for key in given:
                item["spec"].pop(key, None)
            item["spec"]["online"] = False

        if any(host.spec.get(key) for key in (*given, "online")):
            self._cluster.change(HOSTS, host.item, clear, ACTUATOR)
            return False
        if not (host.is_free or host.state == EXTERNALLY) or host.status.get("poweredOn"):
            return host.state in ("", "registering", "unmanaged")
        self._cluster.change(HOSTS, host.item, lambda item: item["spec"].pop("consumerRef", None), ACTUATOR)
        return True

    def _tell(self, machine: Object, phase: str, **status: Any) -> None:
        def change(item: Object) -> None:
            found = {**objects.status(item), "phase": phase, **status}
            item["status"] = {key: value for key, value in found.items() if value is not None}

        told = {"phase": phase, **status}
        if any(objects.status(machine).get(key) != value for key, value in told.items()):
            self._change(machine, change, subresource="status")

    def _change(self, machine: Object, function: Any, *, subresource: str = "") -> None:
        self._cluster.change(MACHINES, machine, function, CONTROLLER, subresource=subresource)


def addresses_of(host: Metal3Host) -> list[Object]:
    hardware = host.status.get("hardware") or {}
    name = str(hardware.get("hostname") or host.name)
    found = [{"type": "InternalIP", "address": nic["ip"]} for nic in hardware.get("nics") or () if nic.get("ip")]
    return [*found, {"type": "Hostname", "address": name}, {"type": "InternalDNS", "address": name}]


def _is_consumed_by(host: Metal3Host, machine: Object) -> bool:
    consumer = host.spec.get("consumerRef") or {}
    return bool(consumer.get("kind") == "Machine" and consumer.get("name") == objects.name(machine))


def _internal(node: Object) -> set[str]:
    every = objects.status(node).get("addresses") or ()
    return {one["address"] for one in every if one.get("type") == "InternalIP"}


def _expressions(selector: Object) -> Object:
    """A hostSelector writes its operators in any case."""
    names = {"in": "In", "notin": "NotIn", "exists": "Exists", "!": "DoesNotExist", "doesnotexist": "DoesNotExist"}
    every = [
        {**one, "operator": names.get(str(one["operator"]).lower(), one["operator"])}
        for one in selector.get("matchExpressions") or ()
    ]
    return {"matchLabels": selector.get("matchLabels") or {}, "matchExpressions": every}
