# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading an install-config.yaml of any shape."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Address, Network


def invalid(key: str, message: str) -> Finding:
    return Finding("install_config.invalid", key, message)


def at(config: Any, path: str) -> Any:
    """None where the path ends early."""
    for name in path.split("."):
        config = config.get(name) if isinstance(config, Mapping) else None
    return config


def entries(config: Any, path: str) -> list[Any]:
    found = at(config, path)
    return found if isinstance(found, list) else []


def networks(config: Any, key: str) -> list[Network | None]:
    """None for each item that is invalid."""
    found = entries(config, f"networking.{key}")
    return [network(item.get("cidr") if isinstance(item, Mapping) else item) for item in found]


def network(value: object) -> Network | None:
    try:
        return ipaddress.ip_network(value) if isinstance(value, str) else None
    except ValueError:
        return None


def address(value: object) -> Address | None:
    try:
        return ipaddress.ip_address(value) if isinstance(value, str) else None
    except ValueError:
        return None


def in_machine_network(config: Any, item: Address) -> bool:
    return any(net is not None and item in net for net in networks(config, "machineNetwork"))
