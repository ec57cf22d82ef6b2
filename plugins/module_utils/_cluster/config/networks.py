# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the networks of the machines, and of the cluster inside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.networking import HOST_PREFIX
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.reading import at, entries, invalid, networks
from ansible_collections.nometal.ipi.plugins.module_utils._core.addresses import V6
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Network
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import must_be, must_not_overlap

NETWORKS = ("machineNetwork", "clusterNetwork", "serviceNetwork")


def problems(config: dict[str, Any]) -> Iterator[Finding]:
    kind = at(config, "networking.networkType")
    if not isinstance(kind, str) or not kind:
        yield invalid("networking.networkType", must_be("a name, such as OVNKubernetes", kind))
    seen: list[tuple[str, Network]] = []
    for key in NETWORKS:
        found = networks(config, key)
        if not found or None in found:
            yield invalid(f"networking.{key}", "must be a list of networks, one of each IP version")
        for item in (item for item in found if item):
            for other_key, other in seen:
                if other.version == item.version and other.overlaps(item):
                    yield invalid(f"networking.{key}", must_not_overlap(f"{other} of {other_key}", item))
            seen.append((key, item))
    versions = {key: {item.version for other_key, item in seen if other_key == key} for key in NETWORKS}
    for key in NETWORKS[1:]:
        if versions[key] and versions[NETWORKS[0]] and versions[key] != versions[NETWORKS[0]]:
            yield invalid(f"networking.{key}", f"must have one network of each IP version of {NETWORKS[0]}")
    yield from _host_prefixes(config)


def _host_prefixes(config: dict[str, Any]) -> Iterator[Finding]:
    for number, item in enumerate(networks(config, "clusterNetwork")):
        given = entries(config, "networking.clusterNetwork")[number]
        prefix = given.get("hostPrefix") if isinstance(given, Mapping) else None
        if item is None or prefix is None:
            continue
        right = f"{HOST_PREFIX[V6]}" if item.version == V6 else f"{item.prefixlen} to {item.max_prefixlen}"
        whole = isinstance(prefix, int) and not isinstance(prefix, bool)
        if not whole or prefix < item.prefixlen or (item.version == V6 and prefix != HOST_PREFIX[V6]):
            yield invalid(f"networking.clusterNetwork[{number}].hostPrefix", must_be(right, prefix))
