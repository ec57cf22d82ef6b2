# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was observed of a lab: the keys of what module lab_status returns. Times are UTC, as in ISO 8601."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

ON, OFF, MISSING, UNKNOWN = "on", "off", "missing", "unknown"
"""Of the power of a node, beside what libvirt calls states that are rare."""
ACTIVE, INACTIVE = "active", "inactive"
ANSWERS, SILENT = "answers", "silent"
"""Of BMCs and of the API; BMCs may be missing, too."""
NOT_ASKED = "not asked"
"""Of the API, where no client is."""
OF_SIGNER = "signer of the API server's client certificates for kubelets"
"""Of a certificate."""
OK, FAILED, NEVER = "ok", "failed", "never"
"""Of the last rehearsal."""


@dataclass(frozen=True)
class Host:
    name: str = ""
    distribution: str = ""
    booted: str = ""
    cores: int = 0
    load: float = 0.0
    memory_bytes: int = 0
    memory_available_bytes: int = 0
    libvirt: str = ""
    """Why libvirt could not be asked; empty when it answers."""


@dataclass(frozen=True)
class Network:
    name: str
    role: str
    bridge: str
    state: str = UNKNOWN
    addresses: Sequence[str] = ()
    missing_addresses: Sequence[str] = ()
    dnsmasq: bool | None = None


@dataclass(frozen=True)
class Bmcs:
    state: str = MISSING
    url: str = ""
    protocol: str = ""
    credentials: str = ""
    """The file with the accounts."""
    error: str = ""
    faults: Sequence[str] = ()
    """Those that they have on purpose."""


@dataclass(frozen=True)
class Member:
    """What the cluster says of a node of the lab."""

    host_state: str = ""
    """Of its BareMetalHost."""
    host_error: str = ""
    machine: str = ""
    machine_phase: str = ""
    machine_error: str = ""
    node: str = ""
    ready: bool | None = None
    """None: its kubelet says nothing, or there is no Node."""
    cordoned: bool = False
    network_changed: bool = False
    """Whether lab_spec has another network_config than the one that it was installed with."""


@dataclass(frozen=True)
class Node:
    name: str
    role: str
    vm_name: str
    installer: bool = True
    """Whether the installer knows of it."""
    power: str = UNKNOWN
    bmc: str = ""
    """Its address."""
    bmc_error: str = ""
    address: str = ""
    """That is reserved for it."""
    leases: Sequence[str] = ()
    console: str = ""
    """The file that has what it says."""
    stopped: bool = False
    """Whether a stop has switched it off, so that the next start switches it on."""
    member: Member | None = None
    disk_bytes: int = 0
    """That its disks occupy."""
    disk_size_bytes: int = 0


@dataclass(frozen=True)
class Storage:
    pool: str = ""
    path: str = ""
    is_there: bool = False
    used_bytes: int = 0
    """By all files of the pool."""
    promised_bytes: int = 0
    """The size of all disks."""
    free_bytes: int = 0
    """Of its file system."""
    capacity_bytes: int = 0


@dataclass(frozen=True)
class Run:
    """The run of playbooks that has the lab, or that has ended without releasing it."""

    by: str
    going: bool | None
    """None: that cannot be seen from the host."""


@dataclass(frozen=True)
class Rehearsal:
    outcome: str = NEVER
    began: str = ""
    failures: int = 0
    page: str = ""
    """Of the report, on the host."""


@dataclass(frozen=True)
class Checkpoint:
    name: str
    taken: str
    while_running: bool = False
    """Whether nodes were paused for it, and not stopped."""
    held_bytes: int = 0
    """That it takes at most, once all that was in the disks is overwritten."""


@dataclass(frozen=True)
class Installation:
    state: str = "nothing"
    """As M(nometal.ipi.cluster_info) says it."""
    outcome: str = ""
    """How it ended, or how far it is, in words."""
    stage: str = ""
    version: str = ""
    kubeconfig: str = ""
    password_file: str = ""
    console_url: str = ""
    client: str = ""
    """oc of its release."""
    bundle: str = ""
    """The newest failure bundle."""


@dataclass(frozen=True)
class Operator:
    name: str
    state: str = ""
    """Empty where it is well."""
    message: str = ""


@dataclass(frozen=True)
class Vip:
    kind: str
    address: str
    holder: str = ""
    """The node that has it."""
    answers: bool = False


@dataclass(frozen=True)
class Certificate:
    name: str
    expires: str = ""
    """Not known of one that has expired."""
    expired: bool = False


@dataclass(frozen=True)
class Cluster:
    """What its API says."""

    state: str = SILENT
    error: str = ""
    version: str = ""
    operators: int = 0
    operators_failing: Sequence[Operator] = ()
    requests_pending: int = 0
    """Requests for certificates."""
    vips: Sequence[Vip] = ()
    certificates: Sequence[Certificate] = ()


@dataclass(frozen=True)
class Observation:
    lab: str
    domain: str = ""
    time: str = ""
    registered: bool = False
    installs: bool = False
    """Whether lab_spec asks for a cluster."""
    host: Host = field(default_factory=Host)
    storage: Storage = field(default_factory=Storage)
    networks: Sequence[Network] = ()
    bmcs: Bmcs = field(default_factory=Bmcs)
    nodes: Sequence[Node] = ()
    run: Run | None = None
    rehearsal: Rehearsal = field(default_factory=Rehearsal)
    installation: Installation = field(default_factory=Installation)
    checkpoints: Sequence[Checkpoint] = ()
    half_restored: str = ""
    """The checkpoint whose restore was interrupted."""
    replacing: Sequence[str] = ()
    """Nodes of the cluster whose replacement has begun and is not complete."""
    cluster: Cluster | None = None
    """None: there is none to be asked."""
    unread: Sequence[str] = ()
    """What could not be read, and why."""

    @property
    def members(self) -> Sequence[Node]:
        """The nodes that the cluster needs."""
        return [node for node in self.nodes if node.installer]

    @property
    def off(self) -> Sequence[Node]:
        """Those of them that are. What a cluster that answers does not know yet, is switched on when it joins."""
        known = any(node.member for node in self.nodes)
        return [node for node in self.members if node.power == OFF and (node.member or not known)]


def is_on(node: Node) -> bool:
    return node.power not in (OFF, MISSING, UNKNOWN)


def power_of(libvirt_state: str) -> str:
    return ON if libvirt_state == "running" else libvirt_state


def iso(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%dT%H:%M:%SZ}"


def as_json(value: Any) -> Any:
    """Of what asdict gives: JSON has no tuples."""
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    return [as_json(item) for item in value] if isinstance(value, (list, tuple)) else value
