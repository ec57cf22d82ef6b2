# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the cluster has of hosts and nodes, as it says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import MACHINE_API
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import (
    HOSTS,
    MACHINE_SETS,
    MACHINES,
    NODES,
    SECRETS,
    BareMetalHost,
    Machine,
    MachineSet,
    Node,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.manifests import CA_KEY, CA_NAME, OF_LAB

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import Client
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.etcd import Etcd

CONFIG_MAPS = "configmaps"
KINDS = {
    "BareMetalHost": HOSTS,
    "Machine": MACHINES,
    "MachineSet": MACHINE_SETS,
    "Secret": SECRETS,
    "ConfigMap": CONFIG_MAPS,
    "Node": NODES,
}


@dataclass(frozen=True)
class Seen:
    hosts: Mapping[str, BareMetalHost] = field(default_factory=dict)
    specs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    """Of the hosts."""
    machines: Mapping[str, Machine] = field(default_factory=dict)
    machine_sets: Sequence[MachineSet] = ()
    nodes: Mapping[str, Node] = field(default_factory=dict)
    logins: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    """What is in Secrets, by their names."""
    labelled: Sequence[str] = ()
    """Secrets that were made for hosts of a lab."""
    certificate: str = ""
    """Of the CA by which the cluster verifies BMCs."""
    etcd: Etcd | None = None
    """Where a node of the control plane is replaced."""
    off: Collection[str] = ()
    """Hosts whose BMCs say so, or know no such VM."""

    def machine_of(self, host: str) -> Machine | None:
        """What has the host, or says so of itself."""
        consumer = self.hosts[host].consumer if host in self.hosts else ""
        if consumer in self.machines:
            return self.machines[consumer]
        return next((machine for machine in self.machines.values() if machine.host == host), None)

    def node_of(self, host: str) -> Node | None:
        machine = self.machine_of(host)
        return self.nodes.get(machine.node) if machine else None


def read(client: Client) -> Seen:
    """All by one command, each of which costs as much as its requests."""
    items = client.get(",".join(KINDS.values()), namespace=MACHINE_API)
    by_kind = {kind: {item["metadata"]["name"]: item for item in items if item.get("kind") == kind} for kind in KINDS}
    hosts, secrets = by_kind["BareMetalHost"], by_kind["Secret"]
    certificate = by_kind["ConfigMap"].get(CA_NAME, {})
    return Seen(
        hosts={name: BareMetalHost.from_dict(item) for name, item in hosts.items()},
        specs={name: item.get("spec") or {} for name, item in hosts.items()},
        machines={name: Machine.from_dict(item) for name, item in by_kind["Machine"].items()},
        machine_sets=[MachineSet.from_dict(item) for item in by_kind["MachineSet"].values()],
        nodes={name: Node.from_dict(item) for name, item in by_kind["Node"].items()},
        logins={name: item.get("data") or {} for name, item in secrets.items()},
        labelled=sorted(name for name, item in secrets.items() if OF_LAB in (item["metadata"].get("labels") or {})),
        certificate=(certificate.get("data") or {}).get(CA_KEY, ""),
    )
