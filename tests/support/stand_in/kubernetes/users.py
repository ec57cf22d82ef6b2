"""Who asks, by the client certificate, and what they may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ADMINISTRATORS, NODES, AUTHENTICATED = "system:masters", "system:nodes", "system:authenticated"
BOOTSTRAPPERS = "system:serviceaccounts:openshift-machine-config-operator"
REQUESTS = "certificatesigningrequests"
READ = ("get", "list", "watch")


@dataclass(frozen=True)
class User:
    name: str
    groups: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, certificate: Mapping[str, Any] | None) -> User | None:
        """As ssl gives the peer's certificate."""
        if not certificate:
            return None
        names = [pair for part in certificate["subject"] for pair in part]
        common = next((value for key, value in names if key == "commonName"), "")
        groups = [value for key, value in names if key == "organizationName"]
        return cls(common, (*groups, AUTHENTICATED))


@dataclass(frozen=True)
class Attributes:
    """What is to be done to what."""

    verb: str
    group: str
    resource: str
    """With its subresource behind a slash."""
    namespace: str = ""
    name: str = ""


def may(user: User, what: Attributes) -> bool:
    if ADMINISTRATORS in user.groups:
        return True
    if what.resource.startswith("selfsubject"):
        return True
    if NODES in user.groups:
        return _node_may(user.name.rpartition(":")[2], what)
    return BOOTSTRAPPERS in user.groups and _may_request(what)


def _may_request(what: Attributes) -> bool:
    return what.resource == REQUESTS and what.verb in ("create", *READ)


def _node_may(node: str, what: Attributes) -> bool:
    if what.resource in ("nodes", "nodes/status"):
        return what.verb in ("create", *READ) or (what.verb in ("update", "patch") and what.name == node)
    if what.resource == "leases":
        return what.namespace == "kube-node-lease" and what.name in ("", node)
    if what.resource in ("pods", "services", "daemonsets"):
        return what.verb in READ
    if what.resource in ("pods/status", "pods/eviction"):
        return what.verb in ("create", "update", "patch")
    if what.resource == "events":
        return what.verb in ("create", "update", "patch")
    return _may_request(what)


def refusal(user: User, what: Attributes) -> str:
    where = f'in the namespace "{what.namespace}"' if what.namespace else "at the cluster scope"
    resource, _, subresource = what.resource.partition("/")
    full = f"{resource}.{what.group}" if what.group else resource
    named = f'{full} "{what.name}" is' if what.name else f"{full} is"
    shown = f"{resource}/{subresource}" if subresource else resource
    did = f'User "{user.name}" cannot {what.verb} resource "{shown}" in API group "{what.group}"'
    return f"{named} forbidden: {did} {where}"
