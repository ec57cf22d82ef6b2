# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass

from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor.finding import ok, warning
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs
from ansible_collections.nometal.ipi.plugins.module_utils._observe.host import text_if_there

NAMESERVERS_READ = 3  # glibc's limit
LABS_SERVER = "127.78.77.53"  # put there by split_dns, while a lab's network runs
IPV6_LOCALHOST = ("::1", "localhost")  # by which parts of the installation reach each other
NO_NAMESERVER = "/etc/resolv.conf names no name server"


@dataclass(frozen=True)
class Resolver:
    """Read from files alone: a query would leave the host."""

    hostname: str
    hosts: tuple[tuple[str, str], ...]  # address, name
    hostname_by_nss: bool
    nameservers: tuple[str, ...]
    dead_nameservers: tuple[str, ...]


def measure_resolver(_needs: Needs) -> Resolver:
    listed = _nameservers(text_if_there("/etc/resolv.conf"))
    nameservers = tuple(server for server in listed if server != LABS_SERVER)[:NAMESERVERS_READ]
    return Resolver(
        hostname=socket.gethostname(),
        hosts=tuple(_hosts(text_if_there("/etc/hosts"))),
        hostname_by_nss="myhostname" in text_if_there("/etc/nsswitch.conf"),
        nameservers=nameservers,
        dead_nameservers=tuple(server for server in nameservers if _is_loopback(server) and not _listens(server)),
    )


def _nameservers(text: str) -> list[str]:
    words = (line.split() for line in text.splitlines())
    return [word[1] for word in words if len(word) > 1 and word[0] == "nameserver"]


def _hosts(text: str) -> list[tuple[str, str]]:
    words = (line.partition("#")[0].split() for line in text.splitlines())
    return [(word[0], name) for word in words for name in word[1:]]


def _is_loopback(server: str) -> bool:
    try:
        return ipaddress.ip_address(server.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _listens(server: str) -> bool:
    """A datagram to a closed port of this host is refused at once, without traffic outside."""
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.settimeout(0.2)
        try:
            probe.connect((server, 53))
            probe.send(b"")
            probe.recv(1)
        except ConnectionRefusedError:
            return False
        except OSError:
            return True  # no answer: a name server ignores an empty datagram
    return True


def judge_resolver(found: Resolver, needs: Needs) -> Finding:
    errors = _errors(found, needs)
    if errors == [NO_NAMESERVER]:
        advice = "The host has no name server: set one in its network configuration, or in /etc/resolv.conf."
        return warning("resolver.no-name-server", NO_NAMESERVER, advice)
    if errors:
        advice = "Fix /etc/hosts or the configuration of the resolver."
        return warning("resolver.misconfigured", "; ".join(errors), advice, name_servers=list(found.nameservers))
    return ok(
        "resolver.works",
        f"{found.hostname} and localhost are known; name servers: {', '.join(found.nameservers)}",
        hostname=found.hostname,
        name_servers=list(found.nameservers),
    )


def _errors(found: Resolver, needs: Needs) -> list[str]:
    known = {entry[1] for entry in found.hosts}
    subnets = [subnet for network in needs.networks for subnet in network.subnets]
    in_lab = [server for server in found.nameservers if any(_lies_in(server, subnet) for subnet in subnets)]
    shadows = sorted(name for name in known if needs.domain and f".{name}".endswith(f".{needs.domain}"))
    possible = [
        ("localhost is not in /etc/hosts", "localhost" not in known),
        ("/etc/hosts lacks `::1 localhost`", needs.install and IPV6_LOCALHOST not in found.hosts),
        (
            f"the host's own name {found.hostname} is not in /etc/hosts",
            found.hostname not in known and not found.hostname_by_nss,
        ),
        (NO_NAMESERVER, not found.nameservers),
        (f"nothing listens on name server {', '.join(found.dead_nameservers)}", bool(found.dead_nameservers)),
        (f"/etc/resolv.conf sends everything to the lab's range ({', '.join(in_lab)})", bool(in_lab)),
        (f"/etc/hosts shadows the lab's DNS: {', '.join(shadows[:4])}", bool(shadows)),
    ]
    return [text for text, holds in possible if holds]


def _lies_in(server: str, subnet: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    try:
        return ipaddress.ip_address(server) in subnet
    except ValueError:
        return False
