# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a stop and a start ask of the cluster's API, and change by it."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api import objects, signers
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import MACHINE_API
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.errors import ApiError
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power import requests
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.requests import names_of, normal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import Client
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.nodes import Node
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.requests import Requests

MARK = "nometal.ipi/stopped"
"""Annotation of nodes that a stop has cordoned. Set together with that, so that no moment is without it."""
PAUSED_BY_STOP = "nometal.ipi/stopped"
"""The value of metal3's own annotation on hosts that a stop has paused."""
LEASES, NAMESPACE_OF_LEASES = "leases.coordination.k8s.io", "kube-node-lease"
ALL_NODES = "/api/v1/nodes"
UNSCHEDULABLE = "f:unschedulable"
WANTED = {"Available": "True", "Degraded": "False", "Progressing": "False"}
"""Of an operator that is settled."""


@dataclass(frozen=True)
class Member:
    """A node of the lab, as the cluster has it."""

    node: Node
    name: str
    ready: bool = True
    unschedulable: bool = False
    marked: bool = False
    """Whether a stop has cordoned it."""
    created: float = 0.0

    def __str__(self) -> str:
        return self.node.name


@dataclass(frozen=True)
class Operator:
    name: str
    wrong: tuple[str, ...] = ()
    """What it is that it should not be."""
    message: str = ""

    @property
    def is_healthy(self) -> bool:
        """It may be busy."""
        return not {"Available", "Degraded"} & {*self.wrong}

    def __str__(self) -> str:
        said = ", ".join("not available" if kind == "Available" else kind.lower() for kind in self.wrong)
        return f"{self.name} ({said})"


@dataclass
class Cluster:
    client: Client
    nodes: Sequence[Node]
    """Of the lab."""

    def members(self) -> list[Member]:
        """In the lab's order."""
        items = self.client.listed(ALL_NODES)
        found = [member for item in items if (member := _member(item, self.nodes))]
        return sorted(found, key=lambda member: list(self.nodes).index(member.node))

    def heartbeats(self) -> dict[str, str]:
        """When each node's kubelet was heard last, by the node's name in the cluster; text that is only compared."""
        items = self.client.get(LEASES, namespace=NAMESPACE_OF_LEASES)
        return {item["metadata"]["name"]: str((item.get("spec") or {}).get("renewTime")) for item in items}

    def requests(self) -> Requests:
        items = map(objects.CertificateRequest.from_dict, self.client.get(objects.REQUESTS))
        return requests.judged(items, self.nodes)

    def approve(self, names: Sequence[str]) -> None:
        self.client.approve(names)

    def cordon(self, member: Member) -> None:
        marked = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._change(member, marked, unschedulable=True)

    def uncordon(self, member: Member) -> None:
        self._change(member, None, unschedulable=None)

    def drain(self, member: Member, seconds: int) -> list[str]:
        """What was still there in the end, and why."""
        try:
            return self.client.drain(member.name, seconds)
        except ApiError as error:
            return [str(error)]

    def hosts(self) -> list[objects.BareMetalHost]:
        return [objects.BareMetalHost.from_dict(item) for item in self._listed(objects.HOSTS, MACHINE_API)]

    def pause(self, host: str) -> None:
        """metal3 leaves it alone: otherwise it would switch on again what is switched off by its BMC."""
        self.client.annotate(objects.HOSTS, host, MACHINE_API, {objects.PAUSED: PAUSED_BY_STOP})

    def unpause(self, host: str) -> None:
        self.client.annotate(objects.HOSTS, host, MACHINE_API, {objects.PAUSED: None})

    def operators(self) -> list[Operator]:
        return [_operator(item) for item in self._listed(objects.OPERATORS)]

    def expiries(self) -> dict[str, float]:
        """When the certificates end that sign those of kubelets, in seconds since the epoch; of those that say so."""
        found = {name: self._expiry(name) for name in signers.NAMESPACES}
        return {name: when for name, when in found.items() if when}

    def _expiry(self, signer: str) -> float:
        with suppress(ApiError):
            return objects.seconds_of(signers.not_after(self.client, signer))
        return 0.0

    def _change(self, member: Member, mark: str | None, *, unschedulable: bool | None) -> None:
        change = {"metadata": {"annotations": {MARK: mark}}, "spec": {"unschedulable": unschedulable}}
        self.client.patch(objects.NODES, member.name, "", change)

    def _listed(self, kind: str, namespace: str = "") -> list[Mapping[str, Any]]:
        """Of a kind that the cluster need not have."""
        try:
            return self.client.get(kind, namespace=namespace)
        except ApiError as error:
            if error.reason != "not found":
                raise
            return []


def _member(item: Mapping[str, Any], nodes: Iterable[Node]) -> Member | None:
    seen, metadata = objects.Node.from_dict(item), item.get("metadata") or {}
    node = next(_those_of(seen, nodes), None)
    if node is None:
        return None
    return Member(
        node=node,
        name=seen.name,
        ready=seen.is_ready,
        unschedulable=seen.unschedulable,
        marked=seen.unschedulable and MARK in (metadata.get("annotations") or {}) and not _is_of_others(metadata),
        created=objects.seconds_of(str(metadata.get("creationTimestamp") or "")),
    )


def _is_of_others(metadata: Mapping[str, Any]) -> bool:
    """Whether others have cordoned the node since a stop did: they uncordon it without removing our annotation.

    A stop sets both at once, so the same manager has both until then.
    """
    managed = [entry.get("fieldsV1") or {} for entry in metadata.get("managedFields") or []]
    cordon = [fields for fields in managed if UNSCHEDULABLE in fields.get("f:spec", {})]
    marks = [fields.get("f:metadata", {}).get("f:annotations", {}) for fields in cordon]
    return bool(cordon) and not any(f"f:{MARK}" in mark for mark in marks)


def _those_of(seen: objects.Node, nodes: Iterable[Node]) -> Iterator[Node]:
    addresses = {*map(normal, seen.addresses)}
    for node in nodes:
        if seen.name in names_of(node) or addresses & {*map(normal, node.ips)}:
            yield node


def _operator(item: Mapping[str, Any]) -> Operator:
    seen = objects.ClusterOperator.from_dict(item)
    wrong = tuple(kind for kind, wanted in WANTED.items() if seen.states.get(kind, wanted) != wanted)
    return Operator(seen.name, wrong, next((text for kind, text in seen.messages.items() if kind in wrong), ""))
