# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what Ironic, metal3 and consoles say to the cause, and what to do. Pure: the first row that fits is believed."""

from __future__ import annotations

import re
from dataclasses import dataclass

BMC = "playbooks/bmc.yml repairs it."
BMC_LOG = "journalctl -u 'nometal-bmc-*' says what the BMC service met."
REFUSED = "metal.password"
PASSWORDS = (
    "The installer keeps to the passwords with which it began: put those back into the lab's credentials.json in "
    "/var/lib/nometal/bmc and run playbooks/bmc.yml, or begin anew with ipi_install_restart=true."
)
OUTSIDE = "See the host's way out, its forwarding and the mirror registry; playbooks/rehearse.yml tries the ways."


@dataclass(frozen=True)
class Cause:
    code: str
    pattern: str
    """Of what programs say that are not ours."""
    message: str
    advice: str


METAL = (
    Cause(
        "metal.medium",
        r"virtual ?media|(?:insert|eject)\w*[\s_.-]*(?:virtual|media|image)|InsertMedia|EjectMedia",
        "Its BMC could not take the medium.",
        "The BMC service, on the host, must reach the API address on ports 6180 and 6183, and trust what answers "
        f"there. {BMC_LOG}",
    ),
    Cause(
        "metal.certificate",
        r"certificate|\bx509\b|\bSSL|\btls:",
        "The certificate of its BMC is not trusted.",
        f"The install-config must carry the lab's own CA. {BMC}",
    ),
    Cause(
        REFUSED,
        r"\b(?:40[13]|429)\b|failed logins|unauthori[sz]ed|forbidden|authenticat|invalid user|credentials",
        "Its BMC refuses the password.",
        PASSWORDS,
    ),
    Cause(
        "metal.root-device",
        r"no suitable device|root.?device|root.?disk|\bhints?\b",
        "None of its disks fits.",
        "See root_device_hints in lab_spec.nodes.overrides, and its VM's disks.",
    ),
    Cause(
        "metal.agent",
        r"inspect\w* .*time|time\w* .*(?:inspect|callback|agent|ramdisk)|heartbeat",
        "It was started, but the agent on its medium never reached Ironic.",
        "Its console says how far it came, and playbooks/rehearse.yml tries address, gateway and names.",
    ),
    Cause(
        "metal.mac",
        r"\bMAC\b.*(?:match|conflict|in use)|already (?:registered|in use)",
        "Another host has its MAC address.",
        "See the nodes' nics in the lab's specification.",
    ),
    Cause(
        "metal.unreachable",
        r"timed? ?out|refused|no route|unreachable|(?:could not|failed to) connect|connection (?:error|aborted|reset)",
        "Its BMC, on the host, is not reached from inside of the lab: it is filtered, or its service is down.",
        BMC,
    ),
    Cause("metal.power", r"power", "Its BMC did not switch it as asked.", BMC_LOG),
)

CONSOLE = (
    Cause(
        "console.disk-full",
        r"No space left on device",
        "Its disk is full.",
        "See `df` on the host, and the release's size.",
    ),
    Cause(
        "console.broke-down",
        r"[Kk]ernel panic|Out of memory|oom-kill",
        "Its system broke down, for want of memory most likely.",
        "Give it more.",
    ),
    Cause(
        "console.pull-secret",
        r"unauthorized|authentication required|not authorized|denied: ",
        "The registry refuses the pull secret.",
        "Take a fresh one, with entries for all registries that are used.",
    ),
    Cause(
        "console.certificate",
        r"x509|certificate (?:signed by|verify|has expired)",
        "It does not trust a registry or a proxy.",
        "Name its CA in the additional trust bundle, and compare clocks.",
    ),
    Cause(
        "console.names",
        r"no such host|name resolution|server misbehaving",
        "It cannot resolve names outside of the lab.",
        "See the host's name servers, to which the lab's dnsmasq hands on.",
    ),
    Cause(
        "console.outside",
        r"i/o timeout|handshake timeout|[Nn]etwork is unreachable|[Cc]onnection timed out",
        "It has no way out.",
        OUTSIDE,
    ),
    Cause(
        "console.ignition",
        r"emergency (?:mode|shell)|[Ii]gnition.{0,40}(?:fail|error)|Failed to fetch config",
        "Ignition failed, so it stays in the emergency shell.",
        "Its whole console says which of its steps.",
    ),
    Cause(
        "console.nothing-to-boot",
        r"Shell>|[Nn]o bootable|[Bb]oot failed|not a bootable|PXE-E|BdsDxe: failed",
        "Its firmware found nothing to boot.",
        "See the medium in its drive and the boot order that its BMC was told.",
    ),
)


def of_metal(message: str) -> Cause | None:
    return _first(METAL, message, re.IGNORECASE)


def of_console(words: str) -> Cause | None:
    return _first(CONSOLE, words)


def _first(table: tuple[Cause, ...], text: str, flags: int = 0) -> Cause | None:
    return next((cause for cause in table if re.search(cause.pattern, text, flags)), None)
