#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_nodes
short_description: The nodes of an installed cluster follow those of the lab
version_added: 0.1.0
description:
  - With O(part=shrink), workers and registered spares leave the cluster that the lab no longer has. Each Node is
    cordoned and drained, its Machine is chosen by annotation and goes as the MachineSet of the workers gets smaller.
    Its BareMetalHost and Secrets are removed when it is deprovisioned. VMs are left as they are; RV(gone) names those
    that may be removed.
  - With O(part=grow), workers and registered spares of the lab that the cluster does not have are registered, and the
    MachineSet of the workers gets as many replicas as the lab has workers. No Machine takes a host before all new
    hosts are available. Each is followed until its Node is there.
  - What has changed of the BMC or disk of any node reaches its Secret and its BareMetalHost; a new certificate of the
    BMCs' CA reaches the cluster in releases that verify it.
  - What has been interrupted goes on from what the cluster says. Nodes of the control plane are neither added nor
    removed by their count, and hosts of others are left alone.
  - A node of the control plane that is replaced is switched off and leaves etcd before its Machine and its host are
    removed. What comes in its place gets a new Machine, and is done when etcd has a healthy member on each node. It is
    refused if etcd would lose its quorum. Its members are asked by C(etcdctl) in the pods of etcd.
  - The host needs C(oc) or C(kubectl). Before a node of the control plane leaves, etcd is backed up, which takes C(oc).
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.libvirt
attributes:
  check_mode:
    support: full
    description: Tells what would be done. It only looks.
  diff_mode:
    support: full
    description: The hosts that the cluster knows, before and after.
options:
  lab:
    description: The lab's model, as M(nometal.ipi.derive_lab) returns it.
    type: dict
    required: true
  part:
    description: Which nodes this is about, those that leave or those that come.
    type: str
    choices: [shrink, grow]
    required: true
  version:
    description: Release of the cluster, as M(nometal.ipi.cluster_info) returns it. By default the newest that is known.
    type: str
    default: ""
  replace:
    description:
      - Nodes that leave the cluster although the lab has them, so that they can be made anew. Workers and spares, and
        one node of the control plane at a time.
      - Only with O(part=shrink). One whose replacement has begun is replaced to the end, also without this.
      - A node of the control plane whose replacement has begun, but that is still on and a member of etcd, stays if
        another one is named.
    type: list
    elements: str
    default: []
  cancel:
    description:
      - Whether a node of the control plane stays whose replacement has begun. Its mark is removed, and it stays
        cordoned. Refused once it was switched off or has left etcd.
      - Only with O(part=shrink).
    type: bool
    default: false
  backup:
    description:
      - Whether etcd is backed up before a node of the control plane leaves. If that cannot be done, as without C(oc),
        the node is not replaced.
      - Only with O(part=shrink).
    type: bool
    default: true
  force_removal:
    description:
      - With a cluster that cannot be reached, whether its nodes are removed from the lab nevertheless.
      - Nodes of one that runs and refuses to be asked, or for which the host has no client, are not.
    type: bool
    default: false
  drain_seconds:
    description: How long it may take to drain one node. PodDisruptionBudgets are respected.
    type: int
    default: 600
  patience:
    description: By which all limits are multiplied after which a host is said to stand still.
    type: float
    default: 1.0
  bmc_home:
    description: Directory of what labs' BMC services keep, as of M(nometal.ipi.redfish_emulator).
    type: path
    default: /var/lib/nometal/bmc
  tools:
    description: Directory of C(oc). By default what is in PATH.
    type: path
seealso:
  - module: nometal.ipi.cluster_info
  - module: nometal.ipi.follow
"""

EXAMPLES = r"""
- name: Remove nodes from the cluster that the lab no longer has
  nometal.ipi.cluster_nodes:
    lab: "{{ lab }}"
    part: shrink
  check_mode: true
  register: demo_leaving

- name: Add the new nodes of the lab to the cluster
  nometal.ipi.cluster_nodes:
    lab: "{{ lab }}"
    part: grow
  check_mode: true
  register: demo_coming
"""

RETURN = r"""
steps:
  description: What was done, or in check mode would be done, in order.
  returned: always
  type: list
  elements: str
  sample: [register worker-2, release worker-2, scale demo-x7k2p-worker-0 (2 -> 3)]
waits:
  description: In check mode, hosts that are under way, and how far they are.
  returned: always
  type: list
  elements: str
  sample: ["worker-2: inspecting"]
gone:
  description: With O(part=shrink), VMs of nodes that the cluster has no longer. They may be removed.
  returned: always
  type: list
  elements: str
  sample: [demo-worker-3]
busy:
  description:
    - In check mode, whether another run changes the cluster's nodes, be it for another lab_spec. It is taken over by
      the next one that is not in check mode.
  returned: always
  type: bool
  sample: false
reachable:
  description: Whether the cluster's API answers.
  returned: always
  type: bool
  sample: true
noted:
  description: Whether the host has noted which nodes the cluster has, for when it does not answer.
  returned: always
  type: bool
  sample: true
findings:
  description: Why hosts do not go on, where the module has failed for that.
  returned: always
  type: list
  elements: dict
  sample: []
"""

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.installation import Installation
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.cluster import PARTS, Cluster, Task
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.one_watch import TakenOver, alone
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError, run_module
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import paths_of

if TYPE_CHECKING:
    from typing import Any

ARGUMENTS = {
    "lab": {"type": "dict", "required": True},
    "part": {"type": "str", "choices": list(PARTS), "required": True},
    "version": {"type": "str", "default": ""},
    "replace": {"type": "list", "elements": "str", "default": []},
    "backup": {"type": "bool", "default": True},
    "cancel": {"type": "bool", "default": False},
    "force_removal": {"type": "bool", "default": False},
    "drain_seconds": {"type": "int", "default": 600},
    "patience": {"type": "float", "default": 1.0},
    "bmc_home": {"type": "path", "default": "/var/lib/nometal/bmc"},
    "tools": {"type": "path"},
    "libvirt_uri": {"type": "str", "default": "qemu:///system"},
}


def task_from(params: dict[str, Any]) -> Task:
    lab = params["lab"]
    installation = Installation(
        paths=paths_of(lab["name"]),
        domain=lab["domain"],
        api_vips=lab["vips"]["api"],
        nodes=lab["nodes"],
        bmc_home=params["bmc_home"],
        tools=params["tools"],
        libvirt_uri=params["libvirt_uri"],
    )
    return Task(
        part=params["part"],
        model=lab,
        installation=installation,
        version=params["version"],
        replaces=params["replace"],
        backs_up=params["backup"],
        cancels=params["cancel"],
        forces=params["force_removal"],
        drain_seconds=params["drain_seconds"],
        patience=params["patience"],
    )


def run(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    if params["patience"] <= 0:
        raise OperatorError(f"patience is {params['patience']}: must be a number above 0.")
    task = task_from(params)
    return Cluster(task).look().to_dict() if check_mode else follow(task)


def follow(task: Task) -> dict[str, Any]:
    try:
        with alone(task.installation.paths.nodes_lock):
            return Cluster(task).follow().to_dict()
    except TakenOver:
        raise OperatorError("Another run has begun to change the cluster's nodes, and goes on from here.") from None


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
