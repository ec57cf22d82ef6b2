# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The networks that install-config.yaml names."""

from __future__ import annotations

import ipaddress
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._lab.rules.addresses import (
    CLUSTER_NETWORKS,
    SERVICE_NETWORKS,
)

HOST_PREFIX = {4: 23, 6: 64}


def networking(lab: dict[str, Any]) -> dict[str, Any]:
    """OVNKubernetes always: the default until 4.11 has no IPv6. That none of these overlap is the model's doing."""
    families = [ipaddress.ip_network(item).version for item in lab["machine_networks"]]
    return {
        "networkType": "OVNKubernetes",
        "machineNetwork": [{"cidr": item} for item in lab["machine_networks"]],
        "clusterNetwork": [
            {"cidr": _of(CLUSTER_NETWORKS, family), "hostPrefix": HOST_PREFIX[family]} for family in families
        ],
        "serviceNetwork": [_of(SERVICE_NETWORKS, family) for family in families],
    }


def _of(networks: tuple[str, ...], family: int) -> str:
    return next(item for item in networks if ipaddress.ip_network(item).version == family)
