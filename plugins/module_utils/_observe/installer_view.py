# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the OpenShift installer sees of this host's bridges: it asks libvirt two questions, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None

# The installer dials this socket itself. Where libvirt is several daemons, only virtproxyd makes it.
URI = "qemu:///system?socket=/var/run/libvirt/libvirt-sock"


@dataclass(frozen=True)
class InstallerView:
    """`networks`: active ones called like their bridge. `interfaces`: active ones, which are those with carrier."""

    networks: frozenset[str]
    interfaces: frozenset[str]

    def finds(self, bridge: str) -> bool:
        return bridge in self.networks | self.interfaces

    def explain(self, bridge: str) -> str:
        if bridge in self.networks:
            return f"libvirt network {bridge} on a bridge of the same name"
        return f"interface {bridge}, which is up and has carrier"


def look(connection: Any) -> InstallerView:
    networks = connection.listAllNetworks(libvirt.VIR_CONNECT_LIST_NETWORKS_ACTIVE)
    interfaces = connection.listAllInterfaces(libvirt.VIR_CONNECT_LIST_INTERFACES_ACTIVE)
    return InstallerView(
        networks=frozenset(network.name() for network in networks if _has_bridge_of_its_name(network)),
        interfaces=frozenset(interface.name() for interface in interfaces),
    )


def _has_bridge_of_its_name(network: Any) -> bool:
    try:
        return network.bridgeName() == network.name()
    except libvirt.libvirtError:  # some forward modes have no bridge
        return False
