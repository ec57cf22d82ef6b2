# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an installer refuses in an install-config.yaml, or fails on without an error message.

The model keeps these rules. lab_spec.install.config is merged last, and can break them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import capabilities as config_capabilities
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import hosts as config_hosts
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import networks as config_networks
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import pools as config_pools
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import vips as config_vips
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.pools import FENCES
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.reading import at, entries, invalid
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.releases import (
    BMC,
    FENCE,
    HINTS,
    HOST,
    KEYS,
    NETWORKING,
    PLATFORM,
    POOL,
    TOP,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import LONGEST_CLUSTER_NAME
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import must_be, nearest, show_key
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import inside
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import LABEL_PATTERN
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import Release, release_text

MAPPINGS = ("metadata", "networking", "controlPlane", "platform", PLATFORM)
LISTS = ("compute", f"{PLATFORM}.hosts")


def problems(config: dict[str, Any], release: Release) -> list[Finding]:
    """All errors; their subjects are keys."""
    misshapen = list(_shapes(config))
    if misshapen:
        return misshapen
    return [
        *_keys(config, release),
        *_identity(config),
        *config_capabilities.problems(config, release),
        *config_networks.problems(config),
        *config_pools.problems(config, release),
        *config_vips.problems(config, release),
        *config_hosts.problems(config),
    ]


def _shapes(config: dict[str, Any]) -> Iterator[Finding]:
    """The other rules rely on these."""
    for path in (*MAPPINGS, *(["arbiter"] if "arbiter" in config else [])):
        if not isinstance(at(config, path), Mapping):
            yield invalid(path, must_be("a mapping, or left to the lab", at(config, path)))
    for path in (*LISTS, *([FENCES] if at(config, FENCES) is not None else [])):
        found = at(config, path)
        if not isinstance(found, list) or not all(isinstance(item, Mapping) for item in found):
            yield invalid(path, must_be("a list of mappings, or left to the lab", found))


def _keys(config: dict[str, Any], release: Release) -> Iterator[Finding]:
    yield from _unknown(config, TOP, "", release)
    yield from _unknown(config["networking"], NETWORKING, NETWORKING, release)
    for path, _name, pool in config_pools.pools(config):
        yield from _unknown(pool, POOL, path, release)
    yield from _unknown(at(config, PLATFORM), PLATFORM, PLATFORM, release)
    for number, host in enumerate(entries(config, f"{PLATFORM}.hosts")):
        path = f"{PLATFORM}.hosts[{number}]"
        yield from _unknown(host, HOST, path, release)
        for name, section in (("bmc", BMC), ("rootDeviceHints", HINTS)):
            if isinstance(host.get(name), Mapping):
                yield from _unknown(host[name], section, f"{path}.{name}", release)
    for number, credential in enumerate(entries(config, FENCES)):
        yield from _unknown(credential, FENCE, f"{FENCES}[{number}]", release)


def _unknown(given: Mapping[str, Any], section: str, path: str, release: Release) -> Iterator[Finding]:
    known = {name for name, since in KEYS[section].items() if since <= release}
    for name in given:
        if name in known:
            continue
        where, since = inside(path, show_key(name)), KEYS[section].get(name)
        here = release_text(release)
        if since:
            yield invalid(where, f"not available in release {here}; the first release with it is {release_text(since)}")
            continue
        close = nearest(str(name), known)
        yield invalid(where, f"unknown key in release {here}; {f'did you mean {close}?' if close else 'remove it'}")


def _identity(config: dict[str, Any]) -> Iterator[Finding]:
    if config.get("apiVersion") != "v1":
        yield invalid("apiVersion", must_be("v1", config.get("apiVersion")))
    name = config["metadata"].get("name")
    if not isinstance(name, str) or not re.fullmatch(LABEL_PATTERN, name) or len(name) > LONGEST_CLUSTER_NAME:
        yield invalid(
            "metadata.name", must_be(f"a name of at most {LONGEST_CLUSTER_NAME} characters, without a dot", name)
        )
    if not isinstance(config.get("baseDomain"), str) or not config["baseDomain"]:
        yield invalid("baseDomain", must_be("a domain", config.get("baseDomain")))
    if list(config["platform"]) != ["baremetal"]:
        yield invalid("platform", must_be("baremetal alone", ", ".join(map(show_key, config["platform"]))))
    if "imageContentSources" in config and "imageDigestSources" in config:
        yield invalid("imageContentSources", "must not be used with imageDigestSources: remove one of the two")
