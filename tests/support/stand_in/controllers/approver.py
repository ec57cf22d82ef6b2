"""cluster-machine-approver, and what signs the requests that somebody has approved."""

from __future__ import annotations

import base64

from support.stand_in import pki
from support.stand_in.controllers import certificates, objects
from support.stand_in.controllers.certificates import (
    BOOTSTRAPPER,
    BOOTSTRAPPERS,
    CLIENT,
    CLIENT_USAGES,
    DAY,
    HOUR,
    KUBELETS,
    ORGANIZATION,
    PREFIX,
    SERVING,
    SERVING_USAGES,
    Asked,
)
from support.stand_in.controllers.cluster import Cluster
from support.stand_in.controllers.objects import CONFIG_MAPS, MACHINES, NAMESPACE, NODES, REQUESTS, Object
from support.stand_in.kubernetes.kinds import APPROVAL

APPROVER, SIGNER = "machine-approver", "kube-controller-manager"
CONFIG, CONFIG_NAMESPACE = "machine-approver-config", "openshift-cluster-machine-approver"
MACHINE_SEEN_BEFORE, MACHINE_SEEN_AFTER = 10, 2 * HOUR
MOST_PENDING_ABOVE = 100
ENCIPHERMENT = "key encipherment"
FIRST_SECONDS, SECONDS = DAY, 30 * DAY


def is_pending(request: Object) -> bool:
    return not objects.status(request).get("conditions")


class ApproverController:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def reconcile(self) -> None:
        requests = self._cluster.store.list(REQUESTS)
        pending = [one for one in requests if is_pending(one)]
        machines, nodes = self._cluster.store.list(MACHINES, NAMESPACE), self._cluster.store.list(NODES)
        now = self._cluster.clock()
        recent = [one for one in pending if now - _created(one) < HOUR]
        if len(recent) > max(len(machines), len(nodes)) + MOST_PENDING_ABOVE:
            return
        for one in pending:
            asked = certificates.asked(one)
            if asked and _is_own_renewal(one, asked):
                self._approve(one, "AutoApproved", "Auto approving self kubelet client certificate", SIGNER)
            elif asked and (self._is_new_node(one, asked, machines, nodes) or _is_serving(one, asked, machines)):
                self._approve(one, "NodeCSRApprove", "This CSR was approved by the Node CSR Approver", APPROVER)

    def _is_new_node(self, request: Object, asked: Asked, machines: list[Object], nodes: list[Object]) -> bool:
        spec = request["spec"]
        name = asked.common_name.removeprefix(PREFIX)
        if spec["signerName"] != CLIENT or spec.get("username") != BOOTSTRAPPER or self._is_disabled():
            return False
        fits = (
            set(spec.get("groups") or ()) == set(BOOTSTRAPPERS)
            and asked.common_name == f"{PREFIX}{name}"
            and asked.organizations == (ORGANIZATION,)
            and not (asked.dns or asked.addresses)
            and set(spec["usages"]) - {ENCIPHERMENT} == set(CLIENT_USAGES)
        )
        if not fits or any(objects.name(node) == name for node in nodes):
            return False
        for machine in machines:
            if name in _addresses(machine, "InternalDNS") and not objects.status(machine).get("nodeRef"):
                age = _created(request) - _created(machine)
                return -MACHINE_SEEN_BEFORE <= age <= MACHINE_SEEN_AFTER
        return False

    def _is_disabled(self) -> bool:
        config = self._cluster.find(CONFIG_MAPS, CONFIG, CONFIG_NAMESPACE)
        text = "".join((config or {}).get("data", {}).get("config.yaml", "").split())
        return "nodeClientCert:disabled:true" in text

    def _approve(self, request: Object, reason: str, message: str, manager: str) -> None:
        def approve(item: Object) -> None:
            objects.with_condition(item, self._cluster.clock(), "Approved", "True", reason, message)

        self._cluster.change(REQUESTS, request, approve, manager, subresource=APPROVAL)


class SignerController:
    """The first certificates of a kubelet are short."""

    def __init__(self, cluster: Cluster, ca: pki.Pair) -> None:
        self._cluster = cluster
        self._ca = ca

    def reconcile(self) -> None:
        requests = self._cluster.store.list(REQUESTS)
        served = {one["spec"].get("username") for one in requests if _is_of(one, SERVING, issued=True)}
        for one in requests:
            approved = objects.condition(one, "Approved") and not objects.condition(one, "Denied")
            if approved and not objects.status(one).get("certificate") and certificates.asked(one):
                user = one["spec"].get("username")
                first = user == BOOTSTRAPPER or (_is_of(one, SERVING) and user not in served)
                self._sign(one, FIRST_SECONDS if first else SECONDS)

    def _sign(self, request: Object, seconds: float) -> None:
        made = certificates.sign(self._ca, request, self._cluster.clock(), seconds)

        def give(item: Object) -> None:
            item.setdefault("status", {})["certificate"] = base64.b64encode(made.encode()).decode()

        self._cluster.change(REQUESTS, request, give, SIGNER, subresource="status")


def _is_of(request: Object, signer: str, *, issued: bool = False) -> bool:
    return request["spec"]["signerName"] == signer and bool(objects.status(request).get("certificate") or not issued)


def _is_own_renewal(request: Object, asked: Asked) -> bool:
    """Which kube-controller-manager approves by itself."""
    spec = request["spec"]
    own = spec.get("username") == asked.common_name and asked.common_name.startswith(PREFIX)
    return bool(own and spec["signerName"] == CLIENT and not (asked.dns or asked.addresses))


def _is_serving(request: Object, asked: Asked, machines: list[Object]) -> bool:
    spec = request["spec"]
    name = str(spec.get("username", "")).removeprefix(PREFIX)
    fits = (
        spec["signerName"] == SERVING
        and spec.get("username") == f"{PREFIX}{name}" == asked.common_name
        and set(KUBELETS) <= set(spec.get("groups") or ())
        and set(spec["usages"]) - {ENCIPHERMENT} == set(SERVING_USAGES)
    )
    own = [one for one in machines if (objects.status(one).get("nodeRef") or {}).get("name") == name]
    if not fits or not own:
        return False
    names = _addresses(own[0], "InternalDNS") | _addresses(own[0], "ExternalDNS") | _addresses(own[0], "Hostname")
    addresses = _addresses(own[0], "InternalIP") | _addresses(own[0], "ExternalIP")
    return set(asked.dns) <= names and set(asked.addresses) <= addresses


def _addresses(machine: Object, kind: str) -> set[str]:
    every = objects.status(machine).get("addresses") or ()
    return {one["address"] for one in every if one["type"] == kind}


def _created(item: Object) -> float:
    return objects.seconds(item["metadata"]["creationTimestamp"])
