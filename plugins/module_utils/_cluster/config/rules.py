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
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import keys
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import networks as config_networks
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import pools as config_pools
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import values as config_values
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import vips as config_vips
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.installer_keys import PLATFORM
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.pools import FENCES
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.reading import at, invalid
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import LONGEST_CLUSTER_NAME
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import must_be, show_key
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import is_within
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import LABEL_PATTERN
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import Release

MAPPINGS = ("metadata", "networking", "controlPlane", "platform", PLATFORM)
LISTS = ("compute", f"{PLATFORM}.hosts")


def problems(config: dict[str, Any], release: Release) -> list[Finding]:
    """All errors, and warnings about keys that may be new in the release; their subjects are keys."""
    misshapen = list(_shapes(config))
    if misshapen:
        return misshapen
    found = [
        *keys.unknown(config, release),
        *_identity(config),
        *config_capabilities.problems(config, release),
        *config_networks.problems(config, release),
        *config_pools.problems(config, release),
        *config_vips.problems(config, release),
        *config_hosts.problems(config),
        *config_values.problems(config, release),
    ]
    reported = [finding.subject for finding in found]
    mistyped = keys.mistyped(config, release)
    return found + [finding for finding in mistyped if not any(_overlap(finding.subject, key) for key in reported)]


def _overlap(path: str, other: str) -> bool:
    return is_within(path, other) or is_within(other, path)


def _shapes(config: dict[str, Any]) -> Iterator[Finding]:
    """The other rules rely on these."""
    for path in (*MAPPINGS, *(["arbiter"] if "arbiter" in config else [])):
        if not isinstance(at(config, path), Mapping):
            yield invalid(path, must_be("a mapping, or left to the lab", at(config, path)))
    for path in (*LISTS, *([FENCES] if at(config, FENCES) is not None else [])):
        found = at(config, path)
        if not isinstance(found, list) or not all(isinstance(item, Mapping) for item in found):
            yield invalid(path, must_be("a list of mappings, or left to the lab", found))


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
