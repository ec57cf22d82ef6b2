# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From failed checks and what is seen on the host to the cause, and what to do. Pure.

Each cause is a row: its code, the checks that fail by it, what it is known by, what it means, and what to do. The first
that is found is believed; where none is, there is advice for the check.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.causes_network import NETWORK
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.causes_network import ROWS as OF_NETWORK
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.causes_node import BMC, NODES
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.causes_node import ROWS as OF_NODES
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.causes_path import ROWS as OF_PATH
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import FAILED, HOST, Check

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.evidence import Evidence
    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab

CAUSES = (*OF_PATH, *OF_NETWORK, *OF_NODES)


def no_path(lab: Lab, evidence: Evidence) -> str:
    """Why nothing on the installer's bridge can reach anything; empty: it is not known to be so."""
    failed = Check("installer's bridge", HOST, FAILED)
    found = next(filter(None, (row.of(lab, evidence, failed) for row in OF_PATH)), None)
    return found.message.rstrip(".") if found else ""


def explained(lab: Lab, evidence: Evidence, checks: Sequence[Check]) -> list[Check]:
    return [_with_advice(lab, evidence, check) if check.state == FAILED else check for check in checks]


def _with_advice(lab: Lab, evidence: Evidence, check: Check) -> Check:
    cause = cause_of(lab, evidence, check)
    return replace(check, cause=cause, advice=cause.text if cause else ADVICE.get(check.check, ""))


def cause_of(lab: Lab, evidence: Evidence, check: Check) -> Finding | None:
    return next(filter(None, (row.of(lab, evidence, check) for row in CAUSES)), None)


ADVICE = {
    "boots": "Its console shows how far it came.",
    "comes to its end": "Its console says more; a host that is short of memory may have ended the VM.",
    "address": "The reservation and the VM's MAC address must agree: playbooks/network.yml, then playbooks/nodes.yml.",
    "MAC address": f"The VM's card has another MAC address than its reservation. {NODES}",
    "DHCP servers": f"The lab's dnsmasq does not answer on the bridge. {NETWORK}",
    "static routes": f"The pool's routes differ from the lab's. {NETWORK}",
    "gateway": f"DHCP names no router. {NETWORK}",
    "names": f"The records of the lab's name server differ from the lab's. {NETWORK}",
    "reverse names": f"The records of the lab's name server differ from the lab's. {NETWORK}",
    "names on the host": f"The host's resolver does not ask the lab's name server for the lab's domain. {NETWORK}",
    "time": "Nodes without the time do not become ready: name other servers in machine_network.ntp_servers.",
    "full-size frames": "A link on the way has a smaller MTU: compare the MTUs that `ip link` shows.",
    "way out": "The host does not translate what leaves the lab, or filters it: check its firewall and forward policy.",
    "virtual addresses free": "Choose other machine_network.vips, or find the lab or cluster that uses these.",
    "BMC login": f"The BMC does not know the password of /var/lib/nometal/bmc. {BMC}",
    "wrong password refused": f"The BMC accepts a wrong password, so it cannot be the lab's. {BMC}",
    "other VMs hidden": f"This account sees VMs that are not its own. {BMC}",
    "power and media": "The BMC's own log says more: journalctl -u 'nometal-bmc-*'.",
    "boots from its medium": "Its console shows how far it came. A host short of memory or processors is slow, too.",
    "hostname": f"The reservation gives another name. {NETWORK}",
    "firmware": f"The VM was made with other firmware. {NODES}",
    "hardware": f"The VM was made with other hardware, or waits for its next power cycle. {NODES}",
    "disks": f"The VM has other disks. {NODES}",
    "root disk": "The installer would not find a disk either: root_device_hints in lab_spec.nodes.overrides.",
    "disk written": "The pool may be full, or the disk broken: see the console.",
    "boots from its disk": "The BMC's boot order does not reach the VM: nodes would boot their medium for ever.",
    "virtual addresses": "The host does not reach the bootstrap VM: the address is used elsewhere, or filtered.",
    "other nodes": "Nodes do not reach each other: a filter on the bridge, such as Docker's policy with br_netfilter.",
    "installer's bridge": f"create cluster would stop at once. {NETWORK}",
}
