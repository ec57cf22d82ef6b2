# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the hosts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.installer_keys import PLATFORM
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.platform import ROLES
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.reading import at, entries, invalid
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import already_used, got, must_be
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import MAC_PATTERN
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BOOT_MODES, BmcProtocol

HOSTS = f"{PLATFORM}.hosts"
VIRTUAL_MEDIA = ("redfish-virtualmedia", "idrac-virtualmedia", "ilo5-virtualmedia")


def problems(config: dict[str, Any]) -> Iterator[Finding]:
    hosts = entries(config, HOSTS)
    yield from _counts(config, hosts)
    for name, values in (
        ("name", [host.get("name") for host in hosts]),
        ("bootMACAddress", [_lower(host.get("bootMACAddress")) for host in hosts]),
        ("bmc.address", [at(host, "bmc.address") for host in hosts]),
    ):
        yield from _one_each(name, values)
    for number, host in enumerate(hosts):
        yield from _host(config, host, f"{HOSTS}[{number}]")
    external = _lower(at(config, PLATFORM).get("externalMACAddress"))
    if external is not None and external in [_lower(host.get("bootMACAddress")) for host in hosts]:
        yield invalid(f"{PLATFORM}.externalMACAddress", already_used("a host", external))


def _counts(config: dict[str, Any], hosts: list[Any]) -> Iterator[Finding]:
    wanted = {
        "master": at(config, "controlPlane.replicas"),
        "arbiter": at(config, "arbiter.replicas") or 0,
        "worker": sum(pool["replicas"] for pool in config["compute"] if isinstance(pool.get("replicas"), int)),
    }
    there = Counter(host.get("role") for host in hosts if isinstance(host.get("role"), str))
    for role, count in wanted.items():
        if isinstance(count, int) and there[role] < count:
            yield invalid(HOSTS, f"must have {count} of the role {role}, one for each replica {got(there[role])}")


def _one_each(name: str, values: list[Any]) -> Iterator[Finding]:
    for number, value in enumerate(values):
        if not isinstance(value, str) or not value:
            yield invalid(f"{HOSTS}[{number}].{name}", "missing; every host must have one")
        elif value in values[:number]:
            yield invalid(f"{HOSTS}[{number}].{name}", already_used(f"hosts[{values.index(value)}]", value))


def _host(config: dict[str, Any], host: Mapping[str, Any], path: str) -> Iterator[Finding]:
    if host.get("role") not in ROLES.values():
        yield invalid(f"{path}.role", must_be(f"one of {_listed(ROLES)}", host.get("role")))
    mac = host.get("bootMACAddress")
    if isinstance(mac, str) and not re.fullmatch(MAC_PATTERN, mac):
        yield invalid(f"{path}.bootMACAddress", must_be("six pairs of hex digits", mac))
    mode, scheme = host.get("bootMode", "UEFI"), _scheme(host)
    if mode not in BOOT_MODES.values():
        yield invalid(f"{path}.bootMode", must_be(f"one of {_listed(BOOT_MODES)}", mode))
    if mode == "UEFISecureBoot" and scheme == BmcProtocol.IPMI:
        yield invalid(f"{path}.bootMode", must_be("UEFI or legacy with ipmi", mode))
    disabled = at(config, f"{PLATFORM}.provisioningNetwork") == "Disabled"
    if scheme and disabled and scheme not in VIRTUAL_MEDIA:
        media = f"one of {', '.join(VIRTUAL_MEDIA)} without a provisioning network"
        yield invalid(f"{path}.bmc.address", must_be(media, scheme))


def _listed(names: Mapping[Any, str]) -> str:
    return ", ".join(dict.fromkeys(names.values()))


def _scheme(host: Mapping[str, Any]) -> str:
    address = at(host, "bmc.address")
    return address.partition("://")[0].partition("+")[0] if isinstance(address, str) else ""


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value
