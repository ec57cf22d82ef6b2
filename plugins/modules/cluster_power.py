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
  - Before the nodes of an installed cluster are stopped, the state of etcd and the age of certificates are looked at,
    etcd is backed up, all nodes are cordoned, workers are drained, and metal3 is made to leave the hosts alone. The
    control plane node that holds the address of the API goes last.
  - When such nodes are started, the API is waited for. Certificates for which kubelets of the lab's nodes ask are
    approved. What a stop has cordoned and paused is released, and operators are waited for.
  - A stop notes which VMs it switches off, before the first of them. A start switches on those. Without such a note, as
    after a power cut, it switches on the nodes that belong to the cluster, if there is one.
  - Either can be repeated, also after a run that was killed, and changes nothing once it is done. One that
    finds another at work waits until that has ended.
author:
  - nometal.ipi contributors (@nometal)
attributes:
  check_mode:
    support: full
    description: It asks the BMCs and the API, and returns what would be done.
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
  domain:
    description: The lab's domain, below which C(api) is.
    type: str
    default: ""
  vips:
    description: The cluster's virtual addresses, C(api) and C(ingress), a list each.
    type: dict
    default: {}
  days:
    description: For how long the cluster is to be stopped. What expires meanwhile is reported before it is.
    type: float
    default: 1.0
  force:
    description:
      - Whether to stop the nodes of a cluster whose API does not answer, whose control plane is not ready, whose etcd
        is not healthy, or of which no backup can be taken.
    type: bool
    default: false
  backup:
    description:
      - Whether etcd is backed up before the nodes of a cluster are stopped. It takes C(oc).
      - The last three backups are kept in C(/var/lib/nometal/install/<lab>/backups), for root alone.
    type: bool
    default: true
  drain_seconds:
    description: How long the pods of each worker may take to leave it. After that the worker is stopped nevertheless.
    type: int
    default: 60
  shutdown_seconds:
    description: How long the system of a node may take to shut down before it is switched off by force.
    type: int
    default: 300
  api_seconds:
    description: How long the API may take until it answers, once the control plane is switched on.
    type: int
    default: 1800
  ready_seconds:
    description: How long nodes may take until they are ready, the control plane first, then workers.
    type: int
    default: 1800
  operators_seconds:
    description: How long operators may take until they have settled. After that it is reported, and no failure.
    type: int
    default: 1800
  tools:
    description: Directory with C(oc) of the cluster's version. Otherwise C(oc) or C(kubectl) of the PATH is used.
    type: path
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
  - module: nometal.ipi.cluster_info
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
left:
  description:
    - Certificate requests of kubelets that wait in the end and were not approved, as they are not those of a node of
      the lab, or of one that has its certificate.
  returned: success
  type: list
  elements: str
  sample: [csr-x7k2p]
steps:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample: ["cordon control-plane-0, worker-0", drain worker-0, shut down worker-0, shut down control-plane-0]
"""

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._bmc.power import Bmcs
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api import objects
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import client_of
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.errors import ApiError
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.installation import Installation
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power import diagnosis
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.backup import NO_BACKUP, EtcdBackup
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.cluster import Cluster
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.nodes import Node, Record
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.power import Lab
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.start import ClusterStart, Limits
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.stop import (
    WITHOUT_API,
    ClusterStop,
    Options,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.switching import Silence, Switching
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import outcome
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.reading import glance
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError, run_module
from ansible_collections.nometal.ipi.plugins.module_utils._core.events import EventLog
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import one_at_a_time
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import paths_of

if TYPE_CHECKING:
    from typing import Any

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import Client
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths

ARGUMENTS = {
    "lab": {"type": "str", "required": True},
    "nodes": {"type": "list", "elements": "dict", "required": True},
    "state": {"type": "str", "choices": ["stopped", "started"], "required": True},
    "domain": {"type": "str", "default": ""},
    "vips": {"type": "dict", "default": {}},
    "days": {"type": "float", "default": 1.0},
    "force": {"type": "bool", "default": False},
    "backup": {"type": "bool", "default": True},
    "drain_seconds": {"type": "int", "default": 60},
    "shutdown_seconds": {"type": "int", "default": 300},
    "api_seconds": {"type": "int", "default": 1800},
    "ready_seconds": {"type": "int", "default": 1800},
    "operators_seconds": {"type": "int", "default": 1800},
    "tools": {"type": "path"},
    "home": {"type": "path", "default": "/var/lib/nometal"},
    "bmc_home": {"type": "path", "default": "/var/lib/nometal/bmc"},
    "bmc_software": {"type": "path", "default": "/opt/nometal/bmc"},
}
NO_CLIENT = (
    "The cluster of lab {lab} cannot be asked: the host has no `oc` in {tools}, and no `oc` or `kubectl` elsewhere."
)
NOT_INSTALLED = (
    "The lab's installation has not succeeded, so its nodes were treated as those of a lab without a cluster. If there "
    "is one, start the nodes, and run this again when its API answers."
)


def run(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    paths = paths_of(params["lab"])
    # A run outlives an Ansible that is cancelled, and the lab's lock with it.
    with one_at_a_time(f"cluster_power-{paths.lab}", check_mode=check_mode):
        return switch(params, paths, check_mode=check_mode)


def switch(params: dict[str, Any], paths: Paths, *, check_mode: bool) -> dict[str, Any]:
    bmcs = Bmcs(params["bmc_home"], params["lab"], params["bmc_software"])
    nodes = [node for node in map(Node.of_model, params["nodes"]) if node.vm_name in bmcs.names]
    state = glance(Installation(paths))["state"]
    if state == outcome.RUNNING:
        raise OperatorError(f"The installation of lab {params['lab']} runs: wait until it has ended.")
    client, warnings = client_for(params, paths, state)
    log = Silence() if check_mode else EventLog(paths.power_events)
    switching = Switching(bmcs, log, params["shutdown_seconds"])
    lab = Lab(nodes, switching, Record(params["home"], params["lab"]), check_mode)
    is_stop = params["state"] == "stopped"
    if client is None:
        result = lab.stop() if is_stop else lab.start()
        result["warnings"] += warnings
        return result
    return stop(params, lab, client) if is_stop else start(params, lab, client)


def client_for(params: dict[str, Any], paths: Paths, state: str) -> tuple[Client | None, list[str]]:
    """By which the lab's cluster is asked, or None if the lab has none; and what to warn of then.

    An installation that has failed may have made a cluster nevertheless: one whose operators did not settle in time.
    """
    if not (state == outcome.INSTALLED or paths.kubeconfig.exists()):
        return None, []
    client = client_of(paths, params["tools"])
    if state == outcome.INSTALLED:
        if client is None and not (params["state"] == "stopped" and params["force"]):
            raise OperatorError(NO_CLIENT.format(**params))
        return client, [] if client else [WITHOUT_API]
    try:
        if client is not None:
            client.get(objects.NODES)
            return client, []
        said = NO_CLIENT.format(**params)
    except ApiError as error:
        said = str(error)
    return None, [f"{said} {NOT_INSTALLED}"]


def stop(params: dict[str, Any], lab: Lab, client: Client) -> dict[str, Any]:
    has_oc = client.program.name == "oc"
    stopping = ClusterStop(
        lab,
        Cluster(client, lab.nodes),
        Options(params["days"], params["force"], params["drain_seconds"]),
        holders=lambda: diagnosis.holders(params["vips"].get("api", [])),
        backup=EtcdBackup(client, paths_of(params["lab"]).backups) if params["backup"] and has_oc else None,
    )
    result = stopping.run()
    if params["backup"] and not has_oc and result["changed"]:
        result["warnings"].append(NO_BACKUP)
    return result


def start(params: dict[str, Any], lab: Lab, client: Client) -> dict[str, Any]:
    installation = Installation(
        paths=paths_of(params["lab"]),
        domain=params["domain"],
        api_vips=params["vips"].get("api", []),
        nodes=params["nodes"],
        bmc_home=params["bmc_home"],
        tools=params["tools"],
    )
    limits = Limits(params["api_seconds"], params["ready_seconds"], params["operators_seconds"])
    cluster = Cluster(client, lab.nodes)
    return ClusterStart(lab, cluster, lambda names: diagnosis.findings(installation, names), limits).run()


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
