# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys of install-config.yaml that each release knows, for the platform baremetal."""

from __future__ import annotations

import re

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import must_be
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import BUILD_PATTERN
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import (
    NEWEST,
    OLDEST,
    Release,
    release_of,
    release_text,
)

TOP = ""
NETWORKING = "networking"
POOL = "pool"
PLATFORM = "platform.baremetal"
HOST = "platform.baremetal.hosts[]"
BMC = "platform.baremetal.hosts[].bmc"
HINTS = "platform.baremetal.hosts[].rootDeviceHints"
FENCE = "controlPlane.fencing.credentials[]"


def _since(release: Release, *names: str) -> dict[str, Release]:
    return dict.fromkeys(names, release)


KEYS: dict[str, dict[str, Release]] = {
    TOP: {
        **_since(OLDEST, "apiVersion", "kind", "metadata", "baseDomain", "networking", "compute", "controlPlane"),
        **_since(OLDEST, "platform", "pullSecret", "sshKey", "proxy", "fips", "additionalTrustBundle"),
        **_since(OLDEST, "imageContentSources", "publish", "credentialsMode", "bootstrapInPlace"),
        **_since((4, 11), "capabilities"),
        **_since((4, 12), "additionalTrustBundlePolicy", "featureSet"),
        **_since((4, 13), "cpuPartitioningMode"),
        **_since((4, 14), "imageDigestSources", "featureGates"),
        **_since((4, 15), "operatorPublishingStrategy"),
        **_since((4, 20), "arbiter"),
        **_since((4, 22), "osImageStream"),
    },
    NETWORKING: {
        **_since(OLDEST, "networkType", "machineNetwork", "clusterNetwork", "serviceNetwork"),
        **_since(OLDEST, "type", "machineCIDR", "clusterNetworks", "serviceCIDR"),
        **_since((4, 14), "clusterNetworkMTU"),
        **_since((4, 18), "ovnKubernetesConfig"),
    },
    POOL: {
        **_since(OLDEST, "name", "replicas", "platform", "hyperthreading", "architecture"),
        **_since((4, 20), "fencing", "diskSetup"),
        **_since((4, 22), "osImageStream"),
        **_since((4, 23), "management"),
    },
    PLATFORM: {
        **_since(OLDEST, "libvirtURI", "externalBridge", "externalMACAddress", "hosts", "defaultMachinePlatform"),
        **_since(OLDEST, "provisioningNetwork", "provisioningBridge", "provisioningMACAddress"),
        **_since(OLDEST, "provisioningNetworkInterface", "provisioningNetworkCIDR", "provisioningDHCPRange"),
        **_since(OLDEST, "provisioningDHCPExternal", "provisioningHostIP"),
        **_since(OLDEST, "bootstrapProvisioningIP", "clusterProvisioningIP", "bootstrapOSImage", "clusterOSImage"),
        **_since(OLDEST, "apiVIP", "ingressVIP"),
        **_since((4, 11), "bootstrapExternalStaticIP", "bootstrapExternalStaticGateway"),
        **_since((4, 12), "apiVIPs", "ingressVIPs"),
        **_since((4, 13), "loadBalancer"),
        **_since((4, 14), "bootstrapExternalStaticDNS"),
        **_since((4, 18), "additionalNTPServers"),
        **_since((4, 21), "bmcVerifyCA", "dnsRecordsType"),
        **_since((4, 22), "provisioningNetworkGateway"),
    },
    HOST: {
        **_since(OLDEST, "name", "role", "bmc", "bootMACAddress", "bootMode", "hardwareProfile", "rootDeviceHints"),
        **_since((4, 10), "networkConfig"),
    },
    BMC: _since(OLDEST, "address", "username", "password", "disableCertificateVerification"),
    HINTS: {
        **_since(OLDEST, "deviceName", "hctl", "model", "vendor", "serialNumber", "minSizeGigabytes", "rotational"),
        **_since(OLDEST, "wwn", "wwnWithExtension", "wwnVendorExtension"),
    },
    FENCE: _since((4, 20), "hostname", "address", "username", "password", "certificateVerification"),
}

ARBITER_AND_FENCING = (4, 20)
FENCING_WITHOUT_PREVIEW = (4, 22)
ETCD_SPEED = (4, 16)
"""The first release with the etcd profile outside technology previews."""


def release_to_configure(version: str) -> Release:
    """A build whose name has no numbers is taken for the newest release."""
    release = release_of(version) or (NEWEST if re.fullmatch(BUILD_PATTERN, version) else None)
    if release is None or release < OLDEST:
        raise OperatorError(f"version {must_be(f'{release_text(OLDEST)} or later, such as stable-4.20', version)}.")
    return release


def knows(release: Release, key: str, section: str = TOP) -> bool:
    since = KEYS[section].get(key)
    return since is not None and since <= release
