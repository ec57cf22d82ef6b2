#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_power
short_description: Stop the nodes of a lab, and start them again
version_added: 0.2.0
description:
  - Stops all nodes of a lab, workers before the control plane, or starts those that were stopped, the other way round.
  - Nodes are switched by their BMCs, with the credentials that lie on the host. The systems on them are asked to shut
    down, and switched off by force when they have not done so in time.
  - A stop notes which VMs it switches off, before the first of them. A start switches on those, and no others.
  - Either can be repeated, also after a run that was killed, and changes nothing once it is done.
author:
  - nometal.ipi contributors (@nometal)
attributes:
  check_mode:
    support: full
    description: It only asks the BMCs, and returns which nodes would be switched.
options:
  lab:
    description: Name of the lab.
    type: str
    required: true
  nodes:
    description: The lab's nodes on this host, as the lab model lists them.
    type: list
    elements: dict
    required: true
  state:
    description: Whether the nodes are to be stopped or started.
    type: str
    choices: [stopped, started]
    required: true
  force:
    description:
      - Whether to stop the nodes of an installed cluster.
    type: bool
    default: false
  shutdown_seconds:
    description: How long the system of a node may take to shut down before it is switched off by force.
    type: int
    default: 300
  home:
    description: Directory in which labs are registered. Which VMs a stop has switched off is noted there.
    type: path
    default: /var/lib/nometal
  bmc_home:
    description: Directory of what labs' BMC services keep, as of M(nometal.ipi.redfish_emulator).
    type: path
    default: /var/lib/nometal/bmc
  bmc_software:
    description: Directory of the BMC software, as of M(nometal.ipi.bmc_software). BMCs that speak IPMI are asked by it.
    type: path
    default: /opt/nometal/bmc
seealso:
  - module: nometal.ipi.bmc_info
"""

EXAMPLES = r"""
- name: Stop the nodes
  nometal.ipi.cluster_power:
    lab: demo
    nodes: "{{ lab.nodes }}"
    state: stopped

- name: Start the nodes that were stopped
  nometal.ipi.cluster_power:
    lab: demo
    nodes: "{{ lab.nodes }}"
    state: started
"""

RETURN = r"""
switched:
  description: Names of the nodes that were switched off, or on.
  returned: success
  type: list
  elements: str
  sample: [worker-0, control-plane-0]
forced:
  description: Names of the nodes whose systems did not shut down in time, and which were switched off by force.
  returned: success
  type: list
  elements: str
  sample: []
steps:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample: ["shut down worker-0, worker-1", shut down control-plane-0]
"""

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._bmc.power import Bmcs
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.installation import Installation
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.nodes import Node, Record
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.power import Lab
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.switching import Silence, Switching
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import outcome
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.reading import glance
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError, run_module
from ansible_collections.nometal.ipi.plugins.module_utils._core.events import EventLog
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import paths_of

if TYPE_CHECKING:
    from typing import Any

ARGUMENTS = {
    "lab": {"type": "str", "required": True},
    "nodes": {"type": "list", "elements": "dict", "required": True},
    "state": {"type": "str", "choices": ["stopped", "started"], "required": True},
    "force": {"type": "bool", "default": False},
    "shutdown_seconds": {"type": "int", "default": 300},
    "home": {"type": "path", "default": "/var/lib/nometal"},
    "bmc_home": {"type": "path", "default": "/var/lib/nometal/bmc"},
    "bmc_software": {"type": "path", "default": "/opt/nometal/bmc"},
}


def run(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    paths = paths_of(params["lab"])
    bmcs = Bmcs(params["bmc_home"], params["lab"], params["bmc_software"])
    nodes = [node for node in map(Node.of_model, params["nodes"]) if node.vm_name in bmcs.names]
    log = Silence() if check_mode else EventLog(paths.power_events)
    switching = Switching(bmcs, log, params["shutdown_seconds"])
    state = glance(Installation(paths))["state"]
    refuse_cluster(state, params)
    lab = Lab(nodes, switching, Record(params["home"], params["lab"]), check_mode)
    return lab.stop() if params["state"] == "stopped" else lab.start()


def refuse_cluster(state: str, params: dict[str, Any]) -> None:
    if state == outcome.RUNNING:
        raise OperatorError(f"The installation of lab {params['lab']} runs: wait until it has ended.")
    if state == outcome.INSTALLED and params["state"] == "stopped" and not params["force"]:
        raise OperatorError(f"Lab {params['lab']} has a cluster. To stop its nodes nevertheless, set force.")


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
