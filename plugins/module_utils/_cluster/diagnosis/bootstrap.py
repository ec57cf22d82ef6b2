# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bootstrap VM as it can be seen from the host."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import nodes as diagnosis_nodes
from ansible_collections.nometal.ipi.plugins.module_utils._observe import consoles, domain_xml, infra
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import read_neighbours

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths

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
    console: str = ""
    quiet_for: float | None = None
    """Seconds without a word on its console; None: that is not kept, as before 4.22."""


def look(connection: Any, paths: Paths) -> Bootstrap:
    domain = _domain(connection, paths)
    if domain is None:
        return Bootstrap()
    try:
        root, (state, reason) = domain_xml.parsed(domain.XMLDesc()), domain.state()
    except libvirt.libvirtError:  # it has just been removed
        return Bootstrap()
    macs = domain_xml.macs_of(root)
    log = diagnosis_nodes.console_of(root) or str(consoles.CONSOLES / f"{domain.name()}-serial0.log")
    spoke_at = diagnosis_nodes.touched(log)
    return Bootstrap(
        name=domain.name(),
        state=diagnosis_nodes.STATES.get(state, "unknown"),
        no_room=(state, reason) == (PAUSED, IO_ERROR),
        macs=macs,
        address=next(_addresses(connection, macs), ""),
        console=diagnosis_nodes.last_words(log),
        quiet_for=None if spoke_at is None else max(time.time() - spoke_at, 0.0),
    )


def _domain(connection: Any, paths: Paths) -> Any:
    known = {infra.bootstrap_of(infra_id) for infra_id in infra.ids_of(paths)}
    pattern = infra.pattern_of(paths.lab)
    there = {domain.name(): domain for domain in connection.listAllDomains()}
    own = [name for name in there if (name in known if known else pattern.fullmatch(name))]
    return there[own[0]] if len(own) == 1 else None


def _addresses(connection: Any, macs: Sequence[str]) -> Iterator[str]:
    for network in connection.listAllNetworks(libvirt.VIR_CONNECT_LIST_NETWORKS_ACTIVE):
        with suppress(libvirt.libvirtError):
            yield from (lease["ipaddr"] for lease in network.DHCPLeases() if (lease["mac"] or "").lower() in macs)
    yield from (found.address for found in read_neighbours() if found.mac in macs)
