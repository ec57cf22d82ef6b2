# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is seen on the host once something has failed, so that its cause can be told rather than its symptom."""

from __future__ import annotations

import shutil
import socket
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._agent import lookups
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BmcProtocol
from ansible_collections.nometal.ipi.plugins.module_utils._observe import (
    domain_xml,
    network_filter,
    network_xml,
    packet_filter,
)
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import macs_of_neighbours, read_links

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import Observations
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.vm import Start
    from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import Link
    from ansible_collections.nometal.ipi.plugins.module_utils._observe.packet_filter import Rule

CONNECT_SECONDS = 2
DNS_SECONDS = 0.5
FORWARDING = {"ipv4": Path("/proc/sys/net/ipv4/ip_forward"), "ipv6": Path("/proc/sys/net/ipv6/conf/all/forwarding")}


@dataclass(frozen=True)
class Door:
    """Where a BMC listens."""

    host: str
    port: int
    error: str = ""
    """Why the host itself does not get in; empty when it does."""


@dataclass(frozen=True)
class Evidence:
    links: Mapping[str, Link] = field(default_factory=dict)
    networks: Mapping[str, bool] = field(default_factory=dict)
    """Whether each libvirt network is started."""
    bmc_doors: Sequence[Door] = ()
    firewall: str = ""
    leases: Sequence[tuple[str, str]] = ()
    """Address and MAC address of each that the machine network has given."""
    forwarding: Mapping[str, bool] = field(default_factory=dict)
    neighbours: Mapping[str, str] = field(default_factory=dict)
    """MAC addresses by address."""
    machines: Mapping[str, str] = field(default_factory=dict)
    """What has a MAC address on this host: a VM or a link."""
    rules: Sequence[Rule] = ()
    """Of the packet filter; none if they could not be read."""
    lost_rules: Sequence[str] = ()
    """Chains of the packet filter without libvirt's rules for the machine network."""
    records: Collection[str] = ()
    """Names in the DNS of the machine network, as libvirt has them."""
    name_server: str = ""
    """Why the lab's name server does not answer the host itself; empty when it does."""
    starts: Mapping[tuple[str, str], Start | None] = field(default_factory=dict)
    """How VMs were started, by node and by what they were started for; None: they were not."""

    def with_observations(self, observed: Observations) -> Evidence:
        neighbours = {**self.neighbours, **observed.seen.get("neighbours", {})}
        return replace(self, neighbours=neighbours, starts=observed.host.get("starts", {}))


def of_path(connection: Any) -> Evidence:
    """What is seen at a glance."""
    return Evidence(
        links=read_links(),
        networks={network.name(): bool(network.isActive()) for network in connection.listAllNetworks()},
    )


def gather(connection: Any, lab: Lab) -> Evidence:
    seen, definition = of_path(connection), _definition(connection, lab)
    runs = seen.networks.get(lab.machine_network.name)
    links = {link.mac: f"link {name}" for name, link in seen.links.items() if link.mac}
    return replace(
        seen,
        bmc_doors=_doors(lab) if runs and lab.bmc.protocol != BmcProtocol.IPMI else (),
        firewall=_firewall(lab),
        leases=_leases(connection, lab),
        forwarding={family: _is_one(path) for family, path in FORWARDING.items() if path.exists()},
        neighbours=macs_of_neighbours(),
        machines={**links, **_vms(connection)},
        rules=packet_filter.read(),
        lost_rules=network_filter.lost_of(network_xml.definition_of(_description(connection, lab))) if runs else (),
        records={name.text or "" for name in definition.iterfind("dns/host/hostname")},
        name_server=lookups.addresses_of(f"api.{lab.domain}", lab.gateways[0], DNS_SECONDS)[1] if runs else "",
    )


def _vms(connection: Any) -> dict[str, str]:
    found = {}
    with suppress(libvirt.libvirtError):  # one that goes away meanwhile
        for domain in connection.listAllDomains():
            macs = domain_xml.macs_of(domain_xml.parsed(domain.XMLDesc()))
            found.update(dict.fromkeys(macs, f"VM {domain.name()}"))
    return found


def _definition(connection: Any, lab: Lab) -> Any:
    return domain_xml.parsed(_description(connection, lab))


def _description(connection: Any, lab: Lab) -> str:
    with suppress(libvirt.libvirtError):
        return str(connection.networkLookupByName(lab.machine_network.name).XMLDesc())
    return "<network/>"


def _doors(lab: Lab) -> list[Door]:
    places = {(node.bmc.host, node.bmc.port) for node in lab.nodes}
    return [Door(host, port, _error_at(host, port)) for host, port in sorted(places)]


def _error_at(host: str, port: int) -> str:
    try:
        socket.create_connection((host, port), CONNECT_SECONDS).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _firewall(lab: Lab) -> str:
    bridge = lab.machine_network.bridge
    if shutil.which("firewall-cmd"):
        with suppress(OperatorError):
            return f"firewalld, zone {run('firewall-cmd', f'--get-zone-of-interface={bridge}').strip()}"
    return " or ".join(program for program in ("nft", "iptables") if shutil.which(program)) or "the firewall"


def _leases(connection: Any, lab: Lab) -> list[tuple[str, str]]:
    try:
        leases = connection.networkLookupByName(lab.machine_network.name).DHCPLeases()
    except libvirt.libvirtError:
        return []
    return [(lease["ipaddr"], lease["mac"] or "") for lease in leases]


def _is_one(path: Path) -> bool:
    return path.read_text(encoding="ascii").strip() == "1"
