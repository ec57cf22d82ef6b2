# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Causes that lie in BMCs and VMs. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.causes_network import filtering
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import PORT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.evidence import Evidence
    from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import Check
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.vm import Start

NODES = "playbooks/nodes.yml repairs it."
BMC = "playbooks/bmc.yml repairs it."
SILENT = ("timed out", "timeout", "no route", "unreachable", "prohibited", "refused")
FROM_MEDIUM = "boots from its medium"


def bmc_door(lab: Lab, evidence: Evidence, check: Check) -> str:
    door = next((door for door in evidence.bmc_doors if door in check.seen), next(iter(evidence.bmc_doors), ""))
    if not door:
        return ""
    if evidence.bmc_doors[door]:
        return (
            f"Nothing answers at {door}, on the host itself neither: service nometal-bmc-{lab.name} does not run. {BMC}"
        )
    if "CERTIFICATE" in check.seen.upper():
        return f"The BMC's certificate is not of the lab's own CA, /var/lib/nometal/bmc/{lab.name}/tls/ca.pem. {BMC}"
    if any(word in check.seen.lower() for word in SILENT):
        return f"{door} answers on the host, but not to {lab.bridge}: it is filtered between them{_by(evidence, door)}"
    return ""


def _by(evidence: Evidence, door: str) -> str:
    rule = filtering(evidence, int(door.rpartition(" ")[2]))
    if rule:
        return f", by {rule}. Remove that rule."
    return f" ({evidence.firewall}). playbooks/bmc.yml opens it; a rule of somebody else's must go."


NO_ROOM = "too little room"
"""What the BMC service says when there is none."""


def medium_out_of_reach(lab: Lab, evidence: Evidence, check: Check) -> str:
    if not check.seen.startswith("insert"):
        return ""
    if NO_ROOM in check.seen:
        pool = f"nometal-{lab.name}-media"
        return f"The host has no room for the image in libvirt's pool {pool}: see `df`, and make room there."
    rule = filtering(evidence, PORT)
    told = f"The packet filter has {rule}." if rule else "Look at what filters the host's own traffic to that address."
    return f"The BMC service, on the host, must reach {lab.urls[0]}, where the bootstrap VM serves the image. {told}"


def is_read_only(lab: Lab, evidence: Evidence, check: Check) -> str:
    if not any(word in check.seen.lower() for word in ("read-only", "not permitted")):
        return ""
    start = evidence.starts.get((check.who, FROM_MEDIUM))
    if start and start.read_only:
        vm_name = lab.node(check.who)["vm_name"]
        disk = start.read_only[0]
        return f"libvirt gives the VM its disk {disk} read-only: take <readonly/> out with `virsh edit {vm_name}`."
    return "The disk is read-only, although libvirt gives it to the VM as one that is not: see where its file lies."


def wrong_start(lab: Lab, evidence: Evidence, check: Check) -> str:
    """What the BMC was told, and has said that it did, against how libvirt has started the VM."""
    if (check.who, check.check) not in evidence.starts:
        return ""
    start = evidence.starts[check.who, check.check]
    if start is None:
        return f"The VM was off, although its BMC had switched it on. {BMC}"
    if start.unplugged:
        vm, card = lab.node(check.who)["vm_name"], start.unplugged[0]
        return f"The VM's card {card} is unplugged (link state down): `virsh domif-setlink {vm} {card} up --config`."
    from_medium = check.check == FROM_MEDIUM
    by_network = from_medium and lab.boots_by_network
    wanted = "interface" if by_network else "cdrom" if from_medium else "disk"
    wrong = [*_medium(start, is_in=from_medium and not by_network), *_order(start, wanted)]
    return f"The VM was started with {', and with '.join(wrong)}. {BMC}" if wrong else ""


def _medium(start: Start, *, is_in: bool) -> Iterator[str]:
    if is_in and not start.medium:
        yield "an empty drive, although its BMC had inserted the medium"
    elif start.medium and not is_in:
        yield f"{start.medium} in its drive, although its BMC had ejected it"


def _order(start: Start, wanted: str) -> Iterator[str]:
    if start.order[:1] != [wanted]:
        yield f"the boot order {', '.join(start.order) or 'of nothing'}, although its BMC was told {wanted}"
