# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about single values: what the installer refuses on this platform, or in this release."""

from __future__ import annotations

import ipaddress
import re
import ssl
from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.installer_keys import PLATFORM
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.pools import pools
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.reading import at, entries, invalid
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.releases import PREVIEWS
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import must_be, show_key
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import inside
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import NEWEST, Release

CUSTOM = "CustomNoUpgrade"
FEATURE_SETS = ("", "LatencySensitive", *PREVIEWS, "OKD")
FEATURE_GATE = re.compile(r"[A-Za-z0-9_]+=(true|false)")
ONE_OF = {
    "publish": ("", "External"),
    "additionalTrustBundlePolicy": ("", "Proxyonly", "Always"),
    "cpuPartitioningMode": ("", "None", "AllNodes"),
    f"{PLATFORM}.loadBalancer.type": ("OpenShiftManagedDefault", "UserManaged"),
    f"{PLATFORM}.dnsRecordsType": ("", "Internal", "External"),
}
BAREMETAL = "baremetal"
LEFT_OUT = f"must be left out: not available on the platform {BAREMETAL}"
OF_OTHER_PLATFORMS = ("credentialsMode", "operatorPublishingStrategy", "networking.clusterNetworkMTU")
HYPERTHREADING = ("", "Enabled", "Disabled")
GATED = ("pki", f"{PLATFORM}.bgpVIPConfig")
"""Refused unless a feature set has them. Which gates a custom set has to have, the installer says."""
DOMAIN = re.compile(r"\.?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\.?")


def problems(config: dict[str, Any], release: Release) -> Iterator[Finding]:
    for path, names in ONE_OF.items():
        value = at(config, path)
        if value is not None and value not in names:
            yield invalid(path, must_be(" or ".join(filter(None, names)), value))
    for path in OF_OTHER_PLATFORMS:
        if at(config, path) not in (None, ""):
            yield invalid(path, LEFT_OUT)
    yield from _pools(config)
    yield from _feature_set(config, release)
    yield from _gated(config)
    yield from _no_proxy(at(config, "proxy.noProxy"))
    yield from _trust_bundle(config.get("additionalTrustBundle"))
    for number, host in enumerate(entries(config, f"{PLATFORM}.hosts")):
        yield from _quoted_mtu(host.get("networkConfig"), f"{PLATFORM}.hosts[{number}].networkConfig")


def _pools(config: dict[str, Any]) -> Iterator[Finding]:
    architecture = config["controlPlane"].get("architecture")
    for path, _name, pool in pools(config):
        mode = pool.get("hyperthreading", "")
        if mode is not None and mode not in HYPERTHREADING:
            yield invalid(f"{path}.hyperthreading", must_be("Enabled or Disabled", mode))
        if path.startswith("compute") and pool.get("architecture", architecture) != architecture:
            right = f"{architecture or 'left out'}, as that of controlPlane"
            yield invalid(f"{path}.architecture", must_be(right, pool.get("architecture")))
        platforms = pool.get("platform")
        for name in platforms if isinstance(platforms, Mapping) else []:
            if name != BAREMETAL:
                yield invalid(inside(f"{path}.platform", show_key(name)), LEFT_OUT)


def _feature_set(config: dict[str, Any], release: Release) -> Iterator[Finding]:
    own, gates = config.get("featureSet") or "", config.get("featureGates") or []
    if own not in FEATURE_SETS and release <= NEWEST:
        yield invalid("featureSet", must_be(f"one of {', '.join(filter(None, FEATURE_SETS))}", own))
    if gates and own != CUSTOM:
        yield invalid("featureGates", f"must be left out unless featureSet is {CUSTOM}")
    for number, gate in enumerate(gates if isinstance(gates, list) else []):
        if not isinstance(gate, str) or not FEATURE_GATE.fullmatch(gate):
            yield invalid(f"featureGates[{number}]", must_be("a gate with its state, such as Name=true", gate))


def _gated(config: dict[str, Any]) -> Iterator[Finding]:
    if config.get("featureSet") in PREVIEWS:
        return
    found = [path for path in GATED if at(config, path) is not None]
    found += [f"{path}.diskSetup" for path, _name, pool in pools(config) if pool.get("diskSetup")]
    hosts = enumerate(entries(config, f"{PLATFORM}.hosts"))
    found += [f"{PLATFORM}.hosts[{number}].bgpPeers" for number, host in hosts if host.get("bgpPeers")]
    if at(config, f"{PLATFORM}.dnsRecordsType") == "External":
        found.append(f"{PLATFORM}.dnsRecordsType")
    for path in found:
        yield invalid(path, f"a technology preview: set featureSet to one of {', '.join(PREVIEWS)}")


def _no_proxy(value: Any) -> Iterator[Finding]:
    if not isinstance(value, str) or value in ("", "*"):
        return
    for entry in value.split(","):
        if not DOMAIN.fullmatch(entry) and not _is_network(entry):
            right = "domains, addresses and networks without wildcards, capital letters and spaces"
            yield invalid("proxy.noProxy", must_be(f"{right}: .example.test has all names below example.test", entry))


def _is_network(value: str) -> bool:
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return False
    return True


def _trust_bundle(value: Any) -> Iterator[Finding]:
    if not isinstance(value, str) or not value:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=value)
    except (ssl.SSLError, ValueError):
        yield invalid("additionalTrustBundle", "must be one or more CA certificates in PEM")


def _quoted_mtu(value: Any, path: str) -> Iterator[Finding]:
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _quoted_mtu(item, f"{path}[{number}]")
    elif isinstance(value, Mapping):
        for name, item in value.items():
            where = inside(path, show_key(name))
            if name == "mtu" and not isinstance(item, (int, type(None))):
                yield invalid(where, must_be("a number, without quotes", item))
            else:
                yield from _quoted_mtu(item, where)
