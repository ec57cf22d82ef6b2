# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with nodes, from what their VMs, their BMCs and metal3 say. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import client
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import heal
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.case import Case
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.causes import of_console, of_metal
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.explanations import found
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.events import CONTROL_PLANE, INSTALLER
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.stages import Stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.nodes import Node
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import Progress
    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding

WITH_AGENT = ("inspecting", "preparing", "provisioning")
"""States in which Ironic has started the node from its medium."""
MADE = ("provisioned", "externally provisioned")
BEFORE_ITS_OWN_API = (Stage.API, Stage.BOOTSTRAP, Stage.CONTROL_PLANE, Stage.ETCD)
BMCS, API = "BMC", "API"
FAILURES = {client.LOGIN_REFUSED: "bmc.password", client.TIMEOUT: "bmc.timeout"}


def switched_off(progress: Progress, nodes: Iterable[Node]) -> list[Node]:
    """Which control plane nodes are. Until bootstrapping is over they are switched all the time."""
    off = [node for node in nodes if node.is_off and node.name in progress.control_plane]
    if not off or not (progress.bootstrap_complete or progress.bootstrap_destroyed):
        return []
    return off


def early_holders(progress: Progress, nodes: Iterable[Node], holders: Mapping[str, str]) -> dict[str, Node]:
    """By virtual address of the API, the control plane node that has taken it before it could serve the API there.

    Its keepalived does not see that of the bootstrap VM. `holders`: MAC addresses by virtual address.
    """
    if progress.stage not in BEFORE_ITS_OWN_API or progress.bootstrap_complete or progress.bootstrap_destroyed:
        return {}
    by_mac = {mac: node for node in nodes if node.name in progress.control_plane for mac in node.macs}
    return {vip: by_mac[mac] for vip, mac in holders.items() if mac in by_mac}


def held_early(vip: str, node: Node) -> Finding:
    return found("api.held-early", API, vip=vip, node=node.name, command=heal.shown(node.address or node.name))


def names_of(nodes: Iterable[Node]) -> dict[str, list[str]]:
    return {"nodes": [node.name for node in nodes], "vms": [node.vm_name for node in nodes]}


def power(case: Case) -> Iterator[Finding]:
    """What is said of an API that does not answer says it, too."""
    off = switched_off(case.progress, case.evidence.nodes)
    if off and not any(case.evidence.host.api.values()):
        yield of_switched_off(off)


def of_switched_off(off: Iterable[Node]) -> Finding:
    return found("nodes.off", CONTROL_PLANE, **names_of(off))


def service(case: Case) -> Iterator[Finding]:
    if case.evidence.bmc_trouble:
        yield found("bmc.not-known", BMCS, error=case.evidence.bmc_trouble)
    silent = _silent_bmcs(case)
    by_cause: dict[tuple[str, str], list[str]] = {}
    for name, bmc in silent.items():
        code = FAILURES.get(str(bmc.get("failure")), "bmc.no-answer")
        # What a refusal says of itself, such as for how long, makes it no other.
        error = "" if code == FAILURES[client.LOGIN_REFUSED] else str(bmc["trouble"]).rstrip(".")
        by_cause.setdefault((code, error), []).append(name)
    for (code, error), names in by_cause.items():
        if len(names) == len(case.evidence.nodes) > 1:
            yield found(code, BMCS, nodes=names, error=error)
        else:
            yield from (found(code, name, nodes=[name], error=error) for name in names)


def _silent_bmcs(case: Case) -> dict[str, Mapping[str, Any]]:
    """By node, what is said of BMCs that do not answer as they should."""
    known = {node.name: case.evidence.bmcs.get(node.vm_name) or {} for node in case.evidence.nodes}
    return {name: bmc for name, bmc in known.items() if bmc.get("trouble")}


def metal(case: Case) -> Iterator[Finding]:
    """What is said of several for the same cause is said once. Where no BMC answers, others can only say so, too."""
    by_cause: dict[str, list[str]] = {}
    errors = metal_errors(case)
    causes = {name: of_metal(error) for name, error in errors.items()}
    for name, error in errors.items():
        cause = causes[name]
        by_cause.setdefault(cause.code if cause else error, []).append(name)
    silent = _silent_bmcs(case)
    for names in by_cause.values():
        first, *others = [name for name in names if name not in silent] or [""]
        if first:
            cause = causes[first]
            yield found(cause.code if cause else "metal.other", first, error=errors[first].rstrip("."), also=others)


def metal_errors(case: Case) -> dict[str, str]:
    """The log has an error only together with another state, never its end, and none of workers. The cluster has."""
    told = {name: host.trouble for name, host in case.progress.hosts.items() if host.trouble}
    for host in case.evidence.metal_hosts:
        if host.error_message:
            told[host.name] = ": ".join(filter(None, [host.error_type, host.error_message]))
        else:
            told.pop(host.name, None)
    return told


def bmc_ports(case: Case) -> set[int]:
    """Those of the BMCs, if anything is amiss with any."""
    if not (_silent_bmcs(case) or metal_errors(case)):
        return set()
    addresses = (str(bmc.get("address", "")) for bmc in case.evidence.bmcs.values())
    return {port for address in addresses if (port := urlsplit(address).port)}


def machines(case: Case) -> Iterator[Finding]:
    errors = metal_errors(case)
    states = {name: host.state for name, host in case.progress.hosts.items()}
    states.update({host.name: host.state for host in case.evidence.metal_hosts if host.state})
    for node in case.evidence.nodes:
        state = states.get(node.name, "")
        if _concerns(case, node, state):
            yield from _machine(case, node, state, known=node.name in errors)


def _concerns(case: Case, node: Node, state: str) -> bool:
    """When all stands still, whoever is not ready is suspect."""
    is_under_way = case.progress.stage in (Stage.CONTROL_PLANE, Stage.INITIALIZE) and bool(state) and state not in MADE
    return node.name in case.suspects or (INSTALLER in case.suspects and is_under_way)


def _machine(case: Case, node: Node, state: str, *, known: bool) -> Iterator[Finding]:
    """Known: metal3 has said why, and the rest follows from that."""
    console = case.evidence.consoles.get(node.name, "")
    if node.state == "missing":
        yield found("node.no-vm", node.name, vm=node.vm_name)
    elif node.state != "running" and state in WITH_AGENT and not known:
        yield found("node.not-on", node.name, state=node.state, wanted=state)
    elif node.state == "running" and state == "inspecting" and node.by_medium and not (node.medium or known):
        yield found("node.empty-drive", node.name)
    cause = of_console(console)
    if cause:
        yield found(cause.code, node.name, console=console)
    elif console and node.name in case.suspects:
        yield found("node.console", node.name, console=console)
