# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The DNS names of the lab."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.node_list import Node
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.lab import LabSpec

RESERVED_NAMES = ("api", "api-int", "apps", "bootstrap")


def domain_of(spec: LabSpec) -> str:
    return f"{spec.name}.{spec.base_domain}"


def full_name(spec: LabSpec, name: str) -> str:
    """A name without a dot is in the lab's domain."""
    return name if "." in name else f"{name}.{domain_of(spec)}"


def own_names(spec: LabSpec, nodes: Iterable[Node]) -> set[str]:
    hosts = [*RESERVED_NAMES, *(node.name for node in nodes)]
    hosts += [item.name for item in spec.machine_network.reservations]
    return {full_name(spec, name) for name in hosts} | {f"*.apps.{domain_of(spec)}"}
