# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs of a lab that are not declared any more: they run on, and only their BMCs can switch them off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import config
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.arguments import is_vm_name
from ansible_collections.nometal.ipi.plugins.module_utils._bmc.lab import Endpoint, Node
from ansible_collections.nometal.ipi.plugins.module_utils._observe import domain_xml as xml

if TYPE_CHECKING:
    from typing import Any

    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.lab import Lab


def undeclared(connection: Any, lab: Lab, former_config: str) -> dict[str, Node | None]:
    """By name, with the BMC that each goes on having. None: there is no place for it."""
    declared = {text for node in lab.nodes for text in (node.uuid, node.name)}
    ports = config.ipmi_ports(former_config)
    found = {
        domain.name(): domain.UUIDString()
        for domain in connection.listAllDomains()
        if declared.isdisjoint((domain.UUIDString(), domain.name())) and _is_of(lab, domain)
    }
    return {name: _node(lab, name, uuid, ports.get(uuid)) for name, uuid in sorted(found.items())}


def _is_of(lab: Lab, domain: Any) -> bool:
    return xml.mark_of(xml.parsed(domain.XMLDesc(0))).owner == lab.name


def _node(lab: Lab, name: str, uuid: str, port: int | None) -> Node | None:
    if not is_vm_name(name):  # somebody has renamed it
        return None
    if lab.listen:
        return Node(uuid, name)
    declared = [place for _node, place in lab.by_ipmi]
    if port is None or not declared or port in {place.port for place in declared}:
        return None
    return Node(uuid, name, ipmi=Endpoint(declared[0].address, port))
