# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An inventory of the nodes for Ansible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import yaml_text
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.export.rack import redfish_of
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BmcProtocol, Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.credentials import Login
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.export.rack import Rack

FILE = "inventory.yml"
GROUPS = {
    Role.CONTROL_PLANE: "control_plane",
    Role.ARBITER: "arbiters",
    Role.WORKER: "workers",
    Role.SPARE: "spares",
}


def files(rack: Rack) -> dict[str, str]:
    groups: dict[str, Any] = {}
    for node in rack.nodes:
        hosts = groups.setdefault(GROUPS[Role(node["role"])], {"hosts": {}})["hosts"]
        hosts[node["name"]] = _variables(node, rack.logins[node["name"]])
    shared = {"lab": rack.lab["name"], "lab_domain": rack.lab["domain"], "bmc_ca_file": rack.ca_file}
    return {FILE: yaml_text.dump({"all": {"vars": shared, "children": groups}})}


def _variables(node: Mapping[str, Any], login: Login) -> dict[str, Any]:
    own = node["bmc"]
    by_redfish = dict(zip(("bmc_url", "bmc_system"), redfish_of(node)))
    return {
        "ansible_host": node["ips"][0],
        "mac": node["boot_mac"],
        "uuid": node["uuid"],
        "vm_name": node["vm_name"],
        "bmc_protocol": own["protocol"],
        "bmc_host": own["host"],
        "bmc_port": own["port"],
        **({} if own["protocol"] == BmcProtocol.IPMI else by_redfish),
        "bmc_username": login.username,
        "bmc_password": login.password,
    }
