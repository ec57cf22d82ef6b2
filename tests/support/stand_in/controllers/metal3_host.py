"""A BareMetalHost as baremetal-operator reads and writes it."""

from __future__ import annotations

import json
from typing import Any, Callable

from support.stand_in.controllers import objects
from support.stand_in.controllers.cluster import Cluster
from support.stand_in.controllers.objects import HOSTS, Object

OPERATOR = "baremetal-operator"
FINALIZER = "baremetalhost.metal3.io"
PAUSED, DETACHED, INSPECT = f"{FINALIZER}/paused", f"{FINALIZER}/detached", "inspect.metal3.io"
REBOOT = "reboot.metal3.io"
NONE, UNMANAGED, REGISTERING, INSPECTING, MATCHING = "", "unmanaged", "registering", "inspecting", "match profile"
PREPARING, AVAILABLE, READY, PROVISIONING, PROVISIONED = (
    "preparing",
    "available",
    "ready",
    "provisioning",
    "provisioned",
)
EXTERNALLY, DEPROVISIONING = "externally provisioned", "deprovisioning"
POWERING_OFF, DELETING = "powering off before delete", "deleting"
REGISTRATION, INSPECTION, PROVISION, POWER = (
    *("registration error", "inspection error"),
    *("provisioning error", "power management error"),
)
EVENTS_OF_ERRORS = {
    REGISTRATION: "RegistrationError",
    INSPECTION: "InspectionError",
    PROVISION: "ProvisioningError",
    POWER: "PowerManagementError",
}


class Metal3Host:
    def __init__(self, cluster: Cluster, item: Object) -> None:
        self.cluster = cluster
        self.item = item

    name = property(lambda self: objects.name(self.item))
    uid = property(lambda self: objects.uid(self.item))
    spec = property(lambda self: objects.spec(self.item))
    status = property(lambda self: objects.status(self.item))
    annotations = property(lambda self: objects.annotations_of(self.item))

    @property
    def mac(self) -> str:
        return str(self.spec.get("bootMACAddress", "")).lower()

    @property
    def bmc(self) -> Object:
        return dict(self.spec.get("bmc") or {})

    @property
    def state(self) -> str:
        return str(self.provisioning.get("state", NONE))

    @property
    def provisioning(self) -> Object:
        return dict(self.status.get("provisioning") or {})

    @property
    def node(self) -> str:
        """Ironic's uuid of it."""
        return str(self.provisioning.get("ID", ""))

    @property
    def error(self) -> str:
        return str(self.status.get("errorType", ""))

    @property
    def errors(self) -> int:
        return int(self.status.get("errorCount", 0))

    @property
    def is_deleted(self) -> bool:
        return objects.is_deleted(self.item)

    @property
    def is_detached(self) -> bool:
        return DETACHED in self.annotations and self.state in (PROVISIONED, EXTERNALLY, READY, AVAILABLE)

    @property
    def is_free(self) -> bool:
        return self.state in (READY, AVAILABLE)

    @property
    def is_wanted(self) -> bool:
        """To have a system."""
        deploy = self.spec.get("image") or (self.spec.get("customDeploy") or {}).get("method")
        return bool(self.spec.get("online") and deploy)

    @property
    def is_released(self) -> bool:
        return not (self.spec.get("image") or self.spec.get("customDeploy"))

    def free_state(self) -> str:
        return AVAILABLE if self.cluster.is_at_least(4, 10) else READY

    def update(self, **status: Any) -> None:
        """`None` removes."""

        def change(item: Object) -> None:
            found = item.setdefault("status", {})
            for key, value in status.items():
                if value is None:
                    found.pop(key, None)
                else:
                    found[key] = value
            found["lastUpdated"] = objects.moment(self.cluster.clock())

        self._write(change, subresource="status")

    def go(self, state: str, **provisioning: Any) -> None:
        """Into the next state, without an error."""
        history, now = dict(self.status.get("operationHistory") or {}), objects.moment(self.cluster.clock())
        for operation, of in {
            "register": REGISTERING,
            "inspect": INSPECTING,
            "provision": PROVISIONING,
            "deprovision": DEPROVISIONING,
        }.items():
            if of == state:
                history[operation] = {"start": now, "end": None}
            elif of == self.state and history.get(operation):
                history[operation] = {**history[operation], "end": now}
        new = {**self.provisioning, "state": state, **provisioning}
        self.update(
            provisioning={key: value for key, value in new.items() if value is not None}, operationHistory=history
        )
        self.succeed()

    def succeed(self) -> None:
        if self.error or self.status.get("operationalStatus") != "OK" or self.errors:
            self.update(errorType="", errorMessage="", errorCount=0, operationalStatus="OK")

    def fail(self, kind: str, message: str, *, count: bool = True, event: str = "") -> None:
        told = {"errorType": kind, "errorMessage": message, "operationalStatus": "error"}
        self.update(**told, errorCount=self.errors + 1 if count else self.errors)
        self.tell(event or EVENTS_OF_ERRORS[kind], message, warning=True)

    def tell(self, reason: str, message: str, *, warning: bool = False) -> None:
        self.cluster.tell(self.item, reason, message, OPERATOR, warning=warning)

    def change_annotations(self, changes: dict[str, str | None]) -> None:
        """`None` removes."""

        def change(item: Object) -> None:
            new = {**objects.annotations_of(item), **changes}
            item["metadata"]["annotations"] = {key: value for key, value in new.items() if value is not None}

        if changes:
            self._write(change)

    def hold(self) -> None:
        """By the finalizer."""

        def change(item: Object) -> None:
            item["metadata"]["finalizers"] = [*objects.finalizers(item), FINALIZER]

        if FINALIZER not in objects.finalizers(self.item):
            self._write(change)

    def let_go(self) -> None:
        def change(item: Object) -> None:
            left = [one for one in objects.finalizers(item) if one != FINALIZER]
            item["metadata"]["finalizers"] = left

        self._write(change)

    def fingerprint(self, *others: Object | None) -> str:
        """Of all that makes the operator look again before its time."""
        meta = self.item["metadata"]
        versions = [other["metadata"]["resourceVersion"] for other in others if other]
        told = [self.spec, self.annotations, meta.get("deletionTimestamp"), versions]
        return json.dumps(told, sort_keys=True)

    def _write(self, change: Callable[[Object], Any], *, subresource: str = "") -> None:
        self.cluster.change(HOSTS, self.item, change, OPERATOR, subresource=subresource)
        self.item = self.cluster.find(HOSTS, self.name, objects.namespace(self.item)) or self.item
