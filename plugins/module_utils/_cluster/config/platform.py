# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""platform.baremetal of install-config.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.installer_keys import PLATFORM
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.keys import knows
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import Release
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BOOT_MODES, BootstrapAddress, Role

ROLES = {Role.CONTROL_PLANE: "master", Role.ARBITER: "arbiter", Role.WORKER: "worker"}


def platform(lab: dict[str, Any], release: Release, bmc_ca: str | None) -> dict[str, Any]:
    trusted = trusted_ca(lab, release, bmc_ca)
    return {
        **_vips(lab, release),
        "externalBridge": lab["bridge"],
        **_provisioning(lab["provisioning_network"]),
        **_bootstrap(lab["bootstrap"], release),
        **_time_servers(lab, release),
        **({"bmcVerifyCA": trusted} if trusted else {}),
        "hosts": [host(lab, node, trusted) for node in installed(lab)],
    }


def trusted_ca(lab: Mapping[str, Any], release: Release, bmc_ca: str | None) -> str | None:
    """By which the cluster verifies the BMCs; None where it cannot, or has nothing to verify."""
    return bmc_ca if bmc_ca and lab["bmc"]["tls"] and knows(release, "bmcVerifyCA", PLATFORM) else None


def installed(lab: dict[str, Any]) -> list[dict[str, Any]]:
    """Without spares: the cluster would use any host beyond the replicas."""
    return [node for node in lab["nodes"] if node["installer"]]


def _vips(lab: dict[str, Any], release: Release) -> dict[str, Any]:
    own = lab["vips"]
    if knows(release, "apiVIPs", PLATFORM):
        return {"apiVIPs": list(own["api"]), "ingressVIPs": list(own["ingress"])}
    return {"apiVIP": own["api"][0], "ingressVIP": own["ingress"][0]}


def _provisioning(own: dict[str, Any] | None) -> dict[str, Any]:
    if own is None:
        return {"provisioningNetwork": "Disabled"}
    span = own["dhcp_range"]
    return {
        "provisioningNetwork": own["mode"].capitalize(),
        "provisioningBridge": own["bridge"],
        "provisioningNetworkCIDR": own["cidr"],
        **({"provisioningDHCPRange": f"{span['start']},{span['end']}"} if span else {}),
        "bootstrapProvisioningIP": own["bootstrap_ip"],
        "clusterProvisioningIP": own["cluster_ip"],
    }


def _bootstrap(own: dict[str, Any], release: Release) -> dict[str, Any]:
    if own["mode"] == BootstrapAddress.RESERVED:
        return {"externalMACAddress": own["mac"]}
    if own["mode"] != BootstrapAddress.STATIC:
        return {}
    static = {"bootstrapExternalStaticIP": own["ip"], "bootstrapExternalStaticGateway": own["gateway"]}
    if knows(release, "bootstrapExternalStaticDNS", PLATFORM):
        static["bootstrapExternalStaticDNS"] = own["dns"]
    return static


def _time_servers(lab: dict[str, Any], release: Release) -> dict[str, Any]:
    """Nodes also get them by DHCP, in any release."""
    wanted = lab["ntp_servers"] and knows(release, "additionalNTPServers", PLATFORM)
    return {"additionalNTPServers": list(lab["ntp_servers"])} if wanted else {}


def host(lab: Mapping[str, Any], node: Mapping[str, Any], trusted: str | None) -> dict[str, Any]:
    """Without its login."""
    unverified = lab["bmc"]["tls"] and not trusted
    return {
        "name": node["name"],
        "role": ROLES.get(node["role"], ROLES[Role.WORKER]),  # which a spare may become
        "bmc": {
            "address": node["bmc"]["address"],
            **({"disableCertificateVerification": True} if unverified else {}),
        },
        "bootMACAddress": node["boot_mac"],
        "bootMode": BOOT_MODES[node["firmware"]],
        "rootDeviceHints": dict(node["root_device_hints"]),
        **({"networkConfig": node["network_config"]} if node["network_config"] else {}),
    }
