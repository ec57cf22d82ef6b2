#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_info
short_description: How far the installation of a lab's cluster is
version_added: 0.1.0
description:
  - Tells from what lies on the host whether a lab has a cluster, or an installation that runs or has failed, and where
    its files are. Nothing is asked of the cluster itself, and nothing secret is returned.
  - If the lab's nodes are given, it also tells which of them are switched off. After a reboot of the host they
    are, unless C(lab_spec.bmc.power_restore) has them switched on again, which takes a moment.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.read_only
options:
  lab:
    description: Name of the lab.
    type: str
    required: true
  nodes:
    description: The lab's nodes on this host, as the lab model lists them.
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Look at the cluster of a lab
  nometal.ipi.cluster_info:
    lab: demo
    nodes: "{{ lab.nodes }}"
  register: demo_cluster

- name: Ask it which nodes it has
  ansible.builtin.command: oc get nodes
  environment:
    KUBECONFIG: "{{ demo_cluster.kubeconfig }}"
  when: demo_cluster.state == 'installed'
  changed_when: false
"""

RETURN = r"""
state:
  description:
    - V(nothing) if nothing was ever installed, V(running) while the installer runs, V(installed) once it has said that
      the installation is complete, V(failed) or V(interrupted) if it ended before.
  returned: success
  type: str
  sample: installed
begun:
  description: Whether anything of the cluster has been made, so that another release would have to begin anew.
  returned: success
  type: bool
  sample: true
version:
  description: The release that it is, or is to become. Empty without one.
  returned: success
  type: str
  sample: 4.20.3
directory:
  description: The installer's directory on the host, which root alone can read.
  returned: success
  type: str
  sample: /var/lib/nometal/install/demo/cluster
kubeconfig:
  description: Where the kubeconfig of its administrator lies; empty as long as there is none.
  returned: success
  type: str
  sample: /var/lib/nometal/install/demo/cluster/auth/kubeconfig
password_file:
  description: Where the password of C(kubeadmin) lies; empty as long as there is none.
  returned: success
  type: str
  sample: /var/lib/nometal/install/demo/cluster/auth/kubeadmin-password
"off":
  description:
    - Names of those nodes of the cluster whose VMs are switched off. Nodes of which the installer is not told are left
      out. Empty without O(nodes), and if libvirt does not answer.
  returned: success
  type: list
  elements: str
  sample: []
"""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.nodes import nodes_of
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.installation import Installation
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.reading import glance
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.stages import Stage
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import run as installer_run
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

ARGUMENTS = {
    "lab": {"type": "str", "required": True},
    "nodes": {"type": "list", "elements": "dict", "default": []},
}


def info(paths: Paths, nodes: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    seen = glance(Installation(paths))
    return {
        "changed": False,
        "state": seen["state"],
        "begun": seen["stage"] not in ("", Stage.PREPARE.value),
        "version": installer_run.read(paths).version,
        "directory": str(paths.assets),
        "kubeconfig": path_of(paths.kubeconfig),
        "password_file": path_of(paths.password),
        "off": off(paths, [node for node in nodes if node.get("installer")]),
    }


def off(paths: Paths, nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    """What libvirt does not tell, for whatever reason, is not known; all else is."""
    with suppress(Exception):
        seen = nodes_of(Installation(paths, nodes=nodes)) if nodes else []
        return [node.name for node in seen if node.is_off]
    return []


def path_of(file: Path) -> str:
    return str(file) if file.exists() else ""


def run(params: dict[str, Any], **_options: bool) -> dict[str, Any]:
    return info(Paths(params["lab"]), params["nodes"])


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
