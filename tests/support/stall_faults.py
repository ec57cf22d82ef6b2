"""What must be found to be wrong with installations, by fault: on whole hosts, and of what was recorded there.

By fault, a pattern for all of each finding: who, what, and what to do.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.finding import Finding

BOOTSTRAP = r"lab-[a-z0-9]{5}-bootstrap"
MAC = r"52:54:00(:[0-9a-f]{2}){3}"
IN_MINE = r"in table inet mine, chain in\. Remove that rule\."
NAME, VIP = r"api\.lab\.lab\.example\.test", r"192\.168\.126\.5"
ADDRESS = r"192\.168\.126\.\d+"
SILENT = r"Those of all nodes: No answer, on the host itself neither:"
NO_LEASE = r"The lab's DHCP server has given it none, and the host does not see it\."
PUT_BACK = (
    r"The installer keeps to the passwords with which it began: put those back into the lab's credentials\.json in "
    r"/var/lib/nometal/bmc and run playbooks/bmc\.yml, or begin anew with ipi_install_restart=true\."
)
NO_API = (
    rf"API: {VIP} does not answer on port 6443: Connection refused\. "
    r"The bootstrap VM is there, but has no API yet: "
)
JOURNAL = rf"`ssh core@{ADDRESS} journalctl -b -u release-image -u bootkube`"
TELLS_WHY = r"tells why, a pull secret or a way out most often\."
FAULTS: dict[str, Sequence[str]] = {
    "bootstrap_without_address": (
        rf"host: The packet filter keeps from the DHCP server on port 67: `udp dport 67 drop` {IN_MINE}",
        rf"bootstrap: {BOOTSTRAP}, MAC address {MAC}, has no address\. {NO_LEASE}",
    ),
    "bmcs_stopped": (rf"BMC: {SILENT} .*Connection refused\. playbooks/bmc\.yml repairs it\.",),
    "failed_at_once": (),
    "api_not_up": (rf"{NO_API}{JOURNAL} {TELLS_WHY}",),
    "libvirt_stopped": (
        r"host: libvirt does not answer: .*qemu:///system.*; see `systemctl status libvirtd`, or virtqemud\.",
        rf"{NO_API}its journal {TELLS_WHY}",
    ),
    "api_name_unknown": (
        rf"names: To the host's resolver, {NAME} is not known; it must be {VIP}\. playbooks/network\.yml repairs it\.",
        rf"{NO_API}{JOURNAL} {TELLS_WHY}",
    ),
    "bmcs_filtered": (
        rf"host: The packet filter keeps from the BMCs on port 8000: `tcp dport 8000 drop` {IN_MINE}",
        rf"BMC: {SILENT} .*timed out\. Packets are filtered, or the service hangs\. journalctl -u .*",
    ),
    "bmc_passwords_changed": (
        rf"BMC: Those of all nodes: The host's own password is refused, that of `operator`\. {PUT_BACK}",
    ),
    "bootstrap_switched_off": (
        rf"bootstrap: {BOOTSTRAP} is off: `virsh start {BOOTSTRAP}`, or see why in its qemu's log\.",
    ),
}


def judge(fault: str, found: Sequence[Finding]) -> None:
    expected, said = FAULTS[fault], [str(finding) for finding in found]
    assert len(said) == len(expected), said
    for pattern, finding in zip(expected, said):
        assert re.fullmatch(pattern, finding), said
