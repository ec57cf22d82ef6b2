"""baremetal-operator, with Ironic in it: a state at a time, by the BMC that the BareMetalHost names."""

from __future__ import annotations

import uuid
from typing import Callable

from support.stand_in.bmc import BmcFailed, BmcUnreachable
from support.stand_in.controllers import metal3_host as states
from support.stand_in.controllers import objects
from support.stand_in.controllers.cluster import Access, Cluster
from support.stand_in.controllers.ironic import STEADY_STEPS, STEPS, Failed, Ironic, Memory, attempt
from support.stand_in.controllers.metal3_host import INSPECTION, POWER, PROVISION, REGISTRATION, Metal3Host
from support.stand_in.controllers.objects import HOSTS, NAMESPACE, SECRETS
from support.stand_in.controllers.registration import Refused, Registration

RAMDISK_STEPS, MOST_STEPS = 4, 256
MOST_FAILURES = 3
"""After which a host that is to be deleted is no longer cleaned, or switched off."""
Start = Callable[[str, Callable[[], None]], None]


def _at_once(_key: str, function: Callable[[], None]) -> None:
    function()


class HostController:
    def __init__(self, cluster: Cluster, start: Start = _at_once) -> None:
        """A BMC takes its time, so `start` may run what is to be done for a host beside the others."""
        self._cluster = cluster
        self._start = start
        self._registration = Registration(cluster)
        self._memories: dict[str, Memory] = {}

    def reconcile(self) -> None:
        for item in self._cluster.store.list(HOSTS, NAMESPACE):
            name = objects.name(item)
            self._start(name, lambda name=name: self.reconcile_host(name))  # type: ignore[misc]  # a default is a binding

    def reconcile_host(self, name: str) -> None:
        item = self._cluster.find(HOSTS, name, NAMESPACE)
        if item is None or states.PAUSED in objects.annotations_of(item):
            return
        host = Metal3Host(self._cluster, item)
        memory = self._memories.setdefault(host.uid, Memory())
        seen = self._seen(host)
        if self._cluster.clock() < memory.due and seen == memory.seen:
            return
        steps = self._advance(host, memory)
        memory.seen = self._seen(host)
        pause = steps * self._cluster.step()
        memory.due = self._cluster.clock() + (max(pause, self._cluster.poll()) if steps == STEADY_STEPS else pause)

    def _seen(self, host: Metal3Host) -> str:
        return host.fingerprint(self._registration.secret(host), self._registration.authority())

    def _advance(self, host: Metal3Host, memory: Memory) -> float:
        """Steps until it is to be looked at again."""
        try:
            if host.is_deleted:
                return self._delete(host, memory)
            host.hold()
            return self._detach(host) if host.is_detached else self._manage(host, memory)
        except Refused as refused:
            host.fail(REGISTRATION, str(refused), count=refused.steps is None, event=refused.event)
            return _pause(host) if refused.steps is None else refused.steps
        except Failed as failed:
            memory.ramdisk = ""
            host.fail(failed.kind, str(failed))
            return _pause(host)

    def _manage(self, host: Metal3Host, memory: Memory) -> float:
        if not host.bmc.get("address"):
            if host.state != states.UNMANAGED:
                host.go(states.UNMANAGED)
                host.update(operationalStatus="discovered")
            return STEADY_STEPS
        if host.state in (states.NONE, states.UNMANAGED):
            host.go(states.REGISTERING)
            return STEPS
        was_detached = host.status.get("operationalStatus") == "detached"
        if host.state == states.REGISTERING or was_detached or self._registration.is_due(host):
            self._register(host)
        handlers = {
            states.REGISTERING: self._end_registering,
            states.INSPECTING: self._inspect,
            states.MATCHING: self._prepare,
            states.PREPARING: self._prepare,
            host.free_state(): self._keep_available,
            states.PROVISIONING: self._provision,
            states.DEPROVISIONING: self._deprovision,
        }
        ironic = self._ironic(host, memory, self._registration.access(host))
        return handlers.get(host.state, self._keep_provisioned)(host, ironic)

    def _end_registering(self, host: Metal3Host, _ironic: Ironic) -> float:
        host.go(states.EXTERNALLY if host.spec.get("externallyProvisioned") else states.INSPECTING)
        return STEPS

    def _prepare(self, host: Metal3Host, _ironic: Ironic) -> float:
        host.go(states.PREPARING if host.state == states.MATCHING else host.free_state())
        return 0

    def _keep_provisioned(self, host: Metal3Host, ironic: Ironic) -> float:
        if host.state == states.PROVISIONED and host.is_released:
            host.go(states.DEPROVISIONING)
            return 0
        return ironic.enforce_power()

    def _register(self, host: Metal3Host) -> None:
        node = host.node or str(uuid.uuid4())
        access = self._registration.access(host)
        tried = self._registration.credentials(host)
        host.update(triedCredentials=tried)
        try:
            on = self._cluster.machinery.bmc(access).power() == "On"
        except BmcFailed as error:
            where = f"Redfish connection failed for node {node}: " if isinstance(error, BmcUnreachable) else ""
            raise Failed(REGISTRATION, f"Failed to get power state for node {node}. Error: {where}{error}") from error
        if not host.node:
            host.tell("Registered", "Registered new host")
        if host.status.get("goodCredentials") != tried:
            host.tell("BMCAccessValidated", "Verified access to BMC")
        host.update(goodCredentials=tried, poweredOn=on, provisioning={**host.provisioning, "ID": node})
        host.succeed()

    def _detach(self, host: Metal3Host) -> float:
        if host.status.get("operationalStatus") != "detached":
            host.update(operationalStatus="detached", errorType="", errorMessage="", errorCount=0)
            host.tell("Detached", "Host is detached")
        return STEADY_STEPS

    def _inspect(self, host: Metal3Host, ironic: Ironic) -> float:
        if host.annotations.get(states.INSPECT) == "disabled" or host.spec.get("inspectionMode") == "disabled":
            host.tell("InspectionSkipped", "disabled by annotation")
        else:
            if ironic.memory.ramdisk != states.INSPECTING:
                host.tell("InspectionStarted", "Hardware inspection started")
                ironic.boot_ramdisk(INSPECTION)
                return RAMDISK_STEPS
            found = attempt(
                INSPECTION, lambda: self._cluster.machinery.hardware(host.mac, host.name, self._network(host))
            )
            ironic.end_ramdisk(INSPECTION)
            host.update(hardware=found, poweredOn=False)
            host.tell("InspectionComplete", "Hardware inspection completed")
        if states.INSPECT in host.annotations and host.annotations[states.INSPECT] != "disabled":
            host.change_annotations({states.INSPECT: None})
        host.go(states.PREPARING if self._cluster.is_at_least(4, 11) else states.MATCHING)
        return STEPS

    def _network(self, host: Metal3Host) -> str:
        secret = self._cluster.find(SECRETS, host.spec.get("preprovisioningNetworkDataName", ""), NAMESPACE)
        return objects.decoded(secret, "nmstate") if secret else ""

    def _keep_available(self, host: Metal3Host, ironic: Ironic) -> float:
        if states.INSPECT in host.annotations and host.annotations[states.INSPECT] != "disabled":
            host.go(states.INSPECTING)
            return 0
        if host.is_wanted:
            host.go(states.PROVISIONING, image=host.spec.get("image"), rootDeviceHints=host.spec.get("rootDeviceHints"))
            host.tell("ProvisioningStarted", f"Image provisioning started for {_wanted(host)}")
            return STEPS
        return ironic.enforce_power()

    def _provision(self, host: Metal3Host, ironic: Ironic) -> float:
        if host.error == PROVISION or not host.is_wanted:
            host.go(states.DEPROVISIONING)
            return 0
        if ironic.memory.ramdisk != states.PROVISIONING:
            ironic.boot_ramdisk(PROVISION)
            return RAMDISK_STEPS
        ironic.end_ramdisk(PROVISION)

        def deploy() -> None:
            self._cluster.machinery.write(host.mac, host.spec.get("rootDeviceHints") or {})
            ironic.bmc.boot("Hdd", "Continuous")
            ironic.bmc.switch("On")

        attempt(PROVISION, deploy)
        host.update(poweredOn=True)
        host.go(
            states.PROVISIONED,
            image=host.spec.get("image"),
            customDeploy=host.spec.get("customDeploy"),
            bootMode=host.spec.get("bootMode", "UEFI"),
        )
        host.tell("ProvisioningComplete", f"Image provisioning completed for {_wanted(host)}")
        return STEADY_STEPS

    def _deprovision(self, host: Metal3Host, ironic: Ironic) -> float:
        if host.spec.get("automatedCleaningMode") == "disabled":
            attempt(PROVISION, lambda: ironic.bmc.switch("Off"))
        elif ironic.memory.ramdisk != states.DEPROVISIONING:
            host.tell("DeprovisioningStarted", "Image deprovisioning started")
            ironic.boot_ramdisk(PROVISION)
            return RAMDISK_STEPS
        else:
            ironic.end_ramdisk(PROVISION)
            attempt(PROVISION, lambda: self._cluster.machinery.wipe(host.mac))
        host.update(poweredOn=False)
        self._leave_deprovisioning(host)
        host.tell("DeprovisioningComplete", "Image deprovisioning completed")
        return 0

    def _leave_deprovisioning(self, host: Metal3Host) -> None:
        after = self._after_deprovisioning() if host.is_deleted else host.free_state()
        host.go(after, image=None, customDeploy=None, rootDeviceHints=None)

    def _after_deprovisioning(self) -> str:
        return states.POWERING_OFF if self._cluster.is_at_least(4, 14) else states.DELETING

    def _delete(self, host: Metal3Host, memory: Memory) -> float:
        detached = host.status.get("operationalStatus") == "detached"
        if states.FINALIZER not in objects.finalizers(host.item):
            return STEADY_STEPS
        if host.state == states.DELETING:
            self._registration.forget(host)
            host.let_go()
            return STEADY_STEPS
        if host.state in (states.NONE, states.UNMANAGED, states.REGISTERING) or detached:
            host.go(states.DELETING)
        elif host.state in (states.PROVISIONING, states.PROVISIONED):
            host.go(states.DEPROVISIONING)
        elif host.state == states.DEPROVISIONING:
            if host.errors >= MOST_FAILURES:
                self._leave_deprovisioning(host)
                return 0
            return self._deprovision(host, self._last_ironic(host, memory))
        elif host.state == states.POWERING_OFF:
            if host.errors < MOST_FAILURES:
                ironic = self._last_ironic(host, memory)
                attempt(POWER, lambda: ironic.bmc.switch("Off"))
                host.update(poweredOn=False)
            host.go(states.DELETING)
        else:
            host.go(self._after_deprovisioning())
        return 0

    def _ironic(self, host: Metal3Host, memory: Memory, access: Access) -> Ironic:
        return Ironic(self._cluster, host, self._cluster.machinery.bmc(access), memory)

    def _last_ironic(self, host: Metal3Host, memory: Memory) -> Ironic:
        try:
            return self._ironic(host, memory, self._registration.last_access(host))
        except Refused as refused:
            raise Failed(REGISTRATION, str(refused)) from refused


def _pause(host: Metal3Host) -> float:
    """Twice as long after each error; a step is about a minute."""
    return min(float(2**host.errors) / 2, MOST_STEPS)


def _wanted(host: Metal3Host) -> str:
    image = (host.spec.get("image") or {}).get("url")
    return str(image or (host.spec.get("customDeploy") or {}).get("method", ""))
