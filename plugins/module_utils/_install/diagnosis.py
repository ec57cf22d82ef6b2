# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what is seen on the host to what is wrong, and what to do. Pure.

Each judge looks at one subject and says sentences about it, or nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._install import diagnosis_of_nodes, usual
from ansible_collections.nometal.ipi.plugins.module_utils._install.diagnosis_finding import Case, Finding
from ansible_collections.nometal.ipi.plugins.module_utils._install.diagnosis_words import of_console
from ansible_collections.nometal.ipi.plugins.module_utils._install.stages import Stage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._install.diagnosis_evidence import Evidence
    from ansible_collections.nometal.ipi.plugins.module_utils._install.story import Story

HOST, API, BOOTSTRAP, NAMES, CLUSTER = "host", "API", "bootstrap", "names", "operators"
NETWORK = "playbooks/network.yml repairs it."
START_OVER = "With ipi_install_restart=true all is removed and it starts over."
NEEDS_BOOTSTRAP = (Stage.API, Stage.BOOTSTRAP, Stage.CONTROL_PLANE, Stage.ETCD)
NEEDS_API = (Stage.API, Stage.BOOTSTRAP, Stage.ETCD, Stage.INITIALIZE, Stage.OPERATORS, Stage.CONSOLE)
MUCH_LOAD = 2.0
"""Of work that waits, for each processor."""
LITTLE_MEMORY = 0.04
MUCH_PRESSURE = {"cpu": 60.0, "memory": 15.0, "io": 50.0}
QUIET_SECONDS = 10 * usual.MINUTE
IMAGE_PORTS = (6180, 6183)
MOST_OPERATORS = 4


def findings(story: Story, evidence: Evidence, suspects: Collection[str] = ()) -> list[Finding]:
    """Suspects are subjects, as nodes, that stand still."""
    if story.stage is None or story.stage is Stage.COMPLETE:
        return []
    case = Case(story, evidence, frozenset(suspects))
    return list(dict.fromkeys(finding for judge in JUDGES for finding in judge(case)))


def overload(case: Case) -> Iterator[Finding]:
    host = case.evidence.host
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
        yield Finding(
            HOST, f"It is overloaded: {', '.join(signs)}. Everything takes longer, and nodes may hang. {advice}"
        )


def filters(case: Case) -> Iterator[Finding]:
    for rule in case.evidence.rules:
        ports = [port for port in IMAGE_PORTS if rule.refuses and rule.is_about(port)]
        if ports:
            yield Finding(HOST, f"The packet filter keeps from images on port {ports[0]}: {rule}. Remove that rule.")


def libvirt(case: Case) -> Iterator[Finding]:
    if case.evidence.libvirt_trouble:
        yield Finding(HOST, case.evidence.libvirt_trouble)


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
    elif not seen.address:
        macs = ", ".join(seen.macs)
        advice = f"The lab's DHCP server has given it none, and the host does not see it. {NETWORK}"
        yield Finding(BOOTSTRAP, f"{seen.name}, MAC address {macs}, has no address. {advice}")
    yield from _bootstrap_console(case)


def _bootstrap_console(case: Case) -> Iterator[Finding]:
    seen = case.evidence.bootstrap
    cause = of_console(seen.console)
    quiet = (seen.quiet_for or 0) > QUIET_SECONDS
    if cause:
        yield Finding(BOOTSTRAP, f"{cause} Its console ends with: {seen.console}")
    elif seen.state == "running" and quiet and case.story.stage is Stage.API:
        words = f"Its console is silent for {usual.words(seen.quiet_for or 0)}"
        yield Finding(BOOTSTRAP, f"{words}{f', since: {seen.console}' if seen.console else ''}")


def api(case: Case) -> Iterator[Finding]:
    if case.story.stage not in NEEDS_API:
        return
    for vip, trouble in case.evidence.host.api.items():
        if trouble:
            yield Finding(API, f"{vip} does not answer on port 6443: {trouble}. {_api_advice(case, trouble)}")
    if "x509" in case.story.api_trouble:
        said = case.story.api_trouble
        yield Finding(API, f"Something else answers there, another cluster say, or clocks differ: {said}")


def _api_advice(case: Case, trouble: str) -> str:
    seen = case.evidence.bootstrap
    if case.story.stage not in NEEDS_BOOTSTRAP:
        return "Control plane nodes hold the address by now: see their consoles."
    if "refused" not in trouble.lower():
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


JUDGES: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    *(libvirt, overload, filters, names, bootstrap, api),
    *(diagnosis_of_nodes.service, diagnosis_of_nodes.metal, diagnosis_of_nodes.machines),
    operators,
)
