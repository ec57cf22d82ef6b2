# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""etcd of the cluster, as its members and its operator say."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.errors import ApiError
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import SECRETS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import Client

NAMESPACE = "openshift-etcd"
ETCD = "etcd"
OPERATOR, KIND, NAME = "etcds.operator.openshift.io", "Etcd", "cluster"
PODS, LABEL = "pods", "k8s-app"
CONTAINER = PROGRAM = "etcdctl"
UNGUARDED = "useUnsupportedUnsafeNonHANonProductionUnstableEtcd"
"""The override by which the operator rolls out although etcd bears no loss. All releases document it for this."""
UNGUARDED_BY = "nometal.ipi/quorum-guard-off"
"""Annotation of the operator's configuration: the lab that has set the override."""
PREFIXES = ("etcd-peer-", "etcd-serving-metrics-", "etcd-serving-")
"""Of the Secrets of a node, the longer ones first."""
ROLLOUT, DONE = "NodeInstallerProgressing", "AllNodesAtLatestRevision"


@dataclass(frozen=True)
class Member:
    identity: int
    name: str
    """Of its Node; empty while it has not started."""
    healthy: bool = True


@dataclass(frozen=True)
class Etcd:
    members: Sequence[Member] = ()
    secrets: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Names of the Secrets of single nodes, by the name of the Node."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    unguarded_by: str = ""
    rollout: str = ""
    """What the operator says while its newest revision is not everywhere."""
    pod: str = ""
    """By which the members are asked."""

    @property
    def is_guarded(self) -> bool:
        return not self.overrides.get(UNGUARDED)

    def member_of(self, host: str, node: str) -> Member | None:
        return next((member for member in self.members if is_of(host, node, member.name)), None)

    def has_quorum_without(self, leaving: Member | None) -> bool:
        """Of the members as they are now: the one that leaves counts until it is removed."""
        others = [member for member in self.members if member is not leaving and member.healthy]
        return len(others) > len(self.members) // 2


def is_of(host: str, node: str, name: str) -> bool:
    """Whether a Node of this name is that of a host; its own Machine may be gone, and its name be a whole one."""
    return bool(name) and (name == node or name.partition(".")[0] == host)


def read(client: Client, without: Collection[str], *, with_secrets: bool) -> Etcd:
    """By a pod that is not on the nodes of these hosts."""
    items = client.get(f"{OPERATOR},{PODS}", namespace=NAMESPACE)
    operator = next((item for item in items if item.get("kind") == KIND), {})
    spec, metadata = operator.get("spec") or {}, operator.get("metadata") or {}
    pod = _pod([item for item in items if item.get("kind") != KIND], without)
    return Etcd(
        members=_members(client, pod),
        secrets=_secrets(client) if with_secrets else {},
        overrides=spec.get("unsupportedConfigOverrides") or {},
        unguarded_by=(metadata.get("annotations") or {}).get(UNGUARDED_BY, ""),
        rollout=_rollout(operator),
        pod=pod,
    )


def remove(client: Client, pod: str, identity: int) -> None:
    _execute(client, pod, "member", "remove", f"{identity:x}")


def _pod(pods: Sequence[Mapping[str, Any]], without: Collection[str]) -> str:
    for pod in pods:
        metadata, node = pod["metadata"], str((pod.get("spec") or {}).get("nodeName") or "")
        conditions = (pod.get("status") or {}).get("conditions") or []
        is_ready = any((each.get("type"), each.get("status")) == ("Ready", "True") for each in conditions)
        is_member = (metadata.get("labels") or {}).get(LABEL) == ETCD
        if is_ready and is_member and not any(is_of(host, host, node) for host in without):
            return str(metadata["name"])
    raise ApiError("unreachable", f"etcd: none of its pods is ready besides those of {', '.join(without)}")


def _members(client: Client, pod: str) -> list[Member]:
    listed = _asked(client, pod, "member", "list")
    health = _asked(client, pod, "endpoint", "health", "--cluster", may_fail=True)  # it fails unless all are healthy
    try:
        healthy = {each["endpoint"] for each in health if each["health"]}
        return [
            Member(int(each["ID"]), each.get("name", ""), bool(healthy & {*(each.get("clientURLs") or [])}))
            for each in listed["members"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise ApiError("other", f"etcd: {PROGRAM} in {pod} does not answer as expected.") from error


def _asked(client: Client, pod: str, *words: str, may_fail: bool = False) -> Any:
    said = _execute(client, pod, *words, "--write-out=json", may_fail=may_fail)
    try:
        return json.loads(said)
    except ValueError as error:
        raise ApiError("unreachable", f"etcd: {PROGRAM} in {pod} does not answer with JSON.") from error


def _execute(client: Client, pod: str, *words: str, may_fail: bool = False) -> str:
    """While etcd elects a leader, or its pods start again, it does not answer."""
    try:
        return client.execute(pod, NAMESPACE, CONTAINER, PROGRAM, *words, may_fail=may_fail)
    except ApiError as error:
        if error.reason not in ("other", "not found"):
            raise
        raise ApiError("unreachable", f"etcd, asked in {pod}: {error}") from error


def _secrets(client: Client) -> dict[str, list[str]]:
    """Their names alone: what is in them are keys."""
    said = client.run("get", SECRETS, f"--namespace={NAMESPACE}", "--output=name")
    names: dict[str, list[str]] = {}
    for name in (line.partition("/")[2] for line in said.split()):
        prefix = next((each for each in PREFIXES if name.startswith(each)), None)
        if prefix:
            names.setdefault(name[len(prefix) :], []).append(name)
    return names


def _rollout(operator: Mapping[str, Any]) -> str:
    conditions = (operator.get("status") or {}).get("conditions") or []
    found: Mapping[str, Any] = next((each for each in conditions if each.get("type") == ROLLOUT), {})
    is_done = (found.get("status"), found.get("reason")) == ("False", DONE)
    return "" if is_done else str(found.get("message") or "its operator says nothing of revisions")
