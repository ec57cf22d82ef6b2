# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab with all addresses, from which the model is made."""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.nometal.ipi.plugins.module_utils._core.addresses import of_family
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Address
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import Problems
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive import declared
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.addresses import FamilyPlan, plan_family
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.node_list import Node
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.parsed_lab import ParsedLab
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.provisioning import (
    ProvisioningPlan,
    plan_provisioning,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import Identity
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.lab import LabSpec
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BootstrapAddress


@dataclass(frozen=True)
class Lab:
    """A parsed lab with all its addresses."""

    parsed: ParsedLab
    families: tuple[FamilyPlan, ...]
    """The primary family first."""
    provisioning: ProvisioningPlan | None

    @property
    def spec(self) -> LabSpec:
        return self.parsed.spec

    @property
    def identity(self) -> Identity:
        return self.parsed.identity

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.parsed.nodes

    @property
    def domain(self) -> str:
        return self.parsed.domain

    @property
    def primary(self) -> FamilyPlan:
        return self.families[0]

    def ips(self, node: Node) -> list[str]:
        return [str(family.nodes[node.name]) for family in self.families]

    def fqdn(self, name: str) -> str:
        return f"{name}.{self.domain}"

    @property
    def bootstrap_mac(self) -> str | None:
        own = self.spec.bootstrap
        return own.mac or self.identity.mac_of("bootstrap") if own.address == BootstrapAddress.RESERVED else None

    @property
    def bootstrap_ips(self) -> list[Address]:
        return [family.bootstrap for family in self.families if family.bootstrap]

    def own(self, addresses: tuple[Address, ...]) -> list[Address]:
        """In the order of the lab's families."""
        found = [of_family(addresses, family.network.version) for family in self.families]
        return [item for item in found if item]


def planned(parsed: ParsedLab, problems: Problems) -> Lab | None:
    """Assign all addresses, or report which network is too small."""
    spec = parsed.spec
    outcomes = [plan_family(spec, parsed.nodes, net) for net in declared.machine_networks(spec)]
    problems.found.extend(outcome for outcome in outcomes if isinstance(outcome, Finding))
    families = tuple(outcome for outcome in outcomes if isinstance(outcome, FamilyPlan))
    own = spec.provisioning_network
    return None if problems.found else Lab(parsed, families, plan_provisioning(own) if own else None)
