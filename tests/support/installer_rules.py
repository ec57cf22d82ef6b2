# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What openshift-install, release by release, has against an install-config.yaml of the platform baremetal.

Written from what the installer does, and from nothing of the collection's: it is the other side of its tests.
The standard library alone, in one file: the stand-in installer takes it along.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Any

Release = tuple[int, int]

OLDEST, NEWEST = (4, 9), (99, 99)
STRICT = (4, 22)
"""Before it, an unknown key is a warning."""

TOP = {
    "apiVersion": OLDEST,
    "kind": OLDEST,
    "metadata": OLDEST,
    "baseDomain": OLDEST,
    "networking": OLDEST,
    "controlPlane": OLDEST,
    "compute": OLDEST,
    "platform": OLDEST,
    "pullSecret": OLDEST,
    "sshKey": OLDEST,
    "proxy": OLDEST,
    "publish": OLDEST,
    "fips": OLDEST,
    "imageContentSources": OLDEST,
    "additionalTrustBundle": OLDEST,
    "credentialsMode": OLDEST,
    "bootstrapInPlace": OLDEST,
    "additionalTrustBundlePolicy": (4, 12),
    "capabilities": (4, 11),
    "featureSet": (4, 12),
    "cpuPartitioningMode": (4, 13),
    "imageDigestSources": (4, 14),
    "featureGates": (4, 14),
    "operatorPublishingStrategy": (4, 15),
    "arbiter": (4, 19),
    "pki": (4, 23),
    "osImageStream": (4, 22),
}
BAREMETAL = {
    "libvirtURI": OLDEST,
    "externalBridge": OLDEST,
    "externalMACAddress": OLDEST,
    "provisioningNetwork": OLDEST,
    "provisioningBridge": OLDEST,
    "provisioningMACAddress": OLDEST,
    "provisioningNetworkInterface": OLDEST,
    "provisioningNetworkCIDR": OLDEST,
    "provisioningDHCPRange": OLDEST,
    "provisioningDHCPExternal": OLDEST,
    "provisioningHostIP": OLDEST,
    "bootstrapProvisioningIP": OLDEST,
    "clusterProvisioningIP": OLDEST,
    "bootstrapOSImage": OLDEST,
    "clusterOSImage": OLDEST,
    "defaultMachinePlatform": OLDEST,
    "apiVIP": OLDEST,
    "ingressVIP": OLDEST,
    "hosts": OLDEST,
    "bootstrapExternalStaticIP": (4, 11),
    "bootstrapExternalStaticGateway": (4, 11),
    "apiVIPs": (4, 12),
    "ingressVIPs": (4, 12),
    "loadBalancer": (4, 13),
    "bootstrapExternalStaticDNS": (4, 14),
    "additionalNTPServers": (4, 18),
    "bmcVerifyCA": (4, 21),
    "dnsRecordsType": (4, 21),
    "provisioningNetworkGateway": (4, 22),
    "bgpVIPConfig": (5, 1),
}
HOST = {
    "name": OLDEST,
    "role": OLDEST,
    "bmc": OLDEST,
    "bootMACAddress": OLDEST,
    "bootMode": OLDEST,
    "hardwareProfile": OLDEST,
    "rootDeviceHints": OLDEST,
    "networkConfig": (4, 10),
    "bgpPeers": (5, 1),
}
BMC = dict.fromkeys(("address", "username", "password", "disableCertificateVerification"), OLDEST)
HINTS = dict.fromkeys(
    (
        "deviceName",
        "hctl",
        "model",
        "vendor",
        "serialNumber",
        "minSizeGigabytes",
        "wwn",
        "wwnWithExtension",
        "wwnVendorExtension",
        "rotational",
    ),
    OLDEST,
)
POOL = {
    **dict.fromkeys(("name", "replicas", "platform", "hyperthreading", "architecture"), OLDEST),
    "fencing": (4, 19),
    "diskSetup": (4, 20),
    "management": (4, 22),
}
POOL_PLATFORM = {"baremetal": OLDEST}
MACHINE_POOL: dict[str, Release] = {}
NETWORKING = {
    "networkType": OLDEST,
    "machineNetwork": OLDEST,
    "clusterNetwork": OLDEST,
    "serviceNetwork": OLDEST,
    "machineCIDR": OLDEST,
    "type": OLDEST,
    "serviceCIDR": OLDEST,
    "clusterNetworks": OLDEST,
    "clusterNetworkMTU": (4, 15),
    "ovnKubernetesConfig": (4, 18),
    "networkObservability": (5, 1),
}
PROXY = dict.fromkeys(("httpProxy", "httpsProxy", "noProxy"), OLDEST)
MACHINE_NETWORK = {"cidr": OLDEST}
CLUSTER_NETWORK = dict.fromkeys(("cidr", "hostPrefix", "hostSubnetLength"), OLDEST)
FENCING_CREDENTIAL = {
    **dict.fromkeys(("hostName", "address", "username", "password", "certificateVerification"), (4, 19)),
    "macAddress": (4, 23),
}
FENCING = {"credentials": (4, 19)}
CAPABILITIES = dict.fromkeys(("baselineCapabilitySet", "additionalEnabledCapabilities"), (4, 11))
LOAD_BALANCER = {"type": (4, 13)}
CONTENT_SOURCE = dict.fromkeys(("source", "mirrors"), OLDEST)
DIGEST_SOURCE = {"source": (4, 14), "mirrors": (4, 14), "sourcePolicy": (4, 19)}
METADATA = dict.fromkeys(("name", "namespace", "labels", "annotations", "creationTimestamp"), OLDEST)

TYPES: dict[type, tuple[str, ...]] = {
    bool: ("fips", "provisioningDHCPExternal", "disableCertificateVerification", "rotational"),
    int: ("replicas", "hostPrefix", "hostSubnetLength", "clusterNetworkMTU", "minSizeGigabytes"),
    dict: (
        "metadata",
        "networking",
        "controlPlane",
        "arbiter",
        "platform",
        "baremetal",
        "proxy",
        "bmc",
        "loadBalancer",
        "defaultMachinePlatform",
    ),
    list: (
        "machineNetwork",
        "clusterNetwork",
        "serviceNetwork",
        "compute",
        "hosts",
        "apiVIPs",
        "ingressVIPs",
        "mirrors",
    ),
}
"""Of the rest, what is no free data is text, which numbers and booleans are made into."""
FREE = ("networkConfig", "bgpPeers", "bgpVIPConfig", "pki", "networkObservability", "ovnKubernetesConfig", "diskSetup")
FREE_TOO = ("bootstrapInPlace", "operatorPublishingStrategy", "labels", "annotations")

LONGEST_NAME = 54
VIRTUAL_MEDIA = ("redfish-virtualmedia", "idrac-virtualmedia", "ilo5-virtualmedia")
NEEDING_PXE = ("redfish", "idrac-redfish", "ilo5-redfish", "ilo4", "ilo5", "idrac", "irmc", "ipmi", "libvirt")
WITHOUT_SECURE_BOOT = ("ipmi", "libvirt")
ROLES = ("master", "worker", "arbiter")
BOOT_MODES = ("", "UEFI", "UEFISecureBoot", "legacy")
MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", re.IGNORECASE)
FEWEST_CONTROL_PLANE, PAIR = 3, 2


def problems(config: dict[str, Any], release: Release) -> list[str]:
    """Everything: what the installer says of it, sooner or later, and what it does not say but trips over."""
    return [
        *unknown_keys(config, release),
        *refused(config, release),
        *refused_at_start(config, release),
        *traps(config),
    ]


def unknown_keys(config: dict[str, Any], release: Release) -> list[str]:
    """A warning each, and from STRICT on an error."""
    return list(_unknown_keys(config, release))


def refused(config: dict[str, Any], release: Release) -> list[str]:
    """What `create manifests` says already, all of it on one line, with exit code 3."""
    return [
        *_types(config),
        *_general(config),
        *_values(config, release),
        *_gates(config, release),
        *_capabilities(config, release),
        *_networks(config),
        *_replicas(config, release),
        *_fencing(config, release),
        *_vips(config, release),
        *_hosts(config),
    ]


def refused_at_start(config: dict[str, Any], release: Release) -> list[str]:
    """What only `create cluster` says, in its Platform Provisioning Check, with exit code 1."""
    return [*_provisioning(config), *_bmc_addresses(config), *_static_bootstrap(config, release), *_macs(config)]


def traps(config: dict[str, Any]) -> list[str]:
    """What it does not say, and what does not work."""
    return list(_traps(config))


def _unknown_keys(config: dict[str, Any], release: Release) -> Iterator[str]:
    platform = _platform(config)
    yield from _unknown(config, TOP, "", release)
    yield from _unknown(_map(config, "networking"), NETWORKING, "networking", release)
    yield from _unknown(_map(config, "metadata"), METADATA, "metadata", release)
    yield from _unknown(_map(config, "proxy"), PROXY, "proxy", release)
    yield from _unknown(_map(config, "capabilities"), CAPABILITIES, "capabilities", release)
    yield from _unknown(_map(platform, "loadBalancer"), LOAD_BALANCER, "platform.baremetal.loadBalancer", release)
    for key, known, items in (
        ("networking.machineNetwork", MACHINE_NETWORK, _list(_map(config, "networking"), "machineNetwork")),
        ("networking.clusterNetwork", CLUSTER_NETWORK, _list(_map(config, "networking"), "clusterNetwork")),
        ("imageContentSources", CONTENT_SOURCE, _list(config, "imageContentSources")),
        ("imageDigestSources", DIGEST_SOURCE, _list(config, "imageDigestSources")),
    ):
        for number, item in enumerate(items):
            yield from _unknown(item if isinstance(item, dict) else {}, known, f"{key}[{number}]", release)
    yield from _unknown(platform, BAREMETAL, "platform.baremetal", release)
    for path, pool in _pools(config):
        yield from _unknown(pool, POOL, path, release)
        yield from _unknown(_map(pool, "fencing"), FENCING, f"{path}.fencing", release)
        own = _map(_map(pool, "platform"), "baremetal")
        yield from _unknown(own, MACHINE_POOL, f"{path}.platform.baremetal", release)
    default = _map(platform, "defaultMachinePlatform")
    yield from _unknown(default, MACHINE_POOL, "platform.baremetal.defaultMachinePlatform", release)
    for number, item in enumerate(_map(_map(config, "controlPlane"), "fencing").get("credentials") or []):
        yield from _unknown(item, FENCING_CREDENTIAL, f"controlPlane.fencing.credentials[{number}]", release)
    for number, host in enumerate(_list(platform, "hosts")):
        path = f"platform.baremetal.hosts[{number}]"
        yield from _unknown(host, HOST, path, release)
        yield from _unknown(_map(host, "bmc"), BMC, f"{path}.bmc", release)
        yield from _unknown(_map(host, "rootDeviceHints"), HINTS, f"{path}.rootDeviceHints", release)


def _unknown(given: dict[str, Any], known: dict[str, Release], path: str, release: Release) -> Iterator[str]:
    for name in given:
        if known.get(name, NEWEST) > release:
            yield f'unknown field "{path}.{name}"' if path else f'unknown field "{name}"'


def _types(value: Any, path: str = "") -> Iterator[str]:
    items: Iterator[tuple[str, Any]] = iter(())
    if isinstance(value, dict):
        items = ((f"{path}.{name}" if path else str(name), item) for name, item in value.items())
    elif isinstance(value, list):
        items = ((f"{path}[{number}]", item) for number, item in enumerate(value))
    for where, item in items:
        name = re.sub(r"\[[0-9]+\]$", "", where.rpartition(".")[2])
        if item is None or name in (*FREE, *FREE_TOO):
            continue
        wanted = next((kind for kind, names in TYPES.items() if name in names), None)
        if wanted and not where.endswith("]") and type(item) is not wanted:
            yield f"cannot unmarshal {type(item).__name__} into Go struct field {where} of type {wanted.__name__}"
        else:
            yield from _types(item, where)


def _values(config: dict[str, Any], release: Release) -> Iterator[str]:
    networking = _map(config, "networking")
    unavailable = {
        "publish": config.get("publish", "External") not in ("", "External"),
        "credentialsMode": bool(config.get("credentialsMode")),
        "operatorPublishingStrategy": bool(config.get("operatorPublishingStrategy")),
        "networking.clusterNetworkMTU": bool(networking.get("clusterNetworkMTU")),
        "networking.networkType": str(networking.get("networkType")).lower() in RETIRED and release >= (4, 15),
        "platform.baremetal.loadBalancer.type": _map(_platform(config), "loadBalancer").get("type", BALANCERS[0])
        not in BALANCERS,
    }
    yield from (
        f'{path}: Invalid value: not supported on "baremetal"' for path, is_wrong in unavailable.items() if is_wrong
    )
    for path, pool in _pools(config):
        if pool.get("hyperthreading", "") not in ("", "Enabled", "Disabled"):
            yield f'{path}.hyperthreading: Unsupported value: "{pool["hyperthreading"]}"'
        if path.startswith("compute") and pool.get("architecture") != _map(config, "controlPlane").get("architecture"):
            yield f"{path}.architecture: Invalid value: heteregeneous multi-arch is not supported"
        for name, value in _map(pool, "platform").items():
            if name not in POOL_PLATFORM and value is not None:
                yield f'{path}.platform.{name}: Invalid value: not for a machine pool when cluster is using "baremetal"'
    yield from _texts(config)


def _texts(config: dict[str, Any]) -> Iterator[str]:
    exceptions, bundle = _map(config, "proxy").get("noProxy", ""), config.get("additionalTrustBundle")
    if "*" in str(exceptions) and exceptions != "*":
        yield "proxy.noProxy: Invalid value: each element must be an IP, CIDR or domain without wildcard characters"
    for number, host in enumerate(_list(_platform(config), "hosts")):
        if re.search(r"'mtu': ['\[{]", repr(host.get("networkConfig"))):
            yield f"platform.baremetal.hosts[{number}].networkConfig: Invalid value: mtu: invalid type: string"
    if bundle and "-----BEGIN CERTIFICATE-----" not in str(bundle):
        yield "additionalTrustBundle: Invalid value: invalid block"


RETIRED = ("openshiftsdn", "kuryr")
BALANCERS = ("OpenShiftManagedDefault", "UserManaged")
PREVIEWS = ("TechPreviewNoUpgrade", "DevPreviewNoUpgrade", "CustomNoUpgrade")


def _gates(config: dict[str, Any], release: Release) -> Iterator[str]:
    own, platform = config.get("featureSet", ""), _platform(config)
    if own not in ("", "LatencySensitive", "OKD", *PREVIEWS):
        yield f'featureSet: Unsupported value: "{own}"'
    if config.get("featureGates") and own != "CustomNoUpgrade":
        yield "featureGates: Forbidden: featureGates can only be used with the CustomNoUpgrade feature set"
    gated = {
        "arbiter": "arbiter" in config and release < (4, 20),
        "pki": "pki" in config,
        "platform.baremetal.bgpVIPConfig": "bgpVIPConfig" in platform,
        "platform.baremetal.hosts.bgpPeers": any(host.get("bgpPeers") for host in _list(platform, "hosts")),
        "platform.baremetal.dnsRecordsType": platform.get("dnsRecordsType") == "External",
        "diskSetup": any(pool.get("diskSetup") for _path, pool in _pools(config)),
    }
    for name, is_used in gated.items():
        if is_used and own not in PREVIEWS:
            yield f"{name}: Forbidden: this field is protected by a feature gate which must be enabled"


def _general(config: dict[str, Any]) -> Iterator[str]:
    if config.get("apiVersion") != "v1":
        yield f'apiVersion: Invalid value: "{config.get("apiVersion")}": install-config version must be "v1"'
    name = _map(config, "metadata").get("name") or ""
    if not re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", name):
        yield f'metadata.name: Invalid value: "{name}": cluster name must be a DNS label, without a dot'
    if len(name) > LONGEST_NAME:
        yield f'metadata.name: Invalid value: "{name}": cluster name is too long, at most {LONGEST_NAME} characters'
    if not config.get("baseDomain"):
        yield 'baseDomain: Invalid value: "": cluster domain is invalid'
    if not config.get("pullSecret"):
        yield 'pullSecret: Invalid value: "": unexpected end of JSON input'
    if len(_map(config, "platform")) != 1 or "baremetal" not in _map(config, "platform"):
        yield "platform: Invalid value: must specify one of the platforms (baremetal)"
    if "imageContentSources" in config and "imageDigestSources" in config:
        yield "imageContentSources: Invalid value: cannot be set with imageDigestSources at the same time"


CAPABILITY_SETS = {
    (4, 11): ("baremetal", "marketplace", "openshift-samples"),
    (4, 12): ("Console", "Insights", "Storage", "CSISnapshot"),
    (4, 13): ("NodeTuning",),
    (4, 14): ("MachineAPI", "Build", "DeploymentConfig", "ImageRegistry"),
    (4, 15): ("OperatorLifecycleManager", "CloudCredential"),
    (4, 16): ("Ingress", "CloudControllerManager"),
    (4, 17): (),
    (4, 18): ("OperatorLifecycleManagerV1",),
}
"""What each set has that the one before has not."""


def _capabilities(config: dict[str, Any], release: Release) -> Iterator[str]:
    if "capabilities" not in config or release < (4, 11):
        return
    own = _map(config, "capabilities")
    there = {since: names for since, names in CAPABILITY_SETS.items() if since <= release}
    limits = {"None": OLDEST, "vCurrent": release, **{f"v{major}.{minor}": (major, minor) for major, minor in there}}
    baseline, additional = str(own.get("baselineCapabilitySet", "")), _list(own, "additionalEnabledCapabilities")
    if baseline not in limits:
        yield f'capabilities.baselineCapabilitySet: Unsupported value: "{baseline}"'
        return
    for number, name in enumerate(additional):
        if not any(name in names for names in there.values()):
            yield f'capabilities.additionalEnabledCapabilities[{number}]: Unsupported value: "{name}"'
    enabled = {*additional, *(name for since, names in there.items() if since <= limits[baseline] for name in names)}
    if "baremetal" not in enabled:
        yield f"additionalEnabledCapabilities: Invalid value: {additional}: platform baremetal requires baremetal"
    if release >= (4, 15) and "marketplace" in enabled and "OperatorLifecycleManager" not in enabled:
        yield f"additionalEnabledCapabilities: Invalid value: {additional}: marketplace requires a lifecycle manager"
    if release >= (4, 16) and "Ingress" not in enabled:
        yield "capabilities: Invalid value: the Ingress capability is required"


def _networks(config: dict[str, Any]) -> Iterator[str]:
    own = _map(config, "networking")
    if not own.get("networkType"):
        yield "networking.networkType: Required value: network provider type required"
    found: list[tuple[str, Any]] = []
    for key in ("machineNetwork", "clusterNetwork", "serviceNetwork"):
        items = _list(own, key)
        if not items:
            yield f"networking.{key}: Required value"
        for number, item in enumerate(items):
            network = _network(item["cidr"] if isinstance(item, dict) else item)
            if network is None:
                yield f'networking.{key}[{number}]: Invalid value: "{item}": invalid CIDR address'
                continue
            for other_key, other in found:
                if other.version == network.version and other.overlaps(network):
                    yield f'networking.{key}[{number}]: Invalid value: "{network}": must not overlap with {other_key}'
            found.append((key, network))
            yield from _host_prefix(item, network, f"networking.{key}[{number}]")
    yield from _families(found, str(own.get("networkType")))


def _host_prefix(item: Any, network: Any, path: str) -> Iterator[str]:
    if not isinstance(item, dict) or item.get("hostPrefix") is None:
        return
    if not isinstance(item["hostPrefix"], int):
        yield f"{path}.hostPrefix: Invalid value: {item['hostPrefix']}: must be an integer"
        return
    if item["hostPrefix"] < network.prefixlen:
        yield f"{path}.hostPrefix: Invalid value: {item['hostPrefix']}: must not be larger size than CIDR {network}"
    elif network.version == 6 and item["hostPrefix"] != 64:
        yield f"{path}.hostPrefix: Invalid value: {item['hostPrefix']}: must be 64 for IPv6 networks"


def _families(found: list[tuple[str, Any]], network_type: str) -> Iterator[str]:
    by_key: dict[str, set[int]] = {}
    for key, network in found:
        by_key.setdefault(key, set()).add(network.version)
    wanted = by_key.get("serviceNetwork", set())
    firsts = {key: network.version for key, network in reversed(found)}
    for key, first in firsts.items():
        if first != firsts.get("machineNetwork"):
            yield f"networking.{key}: Invalid value: its primary IP version is not that of the VIPs"
    for key, families in by_key.items():
        if families != wanted:
            yield f"networking.{key}: Invalid value: its IP versions are not those of serviceNetwork"
    services = sum(key == "serviceNetwork" for key, _network in found)
    if services > len(wanted):
        yield "networking.serviceNetwork: Invalid value: only one service network of each IP version can be specified"
    if 6 in wanted and network_type == "OpenShiftSDN":
        yield "networking.networkType: Invalid value: IPv6 is not supported for this networking plugin"


def _replicas(config: dict[str, Any], release: Release) -> Iterator[str]:
    control, arbiter = _map(config, "controlPlane"), _map(config, "arbiter")
    if control.get("name") != "master":
        yield f'controlPlane.name: Unsupported value: "{control.get("name")}": supported values: "master"'
    if arbiter and arbiter.get("name") != "arbiter":
        yield f'arbiter.name: Unsupported value: "{arbiter.get("name")}": supported values: "arbiter"'
    pools = _list(config, "compute")
    for number, pool in enumerate(pools):
        if pool.get("name") != "worker":
            yield f'compute[{number}].name: Unsupported value: "{pool.get("name")}": supported values: "worker"'
    if len(pools) > 1:
        yield "compute[1].name: Duplicate value"
    count, arbiters = control.get("replicas", FEWEST_CONTROL_PLANE), arbiter.get("replicas", 0)
    pair = release >= (4, 19) and (arbiters == 1 or len(_credentials(config)) == PAIR)
    if count < FEWEST_CONTROL_PLANE and not (count == PAIR and pair):
        yield f"controlPlane.replicas: Invalid value: {count}: not supported on platform baremetal"
    if arbiters and count != PAIR:
        yield f"arbiter.replicas: Invalid value: {arbiters}: an arbiter needs two control plane replicas"
    if arbiters > 1:
        yield f"arbiter.replicas: Invalid value: {arbiters}: one arbiter is supported"


def _fencing(config: dict[str, Any], release: Release) -> Iterator[str]:
    found, path = _credentials(config), "controlPlane.fencing.credentials"
    if not found:
        return
    if len(found) != PAIR or _map(config, "controlPlane").get("replicas") != PAIR:
        yield f"{path}: Forbidden: there should be exactly two, for two control plane replicas"
    if release < STRICT and config.get("featureSet") not in PREVIEWS:
        yield "controlPlane.fencing: Forbidden: it is protected by the feature gate DualReplica"
    by = "macAddress" if any("macAddress" in item for item in found) else "hostName"
    yield from _unique_and_there(found, (by, "address"), ("username", "password"), path)


def _vips(config: dict[str, Any], release: Release) -> Iterator[str]:
    platform = _platform(config)
    machine = [net for net in map(_network, _cidrs(config)) if net]
    read: dict[str, list[Any]] = {}
    for name in ("api", "ingress"):
        both = f"{name}VIPs" in platform and f"{name}VIP" in platform
        if both:
            yield f"platform.baremetal.{name}VIP: Invalid value: cannot be given beside {name}VIPs"
        listed = release >= (4, 12) and f"{name}VIPs" in platform
        key = f"{name}VIPs" if listed else f"{name}VIP"
        texts = platform.get(key) if listed else [platform[key]] if platform.get(key) else []
        if not isinstance(texts, list) or not texts:
            yield f"platform.baremetal.{key}: Required value: must specify at least one VIP"
            continue
        read[name] = []
        for text in texts:
            address = _address(text)
            if address is None:
                yield f'platform.baremetal.{key}: Invalid value: "{text}": "{text}" is not a valid IP'
                continue
            read[name].append(address)
            if not any(address in net for net in machine):
                yield f'platform.baremetal.{key}: Invalid value: "{text}": expected to be in a machine network'
        yield from _vip_families(read[name], machine, f"platform.baremetal.{key}")
    if set(read.get("api", [])) & set(read.get("ingress", [])):
        yield "platform.baremetal.apiVIPs: Invalid value: VIP for API must not be one of the Ingress VIPs"
    if len(read) == PAIR and len(read["api"]) != len(read["ingress"]):
        yield "platform.baremetal.ingressVIPs: Invalid value: as many VIPs as for API are needed"


def _vip_families(addresses: list[Any], machine: list[Any], path: str) -> Iterator[str]:
    versions = [item.version for item in addresses]
    if len(versions) > PAIR or len(set(versions)) < len(versions):
        yield f"{path}: Invalid value: at most two VIPs, of different IP versions, can be given"
    if versions and machine and versions[0] != machine[0].version:
        yield f"{path}: Invalid value: the first VIP is not of the primary IP version"


def _hosts(config: dict[str, Any]) -> Iterator[str]:
    platform = _platform(config)
    hosts, path = _list(platform, "hosts"), "platform.baremetal.hosts"
    if not hosts:
        yield f"{path}: Invalid value: null: bare metal hosts are missing"
    counts = {
        "master": _map(config, "controlPlane").get("replicas", FEWEST_CONTROL_PLANE),
        "arbiter": _map(config, "arbiter").get("replicas", 0),
        "worker": sum(pool.get("replicas", FEWEST_CONTROL_PLANE) for pool in _list(config, "compute")),
    }
    without = sum(host.get("role") not in ROLES for host in hosts)
    for role, wanted in counts.items():
        there = sum(host.get("role") == role for host in hosts)
        taken = min(without, max(0, wanted - there))
        without -= taken
        if there + taken < wanted:
            yield f"{path}: Required value: not enough hosts found ({there}) for the {role} replicas ({wanted})"
    yield from _unique_and_there(hosts, ("name", "bootMACAddress"), (), path)
    bmcs = [_map(host, "bmc") for host in hosts]
    yield from _unique_and_there(bmcs, ("address",), ("username", "password"), f"{path}.bmc")
    for number, host in enumerate(hosts):
        scheme = _scheme(host)
        if host.get("bootMode", "") not in BOOT_MODES:
            yield f'{path}[{number}].bootMode: Unsupported value: "{host["bootMode"]}"'
        if host.get("bootMode") == "UEFISecureBoot" and scheme in WITHOUT_SECURE_BOOT:
            yield f"{path}[{number}].bootMode: Invalid value: driver {scheme} does not support UEFI secure boot"
        device = _map(host, "rootDeviceHints").get("deviceName")
        if device and not re.fullmatch(r"/dev/[^/\s]+|/dev/disk/by-path/[^/\s]+", device):
            yield f'{path}[{number}].rootDeviceHints.deviceName: Invalid value: "{device}"'


def _unique_and_there(items: list[Any], unique: tuple[str, ...], wanted: tuple[str, ...], path: str) -> Iterator[str]:
    for name in (*unique, *wanted):
        seen: set[str] = set()
        for number, item in enumerate(items):
            value = item.get(name)
            if not value:
                yield f"{path}[{number}].{name}: Required value: missing {name}"
            elif name in unique and value in seen:
                yield f'{path}[{number}].{name}: Duplicate value: "{value}"'
            seen.add(value)


def _provisioning(config: dict[str, Any]) -> Iterator[str]:
    platform = _platform(config)
    mode, path = platform.get("provisioningNetwork", "Managed"), "platform.baremetal"
    if mode not in ("Managed", "Unmanaged", "Disabled"):
        yield f'{path}.provisioningNetwork: Unsupported value: "{mode}"'
        return
    machine = [net for net in map(_network, _cidrs(config)) if net]
    own = [_address(platform.get(key)) for key in ("bootstrapProvisioningIP", "clusterProvisioningIP")]
    if mode == "Disabled":
        for item in own:
            if item and not any(item in net for net in machine):
                yield f"{path}: Invalid value: provisioning network is disabled, {item} is in no machine network"
        return
    network = _network(platform.get("provisioningNetworkCIDR", "172.22.0.0/24"))
    if network is None:
        yield f"{path}.provisioningNetworkCIDR: Invalid value"
        return
    if any(net.version == network.version and net.overlaps(network) for net in machine):
        yield f'{path}.provisioningNetworkCIDR: Invalid value: "{network}": cannot overlap with machine network'
    for item in own:
        if item and item not in network:
            yield f'{path}: Invalid value: "{item}": is not in the provisioning network'
    if mode == "Managed" and "provisioningDHCPRange" in platform:
        yield from _dhcp_range(str(platform["provisioningDHCPRange"]), network, own)


def _dhcp_range(text: str, network: Any, own: list[Any]) -> Iterator[str]:
    path = "platform.baremetal.provisioningDHCPRange"
    ends = [_address(part) for part in text.split(",")]
    if len(ends) != PAIR or None in ends:
        yield f'{path}: Invalid value: "{text}": provisioning DHCP range should be in format: start_ip,end_ip'
        return
    start, end = ends
    for item in (start, end):
        if item not in network:
            yield f'{path}: Invalid value: "{text}": "{item}" is not in the provisioning network'
    for item in own:
        if item and item.version == network.version and int(start) <= int(item) <= int(end):
            yield f'{path}: Invalid value: "{item}" overlaps with the allocated DHCP range'


def _bmc_addresses(config: dict[str, Any]) -> Iterator[str]:
    platform = _platform(config)
    disabled = platform.get("provisioningNetwork") == "Disabled"
    for number, host in enumerate(_list(platform, "hosts")):
        scheme, path = _scheme(host), f"platform.baremetal.hosts[{number}].bmc.address"
        if scheme not in (*VIRTUAL_MEDIA, *NEEDING_PXE):
            yield f"{path}: Invalid value: unknown BMC type '{scheme}'"
        elif disabled and scheme not in VIRTUAL_MEDIA:
            yield f"{path}: Invalid value: driver {scheme} requires provisioning network"


def _static_bootstrap(config: dict[str, Any], release: Release) -> Iterator[str]:
    wanted = ["bootstrapExternalStaticIP", "bootstrapExternalStaticGateway"]
    if release >= (4, 14):
        wanted.append("bootstrapExternalStaticDNS")
    given = [name for name in wanted if _platform(config).get(name)]
    if given:
        for name in wanted:
            if name not in given:
                yield f"platform.baremetal.{name}: Required value: {', '.join(wanted)} go together"


def _macs(config: dict[str, Any]) -> Iterator[str]:
    platform = _platform(config)
    macs = [platform[key] for key in ("externalMACAddress", "provisioningMACAddress") if platform.get(key)]
    for item in macs:
        if not MAC.fullmatch(str(item)):
            yield f'platform.baremetal.externalMACAddress: Invalid value: "{item}": address {item}: invalid MAC address'
    if len(set(macs)) < len(macs):
        yield "platform.baremetal.provisioningMACAddress: Duplicate value"


def _traps(config: dict[str, Any]) -> Iterator[str]:
    platform = _platform(config)
    yield from _static_traps(config)
    for host in _list(platform, "hosts"):
        if not MAC.fullmatch(str(host.get("bootMACAddress"))):
            yield f"{host.get('name')} has the boot MAC {host.get('bootMACAddress')}"
        if host.get("role") not in ROLES:
            yield f"{host.get('name')} has no role"
    boot = {str(host.get("bootMACAddress")).lower() for host in _list(platform, "hosts")}
    if str(platform.get("externalMACAddress")).lower() in boot:
        yield "the bootstrap VM has the MAC of a host"
    if "bmcVerifyCA" in platform and "-----BEGIN CERTIFICATE-----" not in str(platform["bmcVerifyCA"]):
        yield "bmcVerifyCA is no certificate"


def _static_traps(config: dict[str, Any]) -> Iterator[str]:
    platform = _platform(config)
    machine = [net for net in map(_network, _cidrs(config)) if net]
    static = {key: platform[key] for key in platform if key.startswith("bootstrapExternalStatic")}
    for key, value in static.items():
        address = _address(value)
        if address is None:
            yield f"{key} is {value}, no address"
        elif not key.endswith("DNS") and not any(address in net for net in machine):
            yield f"{key} is {value}, outside the machine network"
    own = static.get("bootstrapExternalStaticIP")
    if own and own in [vip for name in ("api", "ingress") for vip in _both_vips(platform, name)]:
        yield "the bootstrap VM's static address is a VIP"
    if own and own == static.get("bootstrapExternalStaticGateway"):
        yield "the bootstrap VM is its own gateway"


def _both_vips(platform: dict[str, Any], name: str) -> list[Any]:
    return [*_list(platform, f"{name}VIPs"), platform.get(f"{name}VIP")]


def _pools(config: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "controlPlane", _map(config, "controlPlane")
    yield "arbiter", _map(config, "arbiter")
    for number, pool in enumerate(_list(config, "compute")):
        yield f"compute[{number}]", pool


def _credentials(config: dict[str, Any]) -> list[Any]:
    return _list(_map(_map(config, "controlPlane"), "fencing"), "credentials")


def _scheme(host: dict[str, Any]) -> str:
    return str(_map(host, "bmc").get("address", "")).partition("://")[0].partition("+")[0]


def _platform(config: dict[str, Any]) -> dict[str, Any]:
    return _map(_map(config, "platform"), "baremetal")


def _cidrs(config: dict[str, Any]) -> list[Any]:
    return [item.get("cidr") for item in _list(_map(config, "networking"), "machineNetwork")]


def _map(value: dict[str, Any], key: str) -> dict[str, Any]:
    inner = value.get(key)
    return inner if isinstance(inner, dict) else {}


def _list(value: dict[str, Any], key: str) -> list[Any]:
    inner = value.get(key)
    return inner if isinstance(inner, list) else []


def _network(value: Any) -> Any:
    try:
        return ipaddress.ip_network(value)
    except ValueError:
        return None


def _address(value: Any) -> Any:
    try:
        return ipaddress.ip_address(value)
    except ValueError:
        return None
