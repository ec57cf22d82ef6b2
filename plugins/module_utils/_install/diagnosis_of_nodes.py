# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with nodes, from what their VMs, their BMCs and metal3 say. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._install.diagnosis_finding import Case, Finding
from ansible_collections.nometal.ipi.plugins.module_utils._install.diagnosis_words import BMC, of_console, of_metal
from ansible_collections.nometal.ipi.plugins.module_utils._install.events import INSTALLER
from ansible_collections.nometal.ipi.plugins.module_utils._install.stages import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._install.diagnosis_nodes import Node

WITH_AGENT = ("inspecting", "preparing", "provisioning")
"""States in which Ironic has started the node from its medium."""
MADE = ("provisioned", "externally provisioned")
NODES = "playbooks/nodes.yml repairs it."


def service(case: Case) -> Iterator[Finding]:
    evidence = case.evidence
    if evidence.bmc_trouble:
        yield Finding("BMC", evidence.bmc_trouble)
    for node in evidence.nodes:
        trouble = (evidence.bmcs.get(node.vm_name) or {}).get("trouble")
        if trouble:
            yield Finding(node.name, f"Its BMC does not answer, on the host itself neither: {trouble}. {BMC}")


def metal(case: Case) -> Iterator[Finding]:
    """The log tells an error only together with another state, and none of workers: the cluster knows all."""
    told = {name: host.trouble for name, host in case.story.hosts.items() if host.trouble}
    for host in case.evidence.metal_hosts:
        if host.error:
            told[host.name] = ": ".join(filter(None, [host.error_type, host.error]))
        elif host.state in MADE:
            told.pop(host.name, None)
    for name, said in told.items():
        yield Finding(name, f"{said.rstrip('.')}. {of_metal(said)}".strip())


def machines(case: Case) -> Iterator[Finding]:
    states = {name: host.state for name, host in case.story.hosts.items()}
    states.update({host.name: host.state for host in case.evidence.metal_hosts if host.state})
    for node in case.evidence.nodes:
        state = states.get(node.name, "")
        if _concerns(case, node, state):
            yield from _machine(case, node, state)


def _concerns(case: Case, node: Node, state: str) -> bool:
    """When all stands still, whoever is not ready is suspect."""
    is_under_way = case.story.stage in (Stage.CONTROL_PLANE, Stage.INITIALIZE) and bool(state) and state not in MADE
    return node.name in case.suspects or (INSTALLER in case.suspects and is_under_way)


def _machine(case: Case, node: Node, state: str) -> Iterator[Finding]:
    console = case.evidence.consoles.get(node.name, "")
    if node.state == "missing":
        yield Finding(node.name, f"Its VM {node.vm_name} is not there. {NODES}")
    elif node.state != "running" and state in WITH_AGENT:
        yield Finding(
            node.name, f"It is {node.state}, while Ironic has it {state}: its BMC was not told, or did not act."
        )
    elif node.state == "running" and state == "inspecting" and node.by_medium and not node.medium:
        yield Finding(node.name, f"Its drive is empty, so Ironic's agent, which is to inspect it, cannot start. {BMC}")
    cause = of_console(console)
    if cause:
        yield Finding(node.name, f"{cause} Its console ends with: {console}")
    elif console and node.name in case.suspects:
        yield Finding(node.name, f"Its console ends with: {console}")
