#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_removal
short_description: Remove a cluster with all that its installer leaves on the host
version_added: 0.1.0
description:
  - Removes a cluster in any state, also one that is being installed, and all that C(openshift-install destroy cluster)
    leaves behind. That is the bootstrap VM with its NVRAM, volumes, pool, directory, logs and leases, and the
    installer's directory with its temporary files, which hold secrets.
  - The nodes' VMs stay. They are switched off, with blank disks, an empty drive, no boot override and new firmware
    variables, so that the next installation finds them as the first did. Only VMs that M(nometal.ipi.bmh_vm) made for
    the lab are touched, and only disks that it made for them. Nothing is removed while VMs or images of others depend
    on one of these disks, or on an image of the bootstrap VM.
  - The bootstrap VM is known by the infraID that the installer has noted. Without these notes it is known by its name
    and by the bridges into which it is plugged. What only has such a name, such as a pool, a directory or a log without
    a VM on O(bridges), may be anybody's. It stays, and RV(kept) names it.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.reconciled
  - nometal.ipi.libvirt
options:
  lab:
    description: Name of the lab.
    type: str
    required: true
  bridges:
    description:
      - The lab's bridges into which the installer plugs the bootstrap VM.
      - Where the installer's notes are gone, a bootstrap VM is the lab's only if it is plugged into one of these.
    type: list
    elements: str
    default: []
  nodes:
    description: The lab's nodes on this host, as the lab model lists them.
    type: list
    elements: dict
    default: []
  keep_nodes:
    description: Whether the nodes are left as they are, such as when their VMs are removed next.
    type: bool
    default: false
  bmc_home:
    description:
      - Directory of what labs' BMC services keep, as of M(nometal.ipi.redfish_emulator).
      - Drives and boot settings are reset by the BMCs; by libvirt where these do not answer.
    type: path
    default: /var/lib/nometal/bmc
  state:
    description:
      - With V(absent), the cluster is removed.
      - With V(tidied), only what nothing uses after an installation that has succeeded is removed. That is the pool of
        the bootstrap VM that is gone, its empty directory, and the installer's temporary files.
      - With V(tidied), nothing is removed while the installer runs.
    type: str
    choices: [absent, tidied]
    default: absent
"""

EXAMPLES = r"""
- name: Remove the cluster, and keep the lab for the next one
  nometal.ipi.cluster_removal:
    lab: "{{ lab.name }}"
    bridges: "{{ lab.installer_bridges }}"
    nodes: "{{ lab.nodes }}"

- name: Remove what an installation that has succeeded leaves behind
  nometal.ipi.cluster_removal:
    lab: demo
    state: tidied
"""

RETURN = r"""
steps:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample:
    - undefine demo-x7k2p-bootstrap
    - switch off demo-control-plane-0
    - blank /var/lib/libvirt/images/nometal-demo/demo-control-plane-0-0.qcow2
    - undefine pool demo-x7k2p-bootstrap
    - remove /var/lib/nometal/install/demo
vms:
  description:
    - Names of the bootstrap VMs that were removed, or in check mode would be.
    - Their definitions name no owner, so this distinguishes them from VMs of others. None with O(state=tidied).
  returned: success
  type: list
  elements: str
  sample: [demo-x7k2p-bootstrap]
kept:
  description:
    - What others have in the directories of the installation or of the bootstrap VM, which stays, each with the reason.
    - Empty with O(state=tidied).
  returned: success
  type: list
  elements: str
  sample: ["/var/lib/nometal/install/demo/notes.txt (not made by nometal.ipi)"]
"""

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.removal.cleanup import run
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module

ARGUMENTS = {
    "lab": {"type": "str", "required": True},
    "bridges": {"type": "list", "elements": "str", "default": []},
    "nodes": {"type": "list", "elements": "dict", "default": []},
    "keep_nodes": {"type": "bool", "default": False},
    "bmc_home": {"type": "path", "default": "/var/lib/nometal/bmc"},
    "state": {"type": "str", "choices": ["absent", "tidied"], "default": "absent"},
    "libvirt_uri": {"type": "str", "default": "qemu:///system"},
}


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
