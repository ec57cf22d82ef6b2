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
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import got, must_be, must_not_overlap
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import Release, release_text

MACHINES, SERVICES = "machineNetwork", "serviceNetwork"
NETWORKS = (MACHINES, "clusterNetwork", SERVICES)
RETIRED, WITHOUT_RETIRED = ("openshiftsdn", "kuryr"), (4, 15)


def problems(config: dict[str, Any], release: Release) -> Iterator[Finding]:
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
    yield from _versions({key: [item.version for other_key, item in seen if other_key == key] for key in NETWORKS})
    yield from _retired(kind, any(item.version == V6 for _key, item in seen), release)
    yield from _host_prefixes(config)


def _versions(found: dict[str, list[int]]) -> Iterator[Finding]:
    """IP versions by key."""
    machine = found[MACHINES]
    for key, versions in found.items():
        if not versions or not machine:
            continue
        if set(versions) != set(machine):
            yield invalid(f"networking.{key}", f"must have one network of each IP version of {MACHINES}")
        elif versions[0] != machine[0]:
            yield invalid(f"networking.{key}", f"must begin with IPv{machine[0]}, as {MACHINES} does")
    if len(found[SERVICES]) > len(set(found[SERVICES])):
        yield invalid(f"networking.{SERVICES}", f"must have one network of each IP version {got(len(found[SERVICES]))}")


def _retired(kind: Any, has_v6: bool, release: Release) -> Iterator[Finding]:
    if not isinstance(kind, str) or kind.lower() not in RETIRED:
        return
    if release >= WITHOUT_RETIRED or has_v6:
        where = f"from release {release_text(WITHOUT_RETIRED)} on" if release >= WITHOUT_RETIRED else "with IPv6"
        yield invalid("networking.networkType", f"not available {where}: use OVNKubernetes {got(kind)}")


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
