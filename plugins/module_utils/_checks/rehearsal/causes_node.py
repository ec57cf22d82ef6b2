# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Causes that lie in BMCs and VMs. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._agent.redfish import CERTIFICATE, NO_ROOM, SILENT
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.cause import Cause
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.causes_network import filtering
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import PORT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.cause import Facts
    from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.evidence import Door, Evidence
    from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import Check
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.vm import Start

NODES = "playbooks/nodes.yml repairs it."
BMC = "playbooks/bmc.yml repairs it."
FROM_MEDIUM, FROM_DISK = "boots from its medium", "boots from its disk"
STARTS = (FROM_MEDIUM, FROM_DISK)
BMC_ANSWERS, MEDIA, DISK_WRITTEN = ("BMC answers",), ("power and media",), ("disk written",)


def _door(lab: Lab, evidence: Evidence, check: Check) -> Door | None:
    bmc = lab.node(check.who).bmc
    return next((door for door in evidence.bmc_doors if (door.host, door.port) == (bmc.host, bmc.port)), None)


def no_service(lab: Lab, evidence: Evidence, check: Check) -> Facts:
    door = _door(lab, evidence, check)
    if not door or not door.error:
        return None
    return {"host": door.host, "port": door.port, "service": f"nometal-bmc-{lab.name}"}


def foreign_certificate(lab: Lab, evidence: Evidence, check: Check) -> Facts:
    is_it = _door(lab, evidence, check) and check.facts.get("failure") == CERTIFICATE
    return {"ca": f"/var/lib/nometal/bmc/{lab.name}/tls/ca.pem"} if is_it else None


def filtered_by_rule(lab: Lab, evidence: Evidence, check: Check) -> Facts:
    facts = filtered(lab, evidence, check)
    rule = filtering(evidence, facts["port"]) if facts else None
    return {**facts, "rule": str(rule)} if facts and rule else None


def filtered(lab: Lab, evidence: Evidence, check: Check) -> Facts:
    door = _door(lab, evidence, check)
    if not door or check.facts.get("failure") != SILENT:
        return None
    return {"host": door.host, "port": door.port, "bridge": lab.bridge, "firewall": evidence.firewall}


def _is_inserting(check: Check) -> bool:
    return check.facts.get("step") == "insert"


def no_room(lab: Lab, _evidence: Evidence, check: Check) -> Facts:
    is_it = _is_inserting(check) and check.facts.get("failure") == NO_ROOM
    return {"pool": f"nometal-{lab.name}-media"} if is_it else None


def filtered_medium(lab: Lab, evidence: Evidence, check: Check) -> Facts:
    rule = filtering(evidence, PORT) if _is_inserting(check) else None
    return {"url": lab.urls[0], "rule": str(rule)} if rule else None


def medium_out_of_reach(lab: Lab, _evidence: Evidence, check: Check) -> Facts:
    return {"url": lab.urls[0]} if _is_inserting(check) else None


def given_read_only(lab: Lab, evidence: Evidence, check: Check) -> Facts:
    start = evidence.starts.get((check.who, FROM_MEDIUM))
    if not (check.facts.get("is_read_only") and start and start.read_only):
        return None
    return {"vm": lab.node(check.who).vm_name, "disk": start.read_only[0]}


def is_read_only(_lab: Lab, _evidence: Evidence, check: Check) -> Facts:
    return {} if check.facts.get("is_read_only") else None


def not_on(_lab: Lab, evidence: Evidence, check: Check) -> Facts:
    return {} if evidence.starts.get((check.who, check.check), ...) is None else None


def unplugged(lab: Lab, evidence: Evidence, check: Check) -> Facts:
    start = evidence.starts.get((check.who, check.check))
    return {"vm": lab.node(check.who).vm_name, "mac": start.unplugged[0]} if start and start.unplugged else None


def wrong_start(lab: Lab, evidence: Evidence, check: Check) -> Facts:
    """What the BMC was told, and has said that it did, against how libvirt has started the VM."""
    start = evidence.starts.get((check.who, check.check))
    if start is None:
        return None
    from_medium = check.check == FROM_MEDIUM
    by_network = from_medium and lab.boots_by_network
    wanted = "interface" if by_network else "cdrom" if from_medium else "disk"
    needs_medium = from_medium and not by_network
    if _is_right(start, wanted, needs_medium=needs_medium):
        return None
    return {"medium": start.medium, "needs_medium": needs_medium, "order": [*start.order], "wanted": wanted}


def _is_right(start: Start, wanted: str, *, needs_medium: bool) -> bool:
    return bool(start.medium) == needs_medium and start.order[:1] == [wanted]


def _started_with(medium: str, needs_medium: bool, order: Sequence[str], wanted: str) -> str:
    return f"The VM was started with {', and with '.join(_differences(medium, needs_medium, order, wanted))}."


def _differences(medium: str, needs_medium: bool, order: Sequence[str], wanted: str) -> Iterator[str]:
    if needs_medium and not medium:
        yield "an empty drive, although its BMC had inserted the medium"
    elif medium and not needs_medium:
        yield f"{medium} in its drive, although its BMC had ejected it"
    if [*order[:1]] != [wanted]:
        yield f"the boot order {', '.join(order) or 'of nothing'}, although its BMC was told {wanted}"


FILTERED = "{host} port {port} answers on the host, but not to {bridge}: it is filtered between them"
MUST_REACH = "The BMC service, on the host, must reach {url}, where the bootstrap VM serves the image."

ROWS = (
    Cause(
        "bmc.no-service",
        BMC_ANSWERS,
        no_service,
        "Nothing answers at {host} port {port}, not even on the host itself: service {service} does not run.",
        BMC,
    ),
    Cause(
        "bmc.certificate",
        BMC_ANSWERS,
        foreign_certificate,
        "The BMC's certificate is not of the lab's own CA, {ca}.",
        BMC,
    ),
    Cause("bmc.filtered-by-rule", BMC_ANSWERS, filtered_by_rule, f"{FILTERED}, by {{rule}}.", "Remove that rule."),
    Cause(
        "bmc.filtered",
        BMC_ANSWERS,
        filtered,
        f"{FILTERED} ({{firewall}}).",
        "playbooks/bmc.yml opens the port; remove a rule of another program yourself.",
    ),
    Cause(
        "medium.no-room",
        MEDIA,
        no_room,
        "The host has no room for the image in libvirt's pool {pool}:",
        "see `df`, and make room there.",
    ),
    Cause("medium.filtered", MEDIA, filtered_medium, f"{MUST_REACH} The packet filter has {{rule}}."),
    Cause(
        "medium.out-of-reach",
        MEDIA,
        medium_out_of_reach,
        MUST_REACH,
        "Look at what filters the host's own traffic to that address.",
    ),
    Cause(
        "disk.given-read-only",
        DISK_WRITTEN,
        given_read_only,
        "libvirt gives the VM its disk {disk} read-only:",
        "take <readonly/> out with `virsh edit {vm}`.",
    ),
    Cause(
        "disk.read-only",
        DISK_WRITTEN,
        is_read_only,
        "The disk is read-only, although libvirt gives it to the VM as one that is not:",
        "see where its file lies.",
    ),
    Cause("vm.off", STARTS, not_on, "The VM was off, although its BMC had switched it on.", BMC),
    Cause(
        "vm.unplugged",
        STARTS,
        unplugged,
        "The VM's card {mac} is unplugged (link state down):",
        "`virsh domif-setlink {vm} {mac} up --config`.",
    ),
    Cause("vm.wrong-start", STARTS, wrong_start, _started_with, BMC),
)
"""In this order: the first that is found is believed."""
