# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the installer reaches without a proxy: the lab, of which no proxy knows anything. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.installer_keys import PLATFORM
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.reading import at, entries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROXY = re.compile(r"(https?|all)_proxy", re.IGNORECASE)
EXCEPTIONS = ("NO_PROXY", "no_proxy")
"""Some programs read the one, some the other."""


def exceptions(environment: Mapping[str, str], config: Mapping[str, Any]) -> dict[str, str]:
    """As environment. What is given stays; nothing where no proxy is."""
    if not any(PROXY.fullmatch(name) for name in environment):
        return {}
    given = [entry.strip() for name in EXCEPTIONS for entry in environment.get(name, "").split(",")]
    every = [entry for entry in (*given, *_of_lab(config)) if isinstance(entry, str) and entry]
    return dict.fromkeys(EXCEPTIONS, ",".join(dict.fromkeys(every)))


def _of_lab(config: Mapping[str, Any]) -> Iterator[Any]:
    yield from ("localhost", "127.0.0.1", "::1")
    name, domain = at(config, "metadata.name"), at(config, "baseDomain")
    if name and domain:
        yield f".{name}.{domain}"
    for network in entries(config, "networking.machineNetwork"):
        yield at(network, "cidr")
    yield at(config, f"{PLATFORM}.provisioningNetworkCIDR")
    for key in ("apiVIP", "ingressVIP"):
        yield at(config, f"{PLATFORM}.{key}")
        yield from entries(config, f"{PLATFORM}.{key}s")
