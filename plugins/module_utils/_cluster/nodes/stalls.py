# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a host of the cluster does not go on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.errors import ApiError
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import REQUESTS, CertificateRequest
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import evidence as diagnosis_evidence
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import of_nodes
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.case import Case
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.etcd import ETCD
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.states import PROVISIONED
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import Host, Progress
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.stages import Stage
from ansible_collections.nometal.ipi.plugins.module_utils._core.explanations import Explanation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import Client
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.installation import Installation
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.seen import Seen
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.states import Waiting
    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding

AGAIN = "Run this again to go on."
EXPLANATIONS = {
    "nodes.slow": Explanation(
        "does not go on: {state}", "`oc describe baremetalhost -n openshift-machine-api` says more. " + AGAIN
    ),
    "nodes.etcd": Explanation(
        "does not go on: {state}",
        "`oc describe etcd cluster` says why. If fewer pods run in openshift-etcd than the control plane has nodes, "
        "OpenShift documents that another spec.forceRedeploymentReason of etcd/cluster has its operator begin anew. "
        + AGAIN,
    ),
    "nodes.requests": Explanation(
        "is installed, but its Node does not come: certificate requests are pending ({requests})",
        "The cluster approves those of new Machines by itself for two hours. See `oc get csr`, and approve what is "
        "the lab's by `oc adm certificate approve`. " + AGAIN,
    ),
    "nodes.machine": Explanation("{error}", "See its Machine: `oc get machines -n openshift-machine-api`. " + AGAIN),
}
ADVICE = {
    "metal.password": f"playbooks/bmc.yml and then this playbook give BMC and cluster the same password. {AGAIN}",
    "metal.certificate": f"The cluster must have the lab's own CA: playbooks/bmc.yml repairs it. {AGAIN}",
}
"""Where the installation has another."""


def findings(installation: Installation, client: Client, stalled: Mapping[str, Waiting], seen: Seen) -> list[Finding]:
    evidence = replace(diagnosis_evidence.gather(installation), metal_hosts=list(seen.hosts.values()))
    hosts = {name: Host(seen.hosts[name].state, 0.0) for name in stalled if name in seen.hosts}
    case = Case(Progress(stage=Stage.INITIALIZE, hosts=hosts), evidence, frozenset(stalled), late=True)
    known = [each for each in (*of_nodes.metal(case), *of_nodes.machines(case)) if each.subject in stalled]
    found = [replace(each, advice=ADVICE.get(each.code, each.advice)) for each in known]
    explained = {finding.subject for finding in found}
    rest = [waiting for name, waiting in stalled.items() if name not in explained]
    return [*found, *_others(client, rest, seen)]


def _others(client: Client, stalled: Sequence[Waiting], seen: Seen) -> Iterator[Finding]:
    for waiting in stalled:
        host = seen.hosts.get(waiting.who)
        requests = pending(client) if host and host.state in PROVISIONED and not seen.node_of(waiting.who) else []
        if waiting.who == ETCD:
            yield _found("nodes.etcd", waiting.who, state=waiting.state)
        elif requests:
            yield _found("nodes.requests", waiting.who, requests=requests)
        elif waiting.error:
            yield _found("nodes.machine", waiting.who, error=waiting.error)
        else:
            yield _found("nodes.slow", waiting.who, state=waiting.state)


def pending(client: Client) -> list[str]:
    try:
        return [request.name for request in map(CertificateRequest.from_dict, client.get(REQUESTS)) if request.pending]
    except ApiError:
        return []


def _found(code: str, subject: str, **facts: object) -> Finding:
    return EXPLANATIONS[code].of(code, subject, facts)
