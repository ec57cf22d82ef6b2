#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: lab_export
short_description: Tell other installers of the nodes of a lab
version_added: 0.2.0
description:
  - Writes the nodes of a lab with their BMCs, and the BMCs' logins, in the formats of other installers.
    docs/other-installers.md shows how each is used.
  - The files are on the host, for root alone, as the logins are. None of them is returned or shown.
  - V(agent) and V(cluster-instance) need a control plane of 3 to 5 nodes, or of 2 with one arbiter. V(agent) is also
    for 2 with fencing, for which a ClusterInstance has no place. By default they are left out otherwise.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.reconciled
options:
  lab:
    description: The lab's model, as M(nometal.ipi.derive_lab) returns it.
    type: dict
    required: true
  directory:
    description:
      - Where the files are written. By default it is C(/var/lib/nometal/labs/LAB/export), which goes with the lab.
      - Without O(formats), files of former runs that are not written any more are removed from the default directory.
      - The files of another directory stay, also when the lab is removed.
    type: path
    default: ""
  formats:
    description:
      - What is written. By default all that the lab has nodes for.
      - V(metal3) is C(bare-metal-hosts.yaml), with BareMetalHosts and their Secrets.
      - V(ironic) is C(nodes.json), for C(baremetal create).
      - V(agent) is C(agent-config.yaml) and C(install-config.yaml), for OpenShift's agent-based installer.
      - V(cluster-instance) is C(cluster-instance.yaml), for the SiteConfig operator of Advanced Cluster Management.
      - V(inventory) is C(inventory.yml), for Ansible.
    type: list
    elements: str
    choices: [metal3, ironic, agent, cluster-instance, inventory]
    default: []
  version:
    description:
      - Release of OpenShift that the files are for, such as C(4.20), from 4.9 on. By default that of the lab, or the
        newest that is known.
    type: str
    default: ""
  namespace:
    description: Namespace of the BareMetalHosts.
    type: str
    default: metal3
  ca_file:
    description:
      - Path of C(bmc-ca.pem) where the clients of the BMCs run, as in Ironic's container. They verify the BMCs by it.
      - Without it, the files have them not verify.
    type: str
    default: ""
  cluster_image_set:
    description: Name of the ClusterImageSet of a ClusterInstance. By default C(openshift-) and the release.
    type: str
    default: ""
  pull_secret:
    description:
      - Pull secret for OpenShift, JSON with C(auths) in it. Without it C(install-config.yaml) has one that has only the
        form.
    type: raw
    default: ""
  ssh_key:
    description: Public SSH key that may log in to the nodes of a cluster.
    type: str
    default: ""
  bmc_home:
    description: Directory of what labs' BMC services keep, as of M(nometal.ipi.redfish_emulator).
    type: path
    default: /var/lib/nometal/bmc
seealso:
  - module: nometal.ipi.redfish_emulator
"""

EXAMPLES = r"""
- name: Write the nodes for Ironic and for Ansible
  nometal.ipi.lab_export:
    lab: "{{ lab }}"
    directory: /root/demo
    formats: [ironic, inventory]
"""

RETURN = r"""
directory:
  description: Where the files are.
  returned: success
  type: str
  sample: /var/lib/nometal/labs/demo/export
files:
  description: Their names.
  returned: success
  type: list
  elements: str
  sample: [nodes.json, inventory.yml, bmc-ca.pem]
left_out:
  description: Formats that were left out, as the lab has no nodes for them.
  returned: success
  type: list
  elements: str
  sample: [agent, cluster-instance]
left_out_because:
  description: What the lab would need for them, or what they have no place for.
  returned: success
  type: str
  sample: the control plane must have 3 to 5 nodes, or 2 with one arbiter or with fencing (got 0, and 0 arbiters)
steps:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample: [write /root/demo/nodes.json, write /root/demo/inventory.yml, write /root/demo/bmc-ca.pem]
"""

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.export.resource import FORMATS, LabExport
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module

ARGUMENTS = {
    "lab": {"type": "dict", "required": True},
    "directory": {"type": "path", "default": ""},
    "formats": {"type": "list", "elements": "str", "choices": [*FORMATS], "default": []},
    "version": {"type": "str", "default": ""},
    "namespace": {"type": "str", "default": "metal3"},
    "ca_file": {"type": "str", "default": ""},
    "cluster_image_set": {"type": "str", "default": ""},
    "pull_secret": {"type": "raw", "default": "", "no_log": True},
    "ssh_key": {"type": "str", "default": "", "no_log": False},
    "bmc_home": {"type": "path", "default": "/var/lib/nometal/bmc"},
}


def main() -> None:
    run_module(ARGUMENTS, LabExport.run)


if __name__ == "__main__":
    main()
