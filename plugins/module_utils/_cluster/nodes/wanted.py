# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the cluster is to have: the hosts of the lab, as install-config.yaml would name them, and their logins. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import platform
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.node_list import MAY_BE_LEFT_OUT
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Role

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.credentials import Login
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import Release

BY_COUNT = MAY_BE_LEFT_OUT
"""Which come and go with the counts of lab_spec. Nodes of the control plane never do."""


@dataclass(frozen=True)
class WantedHost:
    name: str
    role: str
    facts: Mapping[str, Any]
    """As in install-config.yaml."""
    username: str = ""
    password: str = field(default="", repr=False)

    @property
    def is_spare(self) -> bool:
        return self.role == Role.SPARE

    @property
    def is_worker(self) -> bool:
        return self.role == Role.WORKER


@dataclass(frozen=True)
class Wanted:
    lab: str
    bmc_host: str
    """The address at which the BMCs of the lab are."""
    hosts: Mapping[str, WantedHost]
    """By name, without spares that are not to be registered."""
    nodes: Collection[str] = ()
    """Names of all nodes of the lab."""
    trusted: str = ""
    """Certificate of the CA by which the cluster verifies the BMCs; empty where it does not."""
    replaced: Mapping[str, str] = field(default_factory=dict)
    """By name, the UIDs of the BareMetalHosts that are to be replaced."""

    @property
    def workers(self) -> Sequence[str]:
        return [host.name for host in self.hosts.values() if host.is_worker]


def wanted_of(
    lab: Mapping[str, Any],
    release: Release,
    bmc_ca: str,
    logins: Mapping[str, Login],
    replaced: Mapping[str, str],
) -> Wanted:
    trusted = platform.trusted_ca(lab, release, bmc_ca)
    return Wanted(
        lab=lab["name"],
        bmc_host=lab["bmc"]["host"],
        hosts={
            node["name"]: host_of(lab, node, trusted, logins)
            for node in lab["nodes"]
            if node["role"] != Role.SPARE or lab["registers_spares"]
        },
        nodes=[node["name"] for node in lab["nodes"]],
        trusted=trusted or "",
        replaced=replaced,
    )


def spares_of(lab: Mapping[str, Any], release: Release, bmc_ca: str, logins: Mapping[str, Login]) -> list[WantedHost]:
    trusted = platform.trusted_ca(lab, release, bmc_ca)
    return [host_of(lab, node, trusted, logins) for node in lab["nodes"] if node["role"] == Role.SPARE]


def without_login(hosts: Collection[WantedHost]) -> list[str]:
    return [host.name for host in hosts if not host.password]


def host_of(
    lab: Mapping[str, Any], node: Mapping[str, Any], trusted: str | None, logins: Mapping[str, Login]
) -> WantedHost:
    login = logins.get(node["name"])
    return WantedHost(
        name=node["name"],
        role=node["role"],
        facts=platform.host(lab, node, trusted),
        username=login.username if login else "",
        password=login.password if login else "",
    )
