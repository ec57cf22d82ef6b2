# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leases of the machines that a rehearsal starts: pools are small, and a rehearsal is to leave them as they were."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._observe import network_leases

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None

if TYPE_CHECKING:
    from collections.abc import Collection

MAC_LENGTH = len("52:54:00:00:00:00")


def release(connection: Any, name: str, macs: Collection[str]) -> None:
    """In a network that is stopped, or whose dnsmasq is gone, they stay until they expire."""
    with suppress(OperatorError, libvirt.libvirtError):
        network = connection.networkLookupByName(name)
        if network.isActive():
            own = [lease for lease in network_leases.leases_of(network) if lease.id[-MAC_LENGTH:] in macs]
            network_leases.release(network, own)
