# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what Ironic, metal3 and consoles say to the cause, and what to do. Pure: the first that fits is believed."""

from __future__ import annotations

import re

BMC = "playbooks/bmc.yml repairs it."
BMC_LOG = "journalctl -u 'nometal-bmc-*' says what the BMC service met."
PASSWORDS = (
    "The installer keeps to the passwords with which it began: put those back into the lab's credentials.json in "
    "/var/lib/nometal/bmc and run playbooks/bmc.yml, or begin anew with ipi_install_restart=true."
)
OUTSIDE = "See the host's way out, its forwarding and the mirror registry; playbooks/rehearse.yml tries the ways."

MEDIUM = (
    "Its BMC could not take the medium: the BMC service, on the host, must reach the API address on ports 6180 and "
    f"6183, and trust what answers there. {BMC_LOG}"
)
AGENT = (
    "It was started, but the agent on its medium never reached Ironic: its console says how far it came, and "
    "playbooks/rehearse.yml tries address, gateway and names."
)
METAL = (
    (
        r"virtual ?media|(?:insert|eject)\w*[\s_.-]*(?:virtual|media|image)|InsertMedia|EjectMedia",
        MEDIUM,
    ),
    (
        r"certificate|\bx509\b|\bSSL|\btls:",
        f"The certificate of its BMC is not trusted: the install-config must carry the lab's own CA. {BMC}",
    ),
    (
        r"\b(?:40[13]|429)\b|failed logins|unauthori[sz]ed|forbidden|authenticat|invalid user|credentials",
        f"Its BMC refuses the password. {PASSWORDS}",
    ),
    (
        r"no suitable device|root.?device|root.?disk|\bhints?\b",
        "None of its disks fits: see root_device_hints in lab_spec.nodes.overrides, and its VM's disks.",
    ),
    (
        r"inspect\w* .*time|time\w* .*(?:inspect|callback|agent|ramdisk)|heartbeat",
        AGENT,
    ),
    (
        r"\bMAC\b.*(?:match|conflict|in use)|already (?:registered|in use)",
        "Another host has its MAC address: see the nodes' nics in the lab's specification.",
    ),
    (
        r"timed? ?out|refused|no route|unreachable|(?:could not|failed to) connect|connection (?:error|aborted|reset)",
        f"Its BMC, on the host, is not reached from inside of the lab: it is filtered, or its service is down. {BMC}",
    ),
    (r"power", f"Its BMC did not switch it as asked. {BMC_LOG}"),
)

CONSOLE = (
    (r"No space left on device", "Its disk is full: see `df` on the host, and the release's size."),
    (r"[Kk]ernel panic|Out of memory|oom-kill", "Its system broke down, for want of memory most likely: give it more."),
    (
        r"unauthorized|authentication required|not authorized|denied: ",
        "The registry refuses the pull secret: take a fresh one, with entries for all registries that are used.",
    ),
    (
        r"x509|certificate (?:signed by|verify|has expired)",
        "It does not trust a registry or a proxy: name its CA in the additional trust bundle, and compare clocks.",
    ),
    (
        r"no such host|name resolution|server misbehaving",
        "It cannot resolve names outside of the lab: see the host's name servers, to which the lab's dnsmasq hands on.",
    ),
    (
        r"i/o timeout|handshake timeout|[Nn]etwork is unreachable|[Cc]onnection timed out",
        f"It has no way out. {OUTSIDE}",
    ),
    (
        r"emergency (?:mode|shell)|[Ii]gnition.{0,40}(?:fail|error)|Failed to fetch config",
        "Ignition failed, so it stays in the emergency shell: its whole console says which of its steps.",
    ),
    (
        r"Shell>|[Nn]o bootable|[Bb]oot failed|not a bootable|PXE-E|BdsDxe: failed",
        "Its firmware found nothing to boot: see the medium in its drive and the boot order that its BMC was told.",
    ),
)


def of_metal(message: str) -> str:
    return _first(METAL, message, re.IGNORECASE)


def of_console(words: str) -> str:
    return _first(CONSOLE, words)


def _first(table: tuple[tuple[str, str], ...], text: str, flags: int = 0) -> str:
    return next((advice for pattern, advice in table if re.search(pattern, text, flags)), "")
