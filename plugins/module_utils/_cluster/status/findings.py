# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong or noteworthy with a lab, from what was observed of it. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import causes
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import outcome
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.observation import (
    ACTIVE,
    FAILED,
    MISSING,
    NOT_ASKED,
    OF_SIGNER,
    OFF,
    ON,
    SILENT,
    UNKNOWN,
    is_on,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.state import State
from ansible_collections.nometal.ipi.plugins.module_utils._core.explanations import Explanation
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import WARNING
from ansible_collections.nometal.ipi.plugins.module_utils._core.sizes import GIB, gib

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.observation import (
        Certificate,
        Observation,
    )
    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding

LEAST_FREE_BYTES = 10 * GIB
SOON = timedelta(days=30)
DATE = len("2026-11-20")
RENEWED = "A cluster that runs renews it by itself."
SIGNER_RENEWED = "A cluster that runs renews it by itself, but not one of OpenShift 4.12."
WORDS = {
    "run.going": Explanation("Another run has the lab: {by}."),
    "run.ended": Explanation("A run has ended before it was complete: {by}.", "The same command again completes it."),
    "run.unknown": Explanation("A run has taken the lab and not released it: {by}."),
    "libvirt.silent": Explanation("{reason}"),
    "network.missing": Explanation("Network {network} is not there."),
    "network.inactive": Explanation("Network {network} does not run.", "It starts with the next run."),
    "network.address": Explanation("Bridge {bridge} of network {network} lacks {missing}."),
    "network.dnsmasq": Explanation("dnsmasq of network {network} does not run: nodes get neither addresses nor names."),
    "storage.missing": Explanation("Storage pool {pool} is not there."),
    "storage.full": Explanation(
        "{path} has {free} left, and disks of the lab may still grow by {growth}.",
        "Free some space: VMs that find none are paused.",
    ),
    "bmc.missing": Explanation("The lab has no BMC service on this host."),
    "bmc.silent": Explanation("The BMC service does not answer: {error}", "Its log on the host says why."),
    "bmc.error": Explanation("The BMCs of {nodes} give no answer: {error}"),
    "bmc.faults": Explanation("The BMCs have faults on purpose: {faults}.", "Module bmc_faults removes them."),
    "node.missing": Explanation("There are no VMs of {nodes}."),
    "node.off": Explanation("Switched off: {nodes}.", "The cluster needs them."),
    "node.state": Explanation("The VMs of {nodes} are {state}.", "{advice}"),
    "restore.interrupted": Explanation(
        "The restore of checkpoint {checkpoint} was interrupted, so a part of the nodes is as it was then.",
        "`make restore NAME={checkpoint}` repeats it.",
    ),
    "rehearsal.failed": Explanation(
        "{failures} checks of the last rehearsal have failed.", "The page says why: {page}"
    ),
    "installation.failed": Explanation("The installation: {outcome}.", "What says more: {bundle}"),
    "api.not-asked": Explanation("The cluster was not asked: {error}", "With either installed there, it is."),
    "api.silent": Explanation("The API of the cluster does not answer: {error}"),
    "host.error": Explanation("BareMetalHost {node}: {error}"),
    "host.password": Explanation(
        "The BMC of {node} refuses the password that the cluster has: {error}",
        "The next run gives the cluster that of the lab.",
    ),
    "host.network": Explanation(
        "lab_spec has another network_config of {nodes} than the cluster.",
        "They keep theirs until they are replaced: docs/day2.md.",
    ),
    "machine.error": Explanation("Machine {machine} of {node}: {error}"),
    "replacement.begun": Explanation(
        "The replacement of {nodes} has begun and is not complete.", "`make lab` goes on with it: docs/day2.md."
    ),
    "node.not-ready": Explanation("Not ready in the cluster: {nodes}."),
    "node.unknown": Explanation("The cluster does not know {nodes}.", "`make lab` adds workers to it."),
    "operator.failing": Explanation("Operator {operator} is {state}: {message}"),
    "vip.silent": Explanation("Nothing answers at {address}, the address of the {kind}.", "{held}"),
    "certificate.expired": Explanation("The certificate {certificate} has expired.", "{advice}"),
    "certificate.expires": Explanation("The certificate {certificate} expires on {expires}.", "{advice}"),
    "requests.pending": Explanation(
        "{number} requests for certificates are pending.", "Nodes that were off for long wait for their approval."
    ),
    "unread": Explanation("Not read: {what}."),
}
PAUSED = (
    "A checkpoint pauses them for about a second. If its run was killed, `make checkpoints` names what has them go on; "
    "after a disk had no space, `virsh resume` of each does."
)
WARNINGS = {
    *("run.going", "run.unknown", "storage.full", "bmc.faults", "unread"),
    *("certificate.expires", "requests.pending", "node.unknown", "vip.silent", "api.not-asked", "host.network"),
}


def findings_of(state: State, seen: Observation) -> list[Finding]:
    found = [*_of_run(seen), *_of_installation(state, seen)]
    if seen.replacing:
        found.append(_finding("replacement.begun", "nodes", nodes=list(seen.replacing)))
    if state is not State.ABSENT:
        found += [*_of_host(seen), *_of_networks(seen), *_of_storage(seen), *_of_bmcs(seen), *_of_nodes(seen)]
        found += [*_of_checkpoints(seen)]
        found += [*_of_cluster(seen), *_of_members(seen)]
    return found


def _finding(code: str, subject: str, **facts: Any) -> Finding:
    finding = WORDS[code].of(code, subject, facts)
    return replace(finding, severity=WARNING) if code in WARNINGS else finding


def _of_run(seen: Observation) -> Iterator[Finding]:
    if seen.run:
        code = {True: "run.going", False: "run.ended", None: "run.unknown"}[seen.run.going]
        yield _finding(code, "run", by=seen.run.by)


def _of_installation(state: State, seen: Observation) -> Iterator[Finding]:
    installation = seen.installation
    if installation.state in (outcome.FAILED, outcome.INTERRUPTED):
        bundle = installation.bundle or "/var/lib/nometal/install/" + seen.lab
        yield _finding("installation.failed", "installation", outcome=installation.outcome, bundle=bundle)
    elif state is State.REHEARSAL_FAILED or (state is State.PARTIAL and seen.rehearsal.outcome == FAILED):
        page = seen.rehearsal.page or "it is not there any more"
        yield _finding("rehearsal.failed", "rehearsal", failures=seen.rehearsal.failures, page=page)


def _of_checkpoints(seen: Observation) -> Iterator[Finding]:
    if seen.half_restored:
        yield _finding("restore.interrupted", "checkpoints", checkpoint=seen.half_restored)


def _of_host(seen: Observation) -> Iterator[Finding]:
    if seen.host.libvirt:
        yield _finding("libvirt.silent", "libvirt", reason=seen.host.libvirt)
    for what in seen.unread:
        yield _finding("unread", "status", what=what)


def _of_networks(seen: Observation) -> Iterator[Finding]:
    for network in seen.networks:
        subject = f"network {network.name}"
        if network.state == MISSING:
            yield _finding("network.missing", subject, network=network.name)
        elif network.state not in (ACTIVE, UNKNOWN):
            yield _finding("network.inactive", subject, network=network.name)
        if network.missing_addresses:
            missing = list(network.missing_addresses)
            yield _finding("network.address", subject, network=network.name, bridge=network.bridge, missing=missing)
        if network.dnsmasq is False:
            yield _finding("network.dnsmasq", subject, network=network.name)


def _of_storage(seen: Observation) -> Iterator[Finding]:
    storage = seen.storage
    if seen.host.libvirt or not seen.nodes:
        return
    if not storage.is_there:
        yield _finding("storage.missing", "storage", pool=storage.pool)
        return
    held = sum(checkpoint.held_bytes for checkpoint in seen.checkpoints)
    growth = max(storage.promised_bytes + held - sum(node.disk_bytes for node in seen.nodes), 0)
    if storage.free_bytes < min(growth, LEAST_FREE_BYTES):
        yield _finding("storage.full", "storage", path=storage.path, free=gib(storage.free_bytes), growth=gib(growth))


def _of_bmcs(seen: Observation) -> Iterator[Finding]:
    bmcs = seen.bmcs
    if bmcs.state == MISSING and seen.nodes:
        yield _finding("bmc.missing", "BMCs")
    elif bmcs.state == SILENT:
        yield _finding("bmc.silent", "BMCs", error=bmcs.error)
    else:
        by_error: dict[str, list[str]] = {}
        for node in seen.nodes:
            by_error.setdefault(node.bmc_error, []).append(node.name)
        for error, names in by_error.items():
            if error:
                yield _finding("bmc.error", "BMCs", nodes=names, error=error)
    if bmcs.faults:
        yield _finding("bmc.faults", "BMCs", faults=list(bmcs.faults))


def _of_cluster(seen: Observation) -> Iterator[Finding]:
    cluster = seen.cluster
    if cluster is None or not any(map(is_on, seen.members)):
        return
    if cluster.state == SILENT:
        yield _finding("api.silent", "cluster", error=cluster.error)
    if cluster.state == NOT_ASKED:
        yield _finding("api.not-asked", "cluster", error=cluster.error)
    for operator in cluster.operators_failing:
        facts = {"operator": operator.name, "state": operator.state, "message": operator.message}
        yield _finding("operator.failing", "cluster", **facts)
    for vip in cluster.vips:
        if not vip.answers and cluster.state != SILENT:
            held = f"{vip.holder} has it." if vip.holder else "No node of the lab has it."
            yield _finding("vip.silent", "cluster", address=vip.address, kind=vip.kind, held=held)
    for certificate in cluster.certificates:
        yield from _of_certificate(certificate, seen.time)
    if cluster.requests_pending:
        yield _finding("requests.pending", "cluster", number=cluster.requests_pending)


def _of_certificate(certificate: Certificate, now: str) -> Iterator[Finding]:
    advice = SIGNER_RENEWED if certificate.name == OF_SIGNER else RENEWED
    if certificate.expired or certificate.expires <= now:
        yield _finding("certificate.expired", "cluster", certificate=certificate.name, advice=advice)
    elif datetime.fromisoformat(certificate.expires[:DATE]) - datetime.fromisoformat(now[:DATE]) < SOON:
        facts = {"certificate": certificate.name, "expires": certificate.expires[:DATE]}
        yield _finding("certificate.expires", "cluster", **facts, advice=advice)


def _of_members(seen: Observation) -> Iterator[Finding]:
    said = [(node.name, node.member) for node in seen.nodes if node.member]
    for name, member in said:
        if member.host_error:
            cause = causes.of_metal(member.host_error)
            code = "host.password" if cause and cause.code == causes.REFUSED else "host.error"
            yield _finding(code, name, node=name, error=member.host_error)
        if member.machine_error:
            facts = {"machine": member.machine, "error": member.machine_error}
            yield _finding("machine.error", name, node=name, **facts)
    members = {node.name for node in seen.members}
    unknown = [node.name for node in seen.members if said and not node.member]
    if unknown:
        yield _finding("node.unknown", "nodes", nodes=unknown)
    changed = [name for name, member in said if member.network_changed]
    if changed:
        yield _finding("host.network", "nodes", nodes=changed)
    waiting = [name for name, member in said if name in members and not member.ready]
    if waiting:
        yield _finding("node.not-ready", "nodes", nodes=waiting)


def _of_nodes(seen: Observation) -> Iterator[Finding]:
    by_power: dict[str, list[str]] = {}
    for node in seen.nodes:
        if node.power not in (ON, OFF, UNKNOWN):
            by_power.setdefault(node.power, []).append(node.name)
    for power, names in by_power.items():
        if power == MISSING:
            yield _finding("node.missing", "nodes", nodes=names)
        else:
            yield _finding("node.state", "nodes", nodes=names, state=power, advice=PAUSED if power == "paused" else "")
    off = [node.name for node in seen.off]
    if off and seen.installation.state == outcome.INSTALLED:
        yield _finding("node.off", "nodes", nodes=off)
