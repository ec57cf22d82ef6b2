# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what is seen on the host to what is wrong, and what to do. Pure.

Each judge looks at one subject and gives the facts of what it finds; `explanations` says what that means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import of_nodes as diagnosis_of_nodes
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.case import Case
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.causes import of_console
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.explanations import found
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import timing as usual
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.stages import Stage
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BootstrapAddress

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.bootstrap_services import Services
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.evidence import Evidence
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import Progress
    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
    from ansible_collections.nometal.ipi.plugins.module_utils._observe.packet_filter import Rule

HOST, BOOTSTRAP, NAMES, CLUSTER = "host", "bootstrap", "names", "operators"
API = diagnosis_of_nodes.API
NEEDS_BOOTSTRAP = (Stage.API, Stage.BOOTSTRAP, Stage.CONTROL_PLANE, Stage.ETCD)
NEEDS_API = (Stage.API, Stage.BOOTSTRAP, Stage.ETCD, Stage.INITIALIZE, Stage.OPERATORS, Stage.CONSOLE)
MUCH_LOAD = 3.0
"""Of work that waits, for each processor."""
LITTLE_MEMORY = 0.04
MUCH_PRESSURE = {"cpu": 80.0, "memory": 15.0, "io": 50.0}
QUIET_SECONDS = 10 * usual.MINUTE
OWN_TABLES = "nometal"
IMAGE_PORTS, DHCP_PORT, API_PORT = (6180, 6183), 67, 6443
MOST_OPERATORS = 4


def findings(
    progress: Progress, evidence: Evidence, suspects: Collection[str] = (), *, late: bool = True
) -> list[Finding]:
    """Suspects are subjects, as nodes, that stand still."""
    if progress.stage is None or progress.stage is Stage.COMPLETE:
        return []
    case = Case(progress, evidence, frozenset(suspects), late)
    judges = BEFORE_THE_BOOTSTRAP_VM if progress.stage in (Stage.PREPARE, Stage.INFRASTRUCTURE) else JUDGES
    return list(dict.fromkeys(finding for judge in judges for finding in judge(case)))


def overload(case: Case) -> Iterator[Finding]:
    """What fails at once fails for another reason."""
    host = case.evidence.host
    if not case.late:
        return
    signs: dict[str, Any] = {}
    waiting = [part for part, share in host.pressure.items() if share > MUCH_PRESSURE[part]]
    if host.load > MUCH_LOAD * host.cores:
        signs.update(load=host.load, cores=host.cores)
    if host.memory_available < LITTLE_MEMORY:
        signs.update(memory_available=host.memory_available)
    if waiting:
        signs.update(waiting=waiting)
    if signs:
        yield found("host.overloaded", HOST, **signs)


def filters(case: Case) -> Iterator[Finding]:
    for rule, port in _filtering(case):
        known = {DHCP_PORT: "dhcp", API_PORT: "api", **dict.fromkeys(IMAGE_PORTS, "images")}
        yield found("host.filtered", HOST, rule=str(rule), port=port, serves=known.get(port, "bmcs"))


def _filtering(case: Case) -> Iterator[tuple[Rule, int]]:
    """Others use some of the ports as well: rules about them count where something is amiss with what is there."""
    wanted = [*IMAGE_PORTS, *sorted(diagnosis_of_nodes.bmc_ports(case))]
    if _lacks_address(case) and case.evidence.bootstrap.mode != BootstrapAddress.STATIC:
        wanted.append(DHCP_PORT)
    if any(error and not _is_refused(case, vip) for vip, error in case.evidence.host.api.items()):
        wanted.append(API_PORT)
    for rule in case.evidence.rules:
        port = next((port for port in wanted if rule.is_about(port)), None)
        if port and rule.refuses and OWN_TABLES not in rule.place:
            yield rule, port


def _filtered(case: Case, port: int) -> bool:
    return any(found == port for _rule, found in _filtering(case))


def libvirt(case: Case) -> Iterator[Finding]:
    if case.evidence.libvirt_trouble:
        yield found("host.libvirt-silent", HOST, error=case.evidence.libvirt_trouble.rstrip("."))


def names(case: Case) -> Iterator[Finding]:
    host = case.evidence.host
    missing = [vip for vip in host.api if vip not in host.api_addresses]
    if host.api_name and missing:
        yield found("names.wrong", NAMES, name=host.api_name, addresses=[*host.api_addresses], wanted=[*host.api])


def bootstrap(case: Case) -> Iterator[Finding]:
    seen, stage = case.evidence.bootstrap, case.progress.stage
    if stage not in NEEDS_BOOTSTRAP or case.evidence.libvirt_trouble or case.progress.bootstrap_destroyed:
        return
    if not seen.name:
        yield found("bootstrap.gone", BOOTSTRAP)
    elif seen.no_room:
        yield found("bootstrap.disk-full", BOOTSTRAP, name=seen.name)
    elif seen.state != "running":
        yield found("bootstrap.not-running", BOOTSTRAP, name=seen.name, state=seen.state)
    elif _lacks_address(case):
        yield _without_address(case)
    yield from _bootstrap_console(case)


def _without_address(case: Case) -> Finding:
    seen = case.evidence.bootstrap
    known: dict[str, Any] = {"name": seen.name, "macs": [*seen.macs]}
    if not seen.has_carrier:
        return found("bootstrap.no-carrier", BOOTSTRAP, **known)
    if seen.mode == BootstrapAddress.STATIC:  # it never asks a DHCP server
        return found("bootstrap.static-silent", BOOTSTRAP, **known, ips=[*seen.fixed_ips])
    if seen.mode == BootstrapAddress.RESERVED and seen.reserved_mac not in seen.macs:
        return found("bootstrap.other-mac", BOOTSTRAP, **known, ips=[*seen.fixed_ips], mac=seen.reserved_mac)
    return found("bootstrap.no-address", BOOTSTRAP, **known, is_filtered=_filtered(case, DHCP_PORT))


def _lacks_address(case: Case) -> bool:
    """Whoever answered has one, also if the host has forgotten it."""
    seen, answered = case.evidence.bootstrap, case.progress.api_up or "" in case.evidence.host.api.values()
    return seen.state == "running" and not seen.address and not answered and case.progress.stage in NEEDS_BOOTSTRAP


def _bootstrap_console(case: Case) -> Iterator[Finding]:
    seen = case.evidence.bootstrap
    cause = of_console(seen.console)
    quiet = (seen.quiet_for or 0) > QUIET_SECONDS
    failed = next(_failed_services(seen.services), None)  # those that need it fail because of it
    if cause:
        yield found(cause.code, BOOTSTRAP, console=seen.console)
    elif failed:
        yield failed
    elif seen.state == "running" and quiet and case.progress.stage is Stage.API:
        yield found("bootstrap.silent", BOOTSTRAP, seconds=seen.quiet_for, console=seen.console)


def _failed_services(services: Services) -> Iterator[Finding]:
    """That which pulls the release image does not fail, but tries for ever."""
    for unit in services.units:
        causes = [] if unit.is_up else [(cause, line) for line in unit.said if (cause := of_console(line))]
        if causes:
            cause, line = causes[-1]
            yield found(cause.code.replace("console", "service"), BOOTSTRAP, unit=unit.name, said=line)
        elif unit.has_failed:
            said = unit.said[-1] if unit.said else "it has said nothing"
            yield found("service.failed", BOOTSTRAP, unit=unit.name, said=said, exited=[*services.exited])


def api(case: Case) -> Iterator[Finding]:
    if case.progress.stage not in NEEDS_API:
        return
    taken, said = _taken(case), case.progress.api_trouble
    for vip, mac in taken.items():
        yield found("api.held-by-stranger", API, vip=vip, mac=mac)
    for vip, error in case.evidence.host.api.items():
        if error and vip not in taken and not _has_known_cause(case, vip):
            yield _without_api(case, vip, error)
    if "x509" in said and not case.progress.api_up:
        yield found("api.other-cluster", API, vips=[*case.evidence.host.api], error=said.rstrip("."))


def _has_known_cause(case: Case, vip: str) -> bool:
    """What is said of the bootstrap VM, or of the packet filter, says it all."""
    seen, stage = case.evidence.bootstrap, case.progress.stage
    needs_bootstrap = stage in NEEDS_BOOTSTRAP and not case.progress.bootstrap_destroyed
    is_down = needs_bootstrap and not case.evidence.libvirt_trouble and seen.state != "running"
    return is_down or _lacks_address(case) or (not _is_refused(case, vip) and _filtered(case, API_PORT))


def _taken(case: Case) -> dict[str, str]:
    """Addresses of the API at which the host's neighbour is a stranger."""
    own = {mac for node in case.evidence.nodes for mac in node.macs} | set(case.evidence.bootstrap.macs)
    is_known = bool(case.evidence.bootstrap.name or case.progress.bootstrap_destroyed) and bool(case.evidence.nodes)
    return {vip: mac for vip, mac in case.evidence.host.api_macs.items() if is_known and mac not in own}


def _is_refused(case: Case, vip: str) -> bool:
    return vip in case.evidence.host.api_refused


def _without_api(case: Case, vip: str, error: str) -> Finding:
    off = diagnosis_of_nodes.switched_off(case.progress, case.evidence.nodes)
    if off:
        return found("api.nodes-off", API, vip=vip, error=error, **diagnosis_of_nodes.names_of(off))
    host, nodes = case.evidence.host, case.evidence.nodes
    early = diagnosis_of_nodes.early_holders(case.progress, nodes, host.api_macs)
    if vip in early:
        return diagnosis_of_nodes.held_early(vip, early[vip])
    if case.progress.stage not in NEEDS_BOOTSTRAP:
        return found("api.held-by-nodes", API, vip=vip, error=error)
    if _is_refused(case, vip):
        return found("api.not-up", API, vip=vip, error=error, address=case.evidence.bootstrap.address)
    code = "api.nothing-comes-back" if vip in case.evidence.host.api_macs else "api.not-held"
    return found(code, API, vip=vip, error=error)


def operators(case: Case) -> Iterator[Finding]:
    if case.progress.stage not in (Stage.INITIALIZE, Stage.OPERATORS):
        return
    told = case.evidence.operators
    waiting = case.progress.operators.waiting or tuple(sorted(case.progress.operators.unstable))
    listed = [name for name in waiting if name in told] or list(told)
    for name in listed[:MOST_OPERATORS]:
        yield found("operators.not-ready", CLUSTER, name=name, message=told[name])
    for hindrance in case.progress.operators.hindrances[:MOST_OPERATORS]:
        yield found("operators.hindered", CLUSTER, error=hindrance)


BEFORE_THE_BOOTSTRAP_VM: tuple[Callable[[Case], Iterator[Finding]], ...] = (libvirt, overload)
"""Nothing else is needed until then."""
JUDGES: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    *(*BEFORE_THE_BOOTSTRAP_VM, filters, names, bootstrap, api),
    *(diagnosis_of_nodes.power, diagnosis_of_nodes.service, diagnosis_of_nodes.metal, diagnosis_of_nodes.machines),
    operators,
)
