# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a lab as lines for a terminal. Pure."""

from __future__ import annotations

import textwrap
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import outcome
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.next_steps import HEADLINES
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.observation import (
    ACTIVE,
    ANSWERS,
    MISSING,
    NEVER,
    Member,
    is_on,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.state import State
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import BLOCKER
from ansible_collections.nometal.ipi.plugins.module_utils._core.sizes import GIB, gib
from ansible_collections.nometal.ipi.plugins.module_utils._core.wording import counted, cut, line_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.observation import (
        Cluster,
        Node,
        Observation,
    )
    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding

WIDTH = 118
LABEL = 14
GAP = "  "
INDENT = "  "
Written = tuple[str, str]
"""A command, and what it is for."""


def screen(state: State, seen: Observation, findings: Sequence[Finding], steps: Sequence[Written]) -> list[str]:
    """All there is to know, of one lab on one host."""
    known = [] if state is State.ABSENT else [*_facts(state, seen), *_table(seen)]
    return [headline(state, seen), *known, *_findings(findings), *_steps(steps)]


def summary(state: State, seen: Observation, findings: Sequence[Finding], steps: Sequence[Written]) -> list[str]:
    """The end of a run: the state, where files are, and what to do next."""
    blockers = [finding for finding in findings if finding.severity == BLOCKER]
    files = [] if state is State.ABSENT else [*_of_files(state, seen)]
    return [headline(state, seen), *_labelled(files), *_findings(blockers), *_steps(steps)]


def headline(state: State, seen: Observation) -> str:
    name = f"{seen.lab} ({seen.domain})" if seen.domain else seen.lab
    powers = [node for node in seen.nodes if node.power != MISSING]
    on = sum(is_on(node) for node in powers)
    nodes = f"; {on} of {len(seen.nodes)} nodes on" if powers and not seen.host.libvirt else ""
    return f"Lab {name} on {seen.host.name}: {HEADLINES[state]}{nodes}"


def _facts(state: State, seen: Observation) -> list[str]:
    return _labelled([*_of_host(seen), *_of_lab(seen), *_of_files(state, seen)])


def _labelled(facts: Sequence[tuple[str, str]]) -> list[str]:
    lines: list[str] = []
    for label, text in facts:
        first = f"{INDENT}{label:<{LABEL}}"
        lines += textwrap.wrap(
            line_of(text), WIDTH, initial_indent=first, subsequent_indent=" " * len(first), break_on_hyphens=False
        )
    return lines


def _of_host(seen: Observation) -> Iterator[tuple[str, str]]:
    host = seen.host
    memory = f"{_of(host.memory_available_bytes, host.memory_bytes)} of memory available"
    booted = f", booted {_time(host.booted)}" if host.booted else ""
    yield "host", f"{host.distribution}, load {host.load:.1f} on {host.cores} CPUs, {memory}{booted}"


def _of_lab(seen: Observation) -> Iterator[tuple[str, str]]:
    storage, bmcs = seen.storage, seen.bmcs
    if storage.is_there:
        used = f"{_of(storage.used_bytes, storage.promised_bytes)} of its disks used"
        yield "storage", f"{storage.path}: {used}, {_of(storage.free_bytes, storage.capacity_bytes)} free"
    for network in seen.networks:
        addresses = f", {', '.join(network.addresses)}" if network.addresses and network.state == ACTIVE else ""
        yield "network", f"{network.name}: {network.state}, bridge {network.bridge}{addresses}"
    if bmcs.state != MISSING:
        yield "BMCs", f"{bmcs.url}: {bmcs.state if bmcs.state == ANSWERS else 'no answer'}, {bmcs.protocol}"


def _of_files(state: State, seen: Observation) -> Iterator[tuple[str, str]]:
    if seen.bmcs.credentials:
        yield "accounts", f"of the BMCs: {seen.bmcs.credentials}"
    rehearsal = seen.rehearsal
    if rehearsal.outcome != NEVER:
        page = f", report {rehearsal.page}" if rehearsal.page else ""
        yield "rehearsal", f"{rehearsal.outcome}, {_time(rehearsal.began)}{page}"
    if seen.checkpoints:
        last = seen.checkpoints[-1]
        others = f", and {counted(len(seen.checkpoints) - 1, 'older one')}" if len(seen.checkpoints) > 1 else ""
        yield "checkpoints", f"{last.name}, taken {_time(last.taken)}{others}"
    yield from _of_installation(state, seen)


def _of_installation(state: State, seen: Observation) -> Iterator[tuple[str, str]]:
    installation = seen.installation
    if installation.state == outcome.NOTHING:
        return
    release = f"OpenShift {installation.version or 'of an unknown release'}"
    stage = f", stage {installation.stage}" if state is State.INSTALLING and installation.stage else ""
    is_installed = installation.state == outcome.INSTALLED
    runs = state in (State.INSTALLED, State.DEGRADED)
    yield "cluster", f"runs {release}" if runs else f"{release}: {installation.state}{stage}"
    if seen.cluster:
        yield from _of_cluster(seen.cluster)
    if installation.kubeconfig:
        yield "kubeconfig", installation.kubeconfig
    if installation.client and is_installed:
        yield "client", installation.client
    if installation.console_url:
        yield "console", f"{installation.console_url}, user kubeadmin, password in {installation.password_file}"


def _of_cluster(cluster: Cluster) -> Iterator[tuple[str, str]]:
    well = cluster.operators - len(cluster.operators_failing)
    if cluster.operators:
        yield "operators", f"{well} of {cluster.operators} are available and not degraded"
    holders = [f"{vip.kind} {vip.address} on {vip.holder or 'no known node'}" for vip in cluster.vips]
    if holders:
        yield "addresses", ", ".join(holders)
    expiring = [f"{each.name} until {_time(each.expires)}" for each in cluster.certificates if not each.expired]
    if expiring:
        yield "certificates", ", ".join(expiring)


HEAD = ("node", "role", "power", "address", "lease", "disk")


def _table(seen: Observation) -> list[str]:
    if not seen.nodes:
        return []
    in_cluster = any(node.member for node in seen.nodes)
    head, cells = ((*HEAD, *OF_CLUSTER), _all_cells) if in_cluster else (HEAD, _cells)
    rows = [head, *(cells(node) for node in seen.nodes)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = [GAP.join(f"{cell:<{width}}" for cell, width in zip(row, widths)).rstrip() for row in rows]
    return ["", *(cut(f"{INDENT}{line}", WIDTH) for line in lines), *_labelled(_consoles(seen))]


def _cells(node: Node) -> tuple[str, ...]:
    leases = "same" if list(node.leases) == [node.address] else ", ".join(node.leases) or "none"
    return (node.name, node.role, node.power, node.address or "none", leases, gib(node.disk_bytes))


OF_CLUSTER = ("host", "machine", "in the cluster")


def _all_cells(node: Node) -> tuple[str, ...]:
    member = node.member or Member()
    ready = {True: "ready", False: "not ready", None: "unknown" if member.node else "none"}[member.ready]
    cordoned = ", cordoned" if member.cordoned else ""
    return (*_cells(node), member.host_state or "none", member.machine_phase or "none", f"{ready}{cordoned}")


def _consoles(seen: Observation) -> list[tuple[str, str]]:
    """They differ in the VM's name only."""
    files = {node.console.replace(node.vm_name, "VM"): node for node in seen.nodes if node.console}
    if not files:
        return []
    by_prefix = all(node.vm_name == f"{seen.lab}-{node.name}" for node in seen.nodes)
    own = f"{seen.lab}-NODE" if by_prefix else "VM"
    shown = [str(PurePosixPath(file)).replace("VM", own) for file in files]
    return [("consoles", ", ".join(shown[:2]))]


def _findings(findings: Sequence[Finding]) -> list[str]:
    lines = []
    for finding in findings:
        mark = "!" if finding.severity == BLOCKER else "-"
        lines += textwrap.wrap(
            f"{mark} {line_of(finding.text)}",
            WIDTH,
            initial_indent=INDENT,
            subsequent_indent=INDENT * 2,
            break_on_hyphens=False,
        )
    return ["", *lines] if lines else []


def _steps(steps: Sequence[Written]) -> list[str]:
    if not steps:
        return []
    width = max(len(command) for command, _purpose in steps)
    return ["", "Next:", *(f"{INDENT}{command:<{width}}  # {purpose}" for command, purpose in steps)]


def _of(part: int, whole: int) -> str:
    return f"{part / GIB:.1f} of {gib(whole)}"


def _time(text: str) -> str:
    """Of ISO 8601, without seconds."""
    return f"{text[:16].replace('T', ' ')} UTC" if len(text) >= len("2026-11-20T12:00") else text
