# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificate requests of kubelets: which of those that are pending are the lab's, and are approved. Pure.

The cluster approves a request by itself only for a machine that is new. A node whose certificate has expired while it
was off waits for an administrator, whose place this takes: for the nodes of the lab, and nothing beyond what a kubelet
of that node asks for.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError

try:
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.x509.oid import NameOID
except ImportError:
    x509 = None  # type: ignore[assignment]  # mypy takes the name for the module alone

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import CertificateRequest
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.nodes import Node

USER_OF_NODE = "system:node:"
GROUP_OF_NODES = "system:nodes"
AUTHENTICATED = "system:authenticated"
BOOTSTRAPPER = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
GROUPS_OF_BOOTSTRAPPER = {
    "system:serviceaccounts",
    "system:serviceaccounts:openshift-machine-config-operator",
    AUTHENTICATED,
}
CLIENT, SERVING = "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"
MAY_ENCIPHER = "key encipherment"
"""Of RSA keys, in older releases."""
BEGIN = "-----BEGIN CERTIFICATE REQUEST-----"


@dataclass(frozen=True)
class Content:
    """What a request says in itself."""

    common_name: str = ""
    organizations: tuple[str, ...] = ()
    dns: frozenset[str] = frozenset()
    ips: frozenset[str] = frozenset()
    others: bool = False
    """Whether there is anything else in it: further parts of the subject, other names, other extensions."""
    error: str = ""


@dataclass(frozen=True)
class Asked:
    """A request beside the node of the lab for which it says to be; None: no such node."""

    request: CertificateRequest
    content: Content
    node: Node | None

    @property
    def user(self) -> str:
        return self.content.common_name

    @property
    def names(self) -> Collection[str]:
        return names_of(self.node) if self.node else ()

    @property
    def ips(self) -> Collection[str]:
        return {normal(address) for address in self.node.ips} if self.node else ()


@dataclass(frozen=True)
class Rule:
    holds: Callable[[Asked], bool]
    reason: str
    """Why a request is left for which it does not hold."""
    signer: str = ""
    """Empty: whatever the signer."""


@dataclass(frozen=True)
class Judgement:
    request: str
    """Its name."""
    subject: str
    """For whom it says to be."""
    signer: str
    reason: str = ""
    """Why it is left; empty: it is approved."""
    node: Node | None = None
    """Of the lab, for which it is."""
    username: str = ""
    """Who has made it."""

    @property
    def is_of_a_kubelet(self) -> bool:
        return self.signer in (CLIENT, SERVING)

    @property
    def is_first(self) -> bool:
        """Whether it asks for the certificate with which a kubelet speaks to the API."""
        return self.signer == CLIENT

    @property
    def is_renewal(self) -> bool:
        """By a kubelet that has such a certificate: the cluster approves it."""
        return self.is_first and self.username == self.subject

    @property
    def is_approved(self) -> bool:
        return not self.reason

    def __str__(self) -> str:
        return f"{self.request} ({self.subject or 'no name'}, {self.signer.rpartition('/')[2]}): {self.reason}"


def _usages(wanted: str) -> Callable[[Asked], bool]:
    return lambda asked: {*asked.request.usages} - {MAY_ENCIPHER} == {"digital signature", wanted}


RULES = (
    Rule(lambda asked: asked.request.signer in (CLIENT, SERVING), "its signer is not one of kubelets"),
    Rule(lambda asked: not asked.content.error, "it is damaged"),
    Rule(lambda asked: asked.node is not None, "it is not for a node of the lab"),
    Rule(lambda asked: asked.content.organizations == (GROUP_OF_NODES,), f"its organization is not {GROUP_OF_NODES}"),
    Rule(lambda asked: not asked.content.others, "it asks for more than the certificate of a kubelet"),
    Rule(lambda asked: asked.request.username == BOOTSTRAPPER, "it was not made by the node bootstrapper", CLIENT),
    Rule(lambda asked: {*asked.request.groups} == GROUPS_OF_BOOTSTRAPPER, "it was made by one of other groups", CLIENT),
    Rule(_usages("client auth"), "it is for other usages than those of a client", CLIENT),
    Rule(lambda asked: not asked.content.dns | asked.content.ips, "a client's has no names or addresses", CLIENT),
    Rule(lambda asked: asked.request.username == asked.user, "it was not made by the node itself", SERVING),
    Rule(
        lambda asked: {*asked.request.groups} >= {GROUP_OF_NODES, AUTHENTICATED},
        "it was made by one of other groups",
        SERVING,
    ),
    Rule(_usages("server auth"), "it is for other usages than those of a server", SERVING),
    Rule(lambda asked: bool(asked.content.dns | asked.content.ips), "it has no name and no address", SERVING),
    Rule(lambda asked: asked.content.dns <= {*asked.names}, "it has a name that is not the node's", SERVING),
    Rule(lambda asked: asked.content.ips <= {*asked.ips}, "it has an address that is not the node's", SERVING),
)
"""The first that does not hold is the reason. All hold of a request that is approved."""


@dataclass(frozen=True)
class Requests:
    """Those of kubelets that are pending and that the cluster leaves to an administrator."""

    judgements: Collection[Judgement] = field(default_factory=list)

    @property
    def approved(self) -> list[Judgement]:
        return [each for each in self.judgements if each.is_approved]

    @property
    def left(self) -> list[Judgement]:
        return [each for each in self.judgements if not each.is_approved]


def judged(requests: Iterable[CertificateRequest], nodes: Iterable[Node]) -> Requests:
    by_name = {name: node for node in nodes if node.is_in_cluster for name in names_of(node)}
    found = [judge(request, by_name) for request in requests if request.pending]
    return Requests([each for each in found if each.is_of_a_kubelet and not each.is_renewal])


def judge(request: CertificateRequest, nodes: Mapping[str, Node]) -> Judgement:
    """Nodes: those of the lab, by each name that they may have in the cluster."""
    content = read(request.request)
    name = content.common_name[len(USER_OF_NODE) :] if content.common_name.startswith(USER_OF_NODE) else ""
    asked = Asked(request, content, nodes.get(name))
    broken = (rule for rule in RULES if rule.signer in ("", request.signer) and not rule.holds(asked))
    reason = next((rule.reason for rule in broken), "")
    return Judgement(request.name, content.common_name, request.signer, reason, asked.node, request.username)


def names_of(node: Node) -> Collection[str]:
    return {name for name in (node.name, node.fqdn) if name}


def normal(address: str) -> str:
    return str(ipaddress.ip_address(address))


def read(pem: str) -> Content:
    if x509 is None:
        raise NotThereYetError("Python's cryptography is missing: role nometal.ipi.host_prep installs it.")
    if pem.count(BEGIN) != 1:
        return Content(error="not one request")
    try:
        request = x509.load_pem_x509_csr(pem.encode())
        if not request.is_signature_valid:
            return Content(error="not signed with its own key")
        return _content(request)
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.DuplicateExtension) as error:
        return Content(error=str(error))


def _content(request: x509.CertificateSigningRequest) -> Content:
    def of_subject(oid: x509.ObjectIdentifier) -> tuple[str, ...]:
        return tuple(str(part.value) for part in request.subject.get_attributes_for_oid(oid))

    common_names, organizations = of_subject(NameOID.COMMON_NAME), of_subject(NameOID.ORGANIZATION_NAME)
    names = [
        name
        for each in request.extensions
        if isinstance(each.value, x509.SubjectAlternativeName)
        for name in each.value
    ]
    dns = frozenset(str(name.value) for name in names if isinstance(name, x509.DNSName))
    ips = frozenset(str(name.value) for name in names if isinstance(name, x509.IPAddress))
    return Content(
        common_name=common_names[0] if len(common_names) == 1 else "",
        organizations=organizations,
        dns=dns,
        ips=ips,
        others=len([*request.subject]) != len(common_names) + len(organizations)
        or len(names) != len(dns) + len(ips)
        or any(not isinstance(each.value, x509.SubjectAlternativeName) for each in request.extensions),
    )
