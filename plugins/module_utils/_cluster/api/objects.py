# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of the cluster, as far as they are looked at, and the names of their kinds. Pure."""

from __future__ import annotations

import base64
import binascii
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.errors import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HOSTS = "baremetalhosts.metal3.io"
MACHINES = "machines.machine.openshift.io"
"""The full name, as other groups have machines, too."""
MACHINE_SETS = "machinesets.machine.openshift.io"
NODES = "nodes"
OPERATORS = "clusteroperators.config.openshift.io"
REQUESTS = "certificatesigningrequests.certificates.k8s.io"
SECRETS = "secrets"

PAUSED, DETACHED = "baremetalhost.metal3.io/paused", "baremetalhost.metal3.io/detached"
HOST_OF_MACHINE = "metal3.io/BareMetalHost"
SET_OF_MACHINE, ROLE_OF_MACHINE = (
    f"machine.openshift.io/cluster-api-{label}" for label in ("machineset", "machine-role")
)
ROLE_OF_NODE = "node-role.kubernetes.io/"
FAILING = (("Available", "False"), ("Degraded", "True"))


@dataclass(frozen=True)
class BareMetalHost:
    name: str
    state: str = ""
    error_type: str = ""
    error_message: str = ""
    operational_status: str = ""
    online: bool = False
    """Whether it is to be on."""
    powered_on: bool = False
    consumer: str = ""
    """The Machine that has it, or of another kind what holds it."""
    consumer_kind: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    boot_mac: str = ""
    bmc_address: str = ""
    credentials: str = ""
    """The Secret's name."""
    network: str = ""
    """The name of the Secret with its network configuration, if it has any."""
    deletion: bool = False
    uid: str = ""

    @classmethod
    def from_dict(cls, item: Mapping[str, Any]) -> BareMetalHost:
        metadata, spec, status = _parts(item)
        bmc = _mapping(spec, "bmc")
        return cls(
            name=_text(metadata, "name"),
            state=_text(_mapping(status, "provisioning"), "state"),
            error_type=_text(status, "errorType"),
            error_message=shown(_text(status, "errorMessage")),
            operational_status=_text(status, "operationalStatus"),
            online=bool(spec.get("online")),
            powered_on=bool(status.get("poweredOn")),
            consumer=_text(_mapping(spec, "consumerRef"), "name"),
            consumer_kind=_text(_mapping(spec, "consumerRef"), "kind"),
            labels=_mapping(metadata, "labels"),
            annotations=_mapping(metadata, "annotations"),
            boot_mac=_text(spec, "bootMACAddress").lower(),
            bmc_address=_text(bmc, "address"),
            credentials=_text(bmc, "credentialsName"),
            network=_text(spec, "preprovisioningNetworkDataName"),
            deletion="deletionTimestamp" in metadata,
            uid=_text(metadata, "uid"),
        )


@dataclass(frozen=True)
class Machine:
    name: str
    phase: str = ""
    host: str = ""
    """The name of its BareMetalHost."""
    node: str = ""
    role: str = ""
    machine_set: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    error: str = ""
    deletion: bool = False
    spec: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def from_dict(cls, item: Mapping[str, Any]) -> Machine:
        metadata, spec, status = _parts(item)
        labels, annotations = _mapping(metadata, "labels"), _mapping(metadata, "annotations")
        return cls(
            name=_text(metadata, "name"),
            phase=_text(status, "phase"),
            host=_text(annotations, HOST_OF_MACHINE).rpartition("/")[2],
            node=_text(_mapping(status, "nodeRef"), "name"),
            role=_text(labels, ROLE_OF_MACHINE),
            machine_set=_text(labels, SET_OF_MACHINE),
            labels=labels,
            annotations=annotations,
            error=shown(_text(status, "errorMessage")),
            deletion="deletionTimestamp" in metadata,
            spec=spec,
        )


@dataclass(frozen=True)
class MachineSet:
    name: str
    replicas: int = 0
    ready: int = 0
    role: str = ""
    """Of its machines."""
    spec: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def from_dict(cls, item: Mapping[str, Any]) -> MachineSet:
        metadata, spec, status = _parts(item)
        labels = _mapping(_mapping(_mapping(spec, "template"), "metadata"), "labels")
        return cls(
            name=_text(metadata, "name"),
            replicas=int(spec.get("replicas") or 0),
            ready=int(status.get("readyReplicas") or 0),
            role=_text(labels, ROLE_OF_MACHINE),
            spec=spec,
        )


@dataclass(frozen=True)
class Node:
    name: str
    ready: str = "Unknown"
    """True, False or Unknown."""
    unschedulable: bool = False
    roles: Sequence[str] = ()
    addresses: Sequence[str] = ()
    """IP addresses."""

    @property
    def is_ready(self) -> bool:
        return self.ready == "True"

    @property
    def is_silent(self) -> bool:
        """Its kubelet is not heard of: the node is off, hangs or is cut off."""
        return self.ready == "Unknown"

    @classmethod
    def from_dict(cls, item: Mapping[str, Any]) -> Node:
        metadata, spec, status = _parts(item)
        states = {_text(condition, "type"): _text(condition, "status") for condition in _conditions(status)}
        roles = [label.partition("/")[2] for label in _mapping(metadata, "labels") if label.startswith(ROLE_OF_NODE)]
        addresses = [
            _text(address, "address")
            for address in status.get("addresses") or []
            if _text(address, "type") in ("InternalIP", "ExternalIP")
        ]
        return cls(
            name=_text(metadata, "name"),
            ready=states.get("Ready") or "Unknown",
            unschedulable=bool(spec.get("unschedulable")),
            roles=sorted(roles),
            addresses=addresses,
        )


@dataclass(frozen=True)
class ClusterOperator:
    name: str
    states: Mapping[str, str] = field(default_factory=dict)
    """By condition: True, False or Unknown."""
    messages: Mapping[str, str] = field(default_factory=dict)

    @property
    def failing(self) -> list[str]:
        """The conditions by which it is degraded or not available."""
        return [kind for kind, state in self.states.items() if (kind, state) in FAILING]

    @classmethod
    def from_dict(cls, item: Mapping[str, Any]) -> ClusterOperator:
        metadata, _spec, status = _parts(item)
        conditions = {_text(condition, "type"): condition for condition in _conditions(status)}
        return cls(
            name=_text(metadata, "name"),
            states={kind: _text(condition, "status") for kind, condition in conditions.items()},
            messages={kind: shown(_text(condition, "message")) for kind, condition in conditions.items()},
        )


@dataclass(frozen=True)
class CertificateRequest:
    name: str
    signer: str = ""
    username: str = ""
    groups: Sequence[str] = ()
    usages: Sequence[str] = ()
    request: str = ""
    """PEM."""
    created: float = 0.0
    pending: bool = False

    def age(self, now: float) -> float:
        return now - self.created

    @classmethod
    def from_dict(cls, item: Mapping[str, Any]) -> CertificateRequest:
        metadata, spec, status = _parts(item)
        return cls(
            name=_text(metadata, "name"),
            signer=_text(spec, "signerName"),
            username=_text(spec, "username"),
            groups=[str(group) for group in spec.get("groups") or []],
            usages=[str(usage) for usage in spec.get("usages") or []],
            request=_decoded(_text(spec, "request")),
            created=seconds_of(_text(metadata, "creationTimestamp")),
            pending=not status.get("conditions"),
        )


def seconds_of(timestamp: str) -> float:
    with suppress(ValueError, OverflowError):
        return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp()
    return 0.0


def _parts(item: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]:
    return _mapping(item, "metadata"), _mapping(item, "spec"), _mapping(item, "status")


def _conditions(status: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return status.get("conditions") or []


def _mapping(item: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return item.get(key) or {}


def _text(item: Mapping[str, Any], key: str) -> str:
    return str(item.get(key) or "")


def _decoded(text: str) -> str:
    with suppress(binascii.Error, ValueError):
        return base64.b64decode(text).decode()
    return ""
