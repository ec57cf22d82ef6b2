# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses in the provisioning network, with the installer's own defaults."""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.nometal.ipi.plugins.module_utils._core.addresses import Span, capacity, last_host
from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Address, Network
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import LARGEST_DHCP_RANGE
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.declared import span_of
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.network import ProvisioningNetwork
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import ProvisioningMode

LARGE = 254
DHCP_OFFSET, SMALL_DHCP_OFFSET = 10, 4


@dataclass(frozen=True)
class ProvisioningPlan:
    network: Network
    host: Address
    bootstrap: Address
    cluster: Address
    dhcp_range: Span | None
    """None if OpenShift serves no DHCP."""


def plan_provisioning(own: ProvisioningNetwork) -> ProvisioningPlan:
    return ProvisioningPlan(
        network=own.cidr,
        host=own.host_ip or own.cidr[1],
        bootstrap=own.bootstrap_ip or own.cidr[2],
        cluster=own.cluster_ip or own.cidr[3],
        dhcp_range=_dhcp_range(own) if own.mode == ProvisioningMode.MANAGED else None,
    )


def _dhcp_range(own: ProvisioningNetwork) -> Span | None:
    if own.dhcp_range:
        return span_of(own.dhcp_range, own.cidr.version)
    offset = DHCP_OFFSET if capacity(own.cidr) >= LARGE else SMALL_DHCP_OFFSET
    start = own.cidr[offset]
    end = min(int(last_host(own.cidr)), int(start) + LARGEST_DHCP_RANGE - 1)
    return Span(start, start + (end - int(start)))
