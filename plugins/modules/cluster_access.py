#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_access
short_description: Files to reach a lab's cluster from elsewhere, through its host
version_added: 0.2.0
description:
  - Writes two files beside the kubeconfig of an installed cluster, for use through C(ssh -D) to its host.
    docs/access.md shows how.
  - One is a kubeconfig that names the proxy, so that C(oc) and C(kubectl) need nothing else. The other is a PAC file,
    by which a browser takes the proxy for the names of the cluster alone.
  - Both are for root alone, and go with the cluster.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.reconciled
options:
  lab:
    description: Name of the lab.
    type: str
    required: true
  domain:
    description: Domain of the cluster.
    type: str
    required: true
  port:
    description: Port of the SOCKS proxy, on the machine that uses the files.
    type: int
    default: 1080
"""

EXAMPLES = r"""
- name: Write the files for access from elsewhere
  nometal.ipi.cluster_access:
    lab: demo
    domain: demo.lab.example.test
"""

RETURN = r"""
kubeconfig:
  description: The kubeconfig that names the proxy.
  returned: success
  type: str
  sample: /var/lib/nometal/install/demo/cluster/auth/kubeconfig-proxy
pac:
  description: The PAC file.
  returned: success
  type: str
  sample: /var/lib/nometal/install/demo/cluster/auth/proxy.pac
steps:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample: [write /var/lib/nometal/install/demo/cluster/auth/kubeconfig-proxy]
"""

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.access.resource import ClusterAccess
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module

ARGUMENTS = {
    "lab": {"type": "str", "required": True},
    "domain": {"type": "str", "required": True},
    "port": {"type": "int", "default": 1080},
}


def main() -> None:
    run_module(ARGUMENTS, ClusterAccess.run)


if __name__ == "__main__":
    main()
