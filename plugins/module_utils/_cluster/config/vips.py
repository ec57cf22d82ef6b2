# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the addresses of the cluster and of the installer's bootstrap VM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.installer_keys import PLATFORM
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.keys import knows
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.reading import (
    address,
    at,
    in_machine_network,
    invalid,
    network,
    networks,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Network
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import (
    already_used,
    got,
    must_be,
    must_not_overlap,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import Release

STATIC = "bootstrapExternalStatic"
IN_MACHINE_NETWORK = "an address in the machine network"
ENDS = 2


def problems(config: dict[str, Any], release: Release) -> Iterator[Finding]:
    api, ingress = vips(config, "api"), vips(config, "ingress")
    for name, found in (("api", api), ("ingress", ingress)):
        yield from _vips(config, name, found)
        if f"{name}VIP" in at(config, PLATFORM) and f"{name}VIPs" in at(config, PLATFORM):
            yield invalid(f"{PLATFORM}.{name}VIP", f"must not be used with {name}VIPs: remove one of the two")
    for item in set(api) & set(ingress):
        yield invalid(f"{PLATFORM}.ingressVIPs", already_used("the API", item))
    if api and ingress and len(api) != len(ingress):
        yield invalid(
            f"{PLATFORM}.ingressVIPs", f"must have as many addresses as the API, {len(api)} {got(len(ingress))}"
        )
    yield from _static(config, [*api, *ingress], release)
    yield from _provisioning(config)


def vips(config: dict[str, Any], name: str) -> list[Any]:
    """By whichever key."""
    own = at(config, PLATFORM)
    found = own.get(f"{name}VIPs") if f"{name}VIPs" in own else [own.get(f"{name}VIP")]
    return found if isinstance(found, list) and all(isinstance(item, str) for item in found) else []


def _vips(config: dict[str, Any], name: str, found: list[str]) -> Iterator[Finding]:
    path = f"{PLATFORM}.{name}VIP{'s' if f'{name}VIPs' in at(config, PLATFORM) else ''}"
    if not found:
        yield invalid(path, "missing; must be an address in the machine network, or one of each IP version")
        return
    for item in found:
        parsed = address(item)
        if parsed is None or not in_machine_network(config, parsed):
            yield invalid(path, must_be(IN_MACHINE_NETWORK, item))
    versions = [parsed.version for parsed in map(address, found) if parsed]
    if len(set(versions)) < len(versions):
        yield invalid(path, must_be("one address of each IP version", ", ".join(found)))
    machine = networks(config, "machineNetwork")
    if versions and machine and machine[0] and versions[0] != machine[0].version:
        yield invalid(path, f"must have the IP version of the first machine network first {got(found[0])}")


def _static(config: dict[str, Any], taken: list[str], release: Release) -> Iterator[Finding]:
    own = {name: value for name, value in at(config, PLATFORM).items() if name.startswith(STATIC)}
    if not own:
        return
    for name in ("IP", "Gateway", "DNS"):
        if f"{STATIC}{name}" not in own and knows(release, f"{STATIC}{name}", PLATFORM):
            yield invalid(f"{PLATFORM}.{STATIC}{name}", f"missing; required with {min(own)}")
    for name, value in own.items():
        parsed = address(value)
        if parsed is None:
            yield invalid(f"{PLATFORM}.{name}", must_be("an address", value))
        elif not name.endswith("DNS") and not in_machine_network(config, parsed):
            yield invalid(f"{PLATFORM}.{name}", must_be(IN_MACHINE_NETWORK, value))
    ip = own.get(f"{STATIC}IP")
    if ip in taken or ip == own.get(f"{STATIC}Gateway"):
        yield invalid(f"{PLATFORM}.{STATIC}IP", already_used("a VIP or the gateway", ip))


def _provisioning(config: dict[str, Any]) -> Iterator[Finding]:
    own = at(config, PLATFORM)
    mode, given = own.get("provisioningNetwork", "Managed"), own.get("provisioningNetworkCIDR")
    if mode not in ("Managed", "Unmanaged", "Disabled"):
        yield invalid(f"{PLATFORM}.provisioningNetwork", must_be("Managed, Unmanaged or Disabled", mode))
    if given is None or mode == "Disabled":
        return
    cidr = network(given)
    if cidr is None:
        yield invalid(f"{PLATFORM}.provisioningNetworkCIDR", must_be("a network", given))
        return
    for other in networks(config, "machineNetwork"):
        if other and other.version == cidr.version and other.overlaps(cidr):
            yield invalid(f"{PLATFORM}.provisioningNetworkCIDR", must_not_overlap(f"the machine network {other}", cidr))
    for key in ("bootstrapProvisioningIP", "clusterProvisioningIP"):
        item = address(own.get(key))
        if key in own and (item is None or item not in cidr):
            yield invalid(f"{PLATFORM}.{key}", must_be(f"an address in {cidr}", own[key]))
    if "provisioningDHCPRange" in own and not _is_range(own["provisioningDHCPRange"], cidr):
        text = must_be(f"start,end in {cidr}", own["provisioningDHCPRange"])
        yield invalid(f"{PLATFORM}.provisioningDHCPRange", text)


def _is_range(value: object, cidr: Network) -> bool:
    ends = [address(part) for part in value.split(",")] if isinstance(value, str) else []
    return len(ends) == ENDS and all(item is not None and item in cidr for item in ends)
