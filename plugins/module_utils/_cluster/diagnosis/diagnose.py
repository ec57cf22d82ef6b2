# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what is seen on the host to what is wrong, and what to do. Pure.

Each judge looks at one subject and says sentences about it, or nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import of_nodes as diagnosis_of_nodes
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.finding import Case, Finding
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.messages import of_console
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import timing as usual
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.stages import Stage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.evidence import Evidence
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import Story
    from ansible_collections.nometal.ipi.plugins.module_utils._observe.packet_filter import Rule

HOST, API, BOOTSTRAP, NAMES, CLUSTER = "host", "API", "bootstrap", "names", "operators"
NETWORK = "playbooks/network.yml repairs it."
START_OVER = "With ipi_install_restart=true all is removed and it starts over."
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


def findings(story: Story, evidence: Evidence, suspects: Collection[str] = (), *, late: bool = True) -> list[Finding]:
    """Suspects are subjects, as nodes, that stand still."""
    if story.stage is None or story.stage is Stage.COMPLETE:
        return []
    case = Case(story, evidence, frozenset(suspects), late)
    judges = BEFORE_THE_BOOTSTRAP_VM if story.stage in (Stage.PREPARE, Stage.INFRASTRUCTURE) else JUDGES
    return list(dict.fromkeys(finding for judge in judges for finding in judge(case)))


def overload(case: Case) -> Iterator[Finding]:
    """What fails at once fails for another reason."""
    host = case.evidence.host
    if not case.late:
        return
    waits = [part for part, share in host.pressure.items() if share > MUCH_PRESSURE[part]]
    signs = []
    if host.load > MUCH_LOAD * host.cores:
        signs.append(f"load {host.load:.1f} on {host.cores} processors")
    if host.memory_available < LITTLE_MEMORY:
        signs.append(f"{host.memory_available:.0%} of its memory left")
    if waits:
        signs.append(f"programs wait for {' and '.join(waits)}")
    if signs:
        advice = "End what else runs there, or give the lab fewer or smaller nodes."
        words = f"It is overloaded: {', '.join(signs)}. Everything takes longer, and nodes may hang. {advice}"
        yield Finding(HOST, words, "overload")


def filters(case: Case) -> Iterator[Finding]:
    for rule, port in _filtering(case):
        known = {DHCP_PORT: "the DHCP server", API_PORT: "the API", **dict.fromkeys(IMAGE_PORTS, "images")}
        what = known.get(port, "the BMCs")
        yield Finding(HOST, f"The packet filter keeps from {what} on port {port}: {rule}. Remove that rule.")


def _filtering(case: Case) -> Iterator[tuple[Rule, int]]:
    """Others use some of the ports as well: rules about them count where something is amiss with what is there."""
    wanted = [*IMAGE_PORTS, *sorted(diagnosis_of_nodes.bmc_ports(case))]
    if _lacks_address(case):
        wanted.append(DHCP_PORT)
    if any(trouble and not _is_refused(trouble) for trouble in case.evidence.host.api.values()):
        wanted.append(API_PORT)
    for rule in case.evidence.rules:
        port = next((port for port in wanted if rule.is_about(port)), None)
        if port and rule.refuses and OWN_TABLES not in rule.place:
            yield rule, port


def _filtered(case: Case, port: int) -> bool:
    return any(found == port for _rule, found in _filtering(case))


def libvirt(case: Case) -> Iterator[Finding]:
    if case.evidence.libvirt_trouble:
        said = case.evidence.libvirt_trouble.rstrip(".")
        yield Finding(HOST, f"libvirt does not answer: {said}; see `systemctl status libvirtd`, or virtqemud.")


def names(case: Case) -> Iterator[Finding]:
    host = case.evidence.host
    missing = [vip for vip in host.api if vip not in host.api_addresses]
    if not host.api_name or not missing:
        return
    told = f"is {', '.join(host.api_addresses)}" if host.api_addresses else "is not known"
    yield Finding(NAMES, f"To the host's resolver, {host.api_name} {told}; it must be {', '.join(host.api)}. {NETWORK}")


def bootstrap(case: Case) -> Iterator[Finding]:
    seen, stage = case.evidence.bootstrap, case.story.stage
    if stage not in NEEDS_BOOTSTRAP or case.evidence.libvirt_trouble or case.story.bootstrap_destroyed:
        return
    if not seen.name:
        yield Finding(BOOTSTRAP, f"Its VM is gone, and the installation needs it yet. {START_OVER}")
    elif seen.no_room:
        yield Finding(BOOTSTRAP, f"{seen.name} is paused, as its disk cannot be written: make room on the host (`df`).")
    elif seen.state != "running":
        yield Finding(
            BOOTSTRAP, f"{seen.name} is {seen.state}: `virsh start {seen.name}`, or see why in its qemu's log."
        )
    elif _lacks_address(case):
        macs = ", ".join(seen.macs)
        repair = "" if _filtered(case, DHCP_PORT) else f" {NETWORK}"
        advice = f"The lab's DHCP server has given it none, and the host does not see it.{repair}"
        yield Finding(BOOTSTRAP, f"{seen.name}, MAC address {macs}, has no address. {advice}")
    yield from _bootstrap_console(case)


def _lacks_address(case: Case) -> bool:
    """Whoever answered has one, also if the host has forgotten it."""
    seen, answered = case.evidence.bootstrap, case.story.api_up or "" in case.evidence.host.api.values()
    return seen.state == "running" and not seen.address and not answered and case.story.stage in NEEDS_BOOTSTRAP


def _bootstrap_console(case: Case) -> Iterator[Finding]:
    seen = case.evidence.bootstrap
    cause = of_console(seen.console)
    quiet = (seen.quiet_for or 0) > QUIET_SECONDS
    if cause:
        yield Finding(BOOTSTRAP, f"{cause} Its console ends with: {seen.console}")
    elif seen.state == "running" and quiet and case.story.stage is Stage.API:
        words = f"Its console is silent for {usual.words(seen.quiet_for or 0)}"
        yield Finding(BOOTSTRAP, f"{words}{f', since: {seen.console}' if seen.console else ''}", "silent")


def api(case: Case) -> Iterator[Finding]:
    if case.story.stage not in NEEDS_API:
        return
    taken, said = _taken(case), case.story.api_trouble
    for vip, mac in taken.items():
        words = f"{vip} is held by {mac}, which is no machine of this lab: take that address away from it"
        yield Finding(API, f"{words}, or choose another one in lab_spec.")
    for vip, trouble in case.evidence.host.api.items():
        if trouble and vip not in taken and not _has_known_cause(case, trouble):
            yield Finding(API, f"{vip} does not answer on port 6443: {trouble}. {_api_advice(case, vip, trouble)}")
    if "x509" in said and not case.story.api_up:
        at = ", ".join(case.evidence.host.api)
        advice = f"End what listens at {at}, another cluster say, or set the clocks right if they differ."
        yield Finding(API, f"Not this cluster answers there: {said.rstrip('.')}. {advice}")


def _has_known_cause(case: Case, trouble: str) -> bool:
    """What is said of the bootstrap VM, or of the packet filter, says it all."""
    seen, stage = case.evidence.bootstrap, case.story.stage
    needs_bootstrap = stage in NEEDS_BOOTSTRAP and not case.story.bootstrap_destroyed
    is_down = needs_bootstrap and not case.evidence.libvirt_trouble and seen.state != "running"
    return is_down or _lacks_address(case) or (not _is_refused(trouble) and _filtered(case, API_PORT))


def _taken(case: Case) -> dict[str, str]:
    """Addresses of the API at which the host's neighbour is a stranger."""
    own = {mac for node in case.evidence.nodes for mac in node.macs} | set(case.evidence.bootstrap.macs)
    is_known = bool(case.evidence.bootstrap.name or case.story.bootstrap_destroyed) and bool(case.evidence.nodes)
    return {vip: mac for vip, mac in case.evidence.host.api_macs.items() if is_known and mac not in own}


def _is_refused(trouble: str) -> bool:
    return "refused" in trouble.lower()


def _api_advice(case: Case, vip: str, trouble: str) -> str:
    seen = case.evidence.bootstrap
    off = diagnosis_of_nodes.switched_off(case.story, case.evidence.nodes)
    if off:
        return f"Control plane nodes hold the address by now: {off}"
    if case.story.stage not in NEEDS_BOOTSTRAP:
        return "Control plane nodes hold the address by now: see their consoles."
    if not _is_refused(trouble) and vip in case.evidence.host.api_macs:
        return "The address is held, but nothing comes back: see what filters packets, and the bootstrap VM's console."
    if not _is_refused(trouble):
        return "Nobody holds the address yet: the bootstrap VM takes it once it has pulled its first images."
    at = f"`ssh core@{seen.address} journalctl -b -u release-image -u bootkube`" if seen.address else "its journal"
    return f"The bootstrap VM is there, but has no API yet: {at} tells why, a pull secret or a way out most often."


def operators(case: Case) -> Iterator[Finding]:
    if case.story.stage not in (Stage.INITIALIZE, Stage.OPERATORS):
        return
    told = case.evidence.operators
    waiting = case.story.operators.waiting or tuple(sorted(case.story.operators.unstable))
    listed = [name for name in waiting if name in told] or list(told)
    for name in listed[:MOST_OPERATORS]:
        yield Finding(CLUSTER, f"{name}: {told[name]}" if told[name] else f"{name} is not available")
    for hindrance in case.story.operators.hindrances[:MOST_OPERATORS]:
        yield Finding(CLUSTER, hindrance)


BEFORE_THE_BOOTSTRAP_VM: tuple[Callable[[Case], Iterator[Finding]], ...] = (libvirt, overload)
"""Nothing else is needed until then."""
JUDGES: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    *(*BEFORE_THE_BOOTSTRAP_VM, filters, names, bootstrap, api),
    *(diagnosis_of_nodes.power, diagnosis_of_nodes.service, diagnosis_of_nodes.metal, diagnosis_of_nodes.machines),
    operators,
)
