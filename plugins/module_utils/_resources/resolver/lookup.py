# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the host knows a lab's names: it is asked for them, the way its programs ask."""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._agent import lookups
from ansible_collections.nometal.ipi.plugins.module_utils._core import wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import read_links
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver import host_server

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.state import Lab

PATIENCE = 20.0
ANSWER_SECONDS, PROGRAM_SECONDS = 1.0, 10.0


def wait_until_known(lab: Lab, evidence: str) -> None:
    for _look in wait.looks(PATIENCE, 0.1):
        found = complaint(lab)
        if not found:
            return
    raise OperatorError(f"The host does not know the names of lab {lab.owner}: {found}; {evidence}.")


def complaint(lab: Lab) -> str:
    """What is wrong; nothing where all is well, or where there is no server to ask, since the network is down."""
    if not can_be_known(lab):
        return ""
    return next(filter(None, (_complaint_of(name, lab) for name in lab.names)), "")


def can_be_known(lab: Lab) -> bool:
    link = read_links().get(lab.link)
    # systemd-resolved asks no server on a link without carrier.
    return link is not None and (link.carrier or not _is_resolveds())


def _complaint_of(name: str, lab: Lab) -> str:
    told = next(filter(None, (_asked(name, server) for server in lab.servers)), set())
    if not told:
        servers = " and ".join(lab.servers)
        return f"the lab's own DNS server, {servers} on {lab.link}, gives no address for {name}"
    text = f"the lab's DNS server gives {_shown(told)} for {name}"
    found = found_by_programs(name)
    if not found & told:
        files = "/etc/hosts and the line `hosts` of /etc/nsswitch.conf count, too"
        return f"{text}, programs of the host (getent ahosts {name}) find {_shown(found)} ({files})"
    first = _first_nameserver()
    if first and not (found := _asked(name, first)) & told:
        return f"{text}, {first}, the first name server in {host_server.RESOLV_CONF}, gives {_shown(found)}"
    return ""


def _asked(name: str, server: str) -> set[str]:
    return set(lookups.addresses_of(name, server, ANSWER_SECONDS)[0])


def found_by_programs(name: str) -> set[str]:
    """In a process of its own, for glibc may keep what it has read of resolv.conf."""
    with suppress(subprocess.TimeoutExpired):
        ask = ["getent", "ahosts", name]
        shown = subprocess.run(ask, check=False, capture_output=True, text=True, timeout=PROGRAM_SECONDS).stdout
        return {str(ip_address(line.split()[0].partition("%")[0])) for line in shown.splitlines()}
    return set()


def _first_nameserver() -> str:
    """Of this host's own, which is asked by programs that do not go by nsswitch.conf, such as the installer."""
    found = re.findall(r"^nameserver[ \t]+(\S+)", host_server.read_resolv_conf(), re.MULTILINE)
    return found[0] if found and found[0].startswith("127.") else ""


def _is_resolveds() -> bool:
    is_its_file = os.path.realpath(host_server.RESOLV_CONF).startswith(host_server.RESOLVED)
    return is_its_file or _first_nameserver() in host_server.RESOLVED_STUBS


def _shown(addresses: set[str]) -> str:
    return ", ".join(sorted(addresses)) or "none"
