# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What another installer has to know of a lab: its nodes, and the logins of their BMCs. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import platform
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.wanted import host_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.credentials import Login
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.wanted import WantedHost
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import Release

ETHERNET = "ethernet"
PAIR = 2
WHOLE = range(3, 6)
"""Nodes of a control plane."""


@dataclass(frozen=True)
class Rack:
    lab: Mapping[str, Any]
    """The model."""
    logins: Mapping[str, Login] = field(repr=False)
    """By the nodes' names."""
    release: Release
    """Of OpenShift, for what depends on it."""
    ca_file: str = ""
    """Where clients of the BMCs have the CA of the lab; empty: they do not verify."""
    namespace: str = "metal3"
    image_set: str = ""
    pull_secret: str = field(default="", repr=False)
    ssh_key: str = ""

    @property
    def nodes(self) -> list[Mapping[str, Any]]:
        return list(self.lab["nodes"])

    @property
    def installed(self) -> list[Mapping[str, Any]]:
        """Nodes of a cluster, which spares are not."""
        return list(platform.installed(dict(self.lab)))

    @property
    def hosts(self) -> list[WantedHost]:
        """As OpenShift calls them, with their logins."""
        return [host_of(self.lab, node, self.ca_file or None, self.logins) for node in self.nodes]

    @property
    def without_login(self) -> list[str]:
        return [node["name"] for node in self.nodes if node["name"] not in self.logins]


def no_cluster(lab: Mapping[str, Any]) -> str:
    """What these nodes lack for a cluster of OpenShift; empty if nothing.

    Not of a single one either: it would have no VIPs, to which the lab's names of the cluster point.
    """
    counts = lab["control_plane"]
    replicas, arbiters, fencing = counts["replicas"], counts["arbiters"], counts["fencing"]
    if (replicas in WHOLE and not arbiters) or (replicas == PAIR and bool(fencing) != (arbiters == 1)):
        return ""
    right = "3 to 5 nodes, or 2 with one arbiter or with fencing"
    return f"the control plane must have {right} (got {replicas}, and {arbiters} arbiters)"


def nothing_missing(_lab: Mapping[str, Any]) -> str:
    """Of formats for nodes alone."""
    return ""


def redfish_of(node: Mapping[str, Any]) -> tuple[str, str]:
    """The service of its BMC, and which system of it the node is."""
    url = urlsplit(node["bmc"]["address"].partition("+")[2])
    return f"{url.scheme}://{url.netloc}", url.path


def interfaces(node: Mapping[str, Any]) -> list[dict[str, str]]:
    """Its NICs by MAC, with the names that its own network configuration has for them."""
    configured = (node["network_config"] or {}).get("interfaces") or []
    named = [each for each in configured if each.get("type") == ETHERNET and each.get("name")]
    by_mac = {str(each.get("mac-address", "")).lower(): each["name"] for each in named}
    others = iter([each["name"] for each in named if not each.get("mac-address")])
    return [
        {"name": by_mac.get(nic["mac"]) or next(others, f"eth{number}"), "macAddress": nic["mac"]}
        for number, nic in enumerate(node["nics"])
    ]
