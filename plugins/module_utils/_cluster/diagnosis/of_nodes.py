# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with nodes, from what their VMs, their BMCs and metal3 say. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.finding import Case, Finding
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.messages import (
    BMC,
    BMC_LOG,
    PASSWORDS,
    of_console,
    of_metal,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.events import CONTROL_PLANE, INSTALLER
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.stages import Stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.nodes import Node
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import Story

WITH_AGENT = ("inspecting", "preparing", "provisioning")
"""States in which Ironic has started the node from its medium."""
MADE = ("provisioned", "externally provisioned")
REFUSED = ("401", "429")
"""The latter where it was refused too often."""
NODES = "playbooks/nodes.yml repairs it."


def switched_off(story: Story, nodes: Iterable[Node]) -> str:
    """Which control plane nodes are, and what to do. Until bootstrapping is over they are switched all the time."""
    off = [node for node in nodes if node.is_off and node.name in story.control_plane]
    if not off or not (story.bootstrap_complete or story.bootstrap_destroyed):
        return ""
    names, commands = ", ".join(node.name for node in off), "; ".join(f"virsh start {node.vm_name}" for node in off)
    verb, them, their = ("is", "it", "its BMC") if len(off) == 1 else ("are", "them", "their BMCs")
    why = f"the cluster cannot come up without {them}"
    return f"{names} {verb} switched off, and {why}: switch {them} on with `{commands}` on the host, or by {their}."


def power(case: Case) -> Iterator[Finding]:
    """What is said of an API that does not answer says it, too."""
    said = switched_off(case.story, case.evidence.nodes)
    if said and not any(case.evidence.host.api.values()):
        yield Finding(CONTROL_PLANE, said)


def service(case: Case) -> Iterator[Finding]:
    if case.evidence.bmc_trouble:
        yield Finding("BMC", case.evidence.bmc_trouble)
    troubles = _bmc_troubles(case)
    found = {name: _of_service(trouble) for name, trouble in troubles.items()}
    alike = set(found.values())
    if len(troubles) == len(case.evidence.nodes) > 1 and len(alike) == 1:
        yield Finding("BMC", f"Those of all nodes: {alike.pop()}")
        return
    for name, said in found.items():
        yield Finding(name, f"Its BMC: {said}")


def _of_service(trouble: str) -> str:
    if trouble.startswith(REFUSED):
        return f"The host's own password is refused, that of `operator`. {PASSWORDS}"
    filtered = f"Packets are filtered, or the service hangs. {BMC_LOG}"
    said = f"No answer, on the host itself neither: {trouble.rstrip('.')}."
    return f"{said} {filtered if 'timed out' in trouble else BMC}"


def _bmc_troubles(case: Case) -> dict[str, str]:
    told = {node.name: (case.evidence.bmcs.get(node.vm_name) or {}).get("trouble") for node in case.evidence.nodes}
    return {name: trouble for name, trouble in told.items() if trouble}


def metal(case: Case) -> Iterator[Finding]:
    """What is said of several for the same cause is said once. Where no BMC answers, others can only say so, too."""
    by_cause: dict[str, list[str]] = {}
    errors = metal_errors(case)
    for name, said in errors.items():
        by_cause.setdefault(of_metal(said) or said, []).append(name)
    silent = _bmc_troubles(case)
    for names in by_cause.values():
        first, *others = [name for name in names if name not in silent] or [""]
        if first:
            said, also = errors[first], f" So it is with {', '.join(others)}." if others else ""
            yield Finding(first, f"{said.rstrip('.')}. {of_metal(said)}".strip() + also)


def metal_errors(case: Case) -> dict[str, str]:
    """The log tells an error only together with another state, and none of workers: the cluster knows all."""
    told = {name: host.trouble for name, host in case.story.hosts.items() if host.trouble}
    for host in case.evidence.metal_hosts:
        if host.error:
            told[host.name] = ": ".join(filter(None, [host.error_type, host.error]))
        elif host.state in MADE:
            told.pop(host.name, None)
    return told


def bmc_ports(case: Case) -> set[int]:
    """Those of the BMCs, if anything is amiss with any."""
    if not (_bmc_troubles(case) or metal_errors(case)):
        return set()
    addresses = (str(bmc.get("address", "")) for bmc in case.evidence.bmcs.values())
    return {port for address in addresses if (port := urlsplit(address).port)}


def machines(case: Case) -> Iterator[Finding]:
    errors = metal_errors(case)
    states = {name: host.state for name, host in case.story.hosts.items()}
    states.update({host.name: host.state for host in case.evidence.metal_hosts if host.state})
    for node in case.evidence.nodes:
        state = states.get(node.name, "")
        if _concerns(case, node, state):
            yield from _machine(case, node, state, known=node.name in errors)


def _concerns(case: Case, node: Node, state: str) -> bool:
    """When all stands still, whoever is not ready is suspect."""
    is_under_way = case.story.stage in (Stage.CONTROL_PLANE, Stage.INITIALIZE) and bool(state) and state not in MADE
    return node.name in case.suspects or (INSTALLER in case.suspects and is_under_way)


def _machine(case: Case, node: Node, state: str, *, known: bool) -> Iterator[Finding]:
    """Known: metal3 has said why, and the rest follows from that."""
    console = case.evidence.consoles.get(node.name, "")
    if node.state == "missing":
        yield Finding(node.name, f"Its VM {node.vm_name} is not there. {NODES}")
    elif node.state != "running" and state in WITH_AGENT and not known:
        yield Finding(
            node.name, f"It is {node.state}, while Ironic has it {state}: its BMC was not told, or did not act."
        )
    elif node.state == "running" and state == "inspecting" and node.by_medium and not (node.medium or known):
        yield Finding(node.name, f"Its drive is empty, so Ironic's agent, which is to inspect it, cannot start. {BMC}")
    cause = of_console(console)
    if cause:
        yield Finding(node.name, f"{cause} Its console ends with: {console}")
    elif console and node.name in case.suspects:
        yield Finding(node.name, f"Its console ends with: {console}")
