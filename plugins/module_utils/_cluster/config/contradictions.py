# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lab_spec.install.config must not change: names, addresses, networks and VMs that the lab has made already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.hosts import HOSTS
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.installer_keys import PLATFORM
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.reading import at, entries, networks
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.vips import STATIC, vips
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import must_be

KEYS = {
    "metadata.name": "name",
    "baseDomain": "base_domain",
    f"{PLATFORM}.externalBridge": "machine_network.bridge",
    f"{PLATFORM}.externalMACAddress": "bootstrap",
    f"{PLATFORM}.{STATIC}IP": "bootstrap.ip",
    f"{PLATFORM}.provisioningNetwork": "provisioning_network",
    f"{PLATFORM}.provisioningBridge": "provisioning_network.bridge",
    f"{PLATFORM}.provisioningNetworkCIDR": "provisioning_network.cidr",
}
"""The keys of lab_spec that give these."""
MACHINE_NETWORK = "networking.machineNetwork"


def contradictions(made: dict[str, Any], config: dict[str, Any]) -> Iterator[Finding]:
    """In a configuration that was changed from the lab's own."""
    if not isinstance(at(config, PLATFORM), Mapping):
        return
    for path, key in KEYS.items():
        if at(made, path) is not None:
            yield from _other(path, at(config, path), at(made, path), key)
    yield from _other(MACHINE_NETWORK, _networks(config), _networks(made), "machine_network.cidr")
    for name in ("api", "ingress"):
        path = f"{PLATFORM}.{name}VIP{'s' if f'{name}VIPs' in at(made, PLATFORM) else ''}"
        yield from _other(path, _vips(config, name), _vips(made, name), f"machine_network.vips.{name}")
    theirs, ours = _hosts(config), _hosts(made)
    other = [name for name in {**ours, **theirs} if theirs.get(name) != ours.get(name)]
    if other:
        parts = "name, role, bootMACAddress and bmc.address"
        yield _contradiction(HOSTS, must_be(f"as lab_spec.nodes gives the hosts in {parts}", ", ".join(other)))


def _other(path: str, theirs: Any, ours: Any, key: str) -> Iterator[Finding]:
    if theirs != ours:
        yield _contradiction(path, must_be(f"{ours}, as lab_spec.{key} gives it", theirs))


def _contradiction(path: str, message: str) -> Finding:
    return Finding("install_config.contradiction", path, message)


def _networks(config: dict[str, Any]) -> str | None:
    return ", ".join(map(str, networks(config, "machineNetwork"))) or None


def _vips(config: dict[str, Any], name: str) -> str | None:
    return ", ".join(vips(config, name)) or None


def _hosts(config: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    return {
        str(host.get("name")): (
            str(host.get("role")),
            str(host.get("bootMACAddress")).lower(),
            str(at(host, "bmc.address")),
        )
        for host in entries(config, HOSTS)
        if isinstance(host, Mapping)
    }
