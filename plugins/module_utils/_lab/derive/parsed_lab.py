# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A specification with values derived from it alone, as the rules check it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.dns import domain_of
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.node_list import Node, node_list
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import Identity
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.lab import LabSpec


@dataclass(frozen=True)
class ParsedLab:
    spec: LabSpec
    inventory: tuple[str, ...] = ()
    """Hosts of the inventory's group hypervisors, where it is known."""

    @cached_property
    def identity(self) -> Identity:
        return Identity(self.spec.name)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        return node_list(self.spec)

    @cached_property
    def domain(self) -> str:
        return domain_of(self.spec)
