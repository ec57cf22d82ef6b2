# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bootstrap VM as it can be seen from the host."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import nodes as diagnosis_nodes
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.bootstrap_services import Services
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.installation import Addressing
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BootstrapAddress
from ansible_collections.nometal.ipi.plugins.module_utils._observe import consoles, domain_xml, infra
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import read_links, read_neighbours

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths
    from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import Link

SSH_PORT, PROBE_SECONDS = 22, 2
PAUSED = 3
IO_ERROR = 5


@dataclass(frozen=True)
class Bootstrap:
    name: str = ""
    """Empty: there is none."""
    state: str = ""
    no_room: bool = False
    """Whether libvirt has paused it because its disk cannot be written."""
    macs: Sequence[str] = ()
    address: str = ""
    """By a lease, or as the host's neighbour."""
    mode: str = BootstrapAddress.POOL
    fixed_ips: Sequence[str] = ()
    reserved_mac: str = ""
    """For which the lab's DHCP server has its fixed addresses."""
    has_carrier: bool = True
    """Whether its first card is plugged into a bridge that is up."""
    console: str = ""
    services: Services = field(default_factory=Services)
    quiet_for: float | None = None
    """Seconds without a word on its console; None: that is not kept, as before 4.22."""


def look(connection: Any, paths: Paths, addressing: Addressing = Addressing()) -> Bootstrap:  # noqa: B008 - immutable
    domain = _domain(connection, paths)
    if domain is None:
        return Bootstrap()
    try:
        root, (state, reason) = domain_xml.parsed(domain.XMLDesc()), domain.state()
    except libvirt.libvirtError:  # it has just been removed
        return Bootstrap()
    macs = domain_xml.macs_of(root)
    for ip in addressing.ips:  # a neighbour is only who was spoken to
        probe(ip)
    log = diagnosis_nodes.console_of(root) or str(consoles.CONSOLES / f"{domain.name()}-serial0.log")
    spoke_at = diagnosis_nodes.touched(log)
    return Bootstrap(
        name=domain.name(),
        state=diagnosis_nodes.STATES.get(state, "unknown"),
        no_room=(state, reason) == (PAUSED, IO_ERROR),
        macs=macs,
        address=next(_addresses(connection, macs), ""),
        mode=addressing.mode,
        fixed_ips=addressing.ips,
        reserved_mac=addressing.mac,
        has_carrier=has_carrier(root, read_links()),
        console=diagnosis_nodes.last_words(log),
        quiet_for=None if spoke_at is None else max(time.time() - spoke_at, 0.0),
    )


def _domain(connection: Any, paths: Paths) -> Any:
    known = {infra.bootstrap_of(infra_id) for infra_id in infra.ids_of(paths)}
    pattern = infra.pattern_of(paths.lab)
    there = {domain.name(): domain for domain in connection.listAllDomains()}
    own = [name for name in there if (name in known if known else pattern.fullmatch(name))]
    return there[own[0]] if len(own) == 1 else None


def probe(address: str) -> None:
    with suppress(OSError):
        socket.create_connection((address, SSH_PORT), PROBE_SECONDS).close()


def has_carrier(root: Any, links: Mapping[str, Link]) -> bool:
    """Of the card by which it is to be reached, the first one. What is not known counts as well."""
    card = root.find("devices/interface")
    if card is None:
        return True
    state, target = card.find("link"), card.find("target")
    if state is not None and state.get("state") == "down":
        return False
    port = links.get("" if target is None else target.get("dev", ""))
    bridge = links.get(port.master or "") if port else None
    return port is None or (port.up and bridge is not None and bridge.up)


def _addresses(connection: Any, macs: Sequence[str]) -> Iterator[str]:
    for network in connection.listAllNetworks(libvirt.VIR_CONNECT_LIST_NETWORKS_ACTIVE):
        with suppress(libvirt.libvirtError):
            yield from (lease["ipaddr"] for lease in network.DHCPLeases() if (lease["mac"] or "").lower() in macs)
    yield from (found.address for found in read_neighbours() if found.mac in macs)
