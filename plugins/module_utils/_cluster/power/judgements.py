# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in the way of a stop, and what will have expired when the cluster comes back. Pure."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.signers import OF_KUBELETS, TO_KUBELETS
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import WARNING, Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.cluster import Member, Operator

HOUR, DAY = 3600.0, 86400.0
BOOTSTRAP_HOURS = 25 * HOUR
"""A kubelet's first certificate is for 24 hours. Its next one, for up to 30 days, it asks for before that has ended."""


def blockers(members: Sequence[Member], operators: Iterable[Operator]) -> Iterator[Finding]:
    """What a stop would make worse."""
    silent = [str(member) for member in members if member.node.is_control_plane and not member.ready]
    if silent:
        yield Finding(
            "stop.control-plane-not-ready",
            "control plane",
            f"{', '.join(silent)} must be ready, or etcd may not come back with what it holds now.",
            "`oc get nodes` shows why.",
            {"nodes": silent},
        )
    for operator in operators:
        if operator.name == "etcd" and not operator.is_healthy:
            yield Finding(
                "stop.etcd-not-healthy",
                "etcd",
                f"The operator {operator}{f': {operator.message}' if operator.message else ''}",
                "`oc get co etcd -o yaml` shows more.",
                {"wrong": list(operator.wrong)},
            )


def warnings(members: Iterable[Member], expiries: Mapping[str, float], days: float, now: float) -> Iterator[Finding]:
    """Expiries: by signer, in seconds since the epoch."""
    back = now + days * DAY
    young = [str(member) for member in members if member.created and now - member.created < BOOTSTRAP_HOURS]
    if young and days > 0:
        yield _warning(
            "stop.first-certificates",
            "kubelets",
            f"{', '.join(young)} joined less than 25 hours ago, with certificates for 24 hours.",
            "Let the cluster run that long before a stop of a day or more; or let `make start` approve new ones.",
            nodes=young,
        )
    if (expires := expiries.get(OF_KUBELETS)) and expires < back:
        yield _warning(
            "stop.kubelet-certificates",
            "kubelets",
            f"Their certificates expire by {_date(expires)}, before the cluster is back in {days:g} days.",
            "`make start` approves new ones.",
            expires=expires,
        )
    if (expires := expiries.get(TO_KUBELETS)) and expires < back:
        yield _warning(
            "stop.signer",
            TO_KUBELETS,
            f"It expires on {_date(expires)}, before the cluster is back in {days:g} days.",
            "The cluster may not recover by itself then: start it before that day.",
            expires=expires,
        )


def _warning(code: str, subject: str, message: str, advice: str, **facts: object) -> Finding:
    return Finding(code, subject, message, advice, facts, WARNING)


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))
