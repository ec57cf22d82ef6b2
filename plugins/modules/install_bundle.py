#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: install_bundle
short_description: Gather in one file what tells why an installation has failed, without secrets
version_added: 0.1.0
description:
  - Makes an archive of what there is to look at after an installation that has failed. The installer's log and output,
    what C(openshift-install gather bootstrap) fetches, the definitions of VMs and networks, leases, serial logs of the
    bootstrap VM and the nodes, pictures of the nodes' screens, and the log of the BMCs.
  - Pull secrets, passwords, tokens and private keys are replaced, both those that are known and what looks like one.
    What cannot be searched for them is left out. Still look into it before it leaves your hands.
  - A piece that is not to be had, or takes too long, is named in the archive's C(README.txt); the others are there.
  - The archive lies on the host, readable by root only. The newest three of a lab stay, and go with the cluster.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.libvirt
attributes:
  check_mode:
    support: full
    description: Nothing is gathered in check mode.
options:
  lab:
    description: Name of the lab.
    type: str
    required: true
  bridges:
    description: The lab's bridges into which the installer plugs the bootstrap VM.
    type: list
    elements: str
    default: []
  nodes:
    description: The lab's nodes on this host, as the lab model lists them.
    type: list
    elements: dict
    default: []
  networks:
    description: Names of the lab's libvirt networks.
    type: list
    elements: str
    default: []
  bootstrap_ips:
    description: Addresses of the bootstrap VM where they are static. Otherwise its lease tells.
    type: list
    elements: str
    default: []
  bmc_home:
    description: Directory of what labs' BMC services keep, as of M(nometal.ipi.redfish_emulator).
    type: path
    default: /var/lib/nometal/bmc
  tools:
    description:
      - Directory with C(openshift-install), as M(nometal.ipi.installer_tools) returns it.
      - Without it, nothing is fetched from the bootstrap VM.
    type: path
  gather_seconds:
    description: How long fetching from the bootstrap VM may take.
    type: int
    default: 300
  extra:
    description: Further texts, by file name.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Gather what tells why it failed
  nometal.ipi.install_bundle:
    lab: "{{ lab.name }}"
    nodes: "{{ lab.nodes }}"
    networks: "{{ lab.networks | map(attribute='name') }}"
    tools: "{{ demo_tools.directory }}"
  register: demo_bundle
"""

RETURN = r"""
path:
  description: The archive, on the host. Empty in check mode.
  returned: success
  type: str
  sample: /var/lib/nometal/install/demo/bundles/demo-20261119T012800Z.tar.gz
contents:
  description: What is in it.
  returned: success
  type: list
  elements: str
  sample: [README.txt, installer/openshift_install.log, nodes/demo-control-plane-0-console.log]
"""

from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.bundle import archive as bundle
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.bundle import secrets as bundle_secrets
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.bundle.pieces import Source, pieces
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.bundle.redact import Redactor
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.removal.leftovers import Lab
from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError, run_module
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import paths_of

if TYPE_CHECKING:
    from typing import Any

ARGUMENTS = {
    "lab": {"type": "str", "required": True},
    "bridges": {"type": "list", "elements": "str", "default": []},
    "nodes": {"type": "list", "elements": "dict", "default": []},
    "networks": {"type": "list", "elements": "str", "default": []},
    "bootstrap_ips": {"type": "list", "elements": "str", "default": []},
    "bmc_home": {"type": "path", "default": "/var/lib/nometal/bmc"},
    "tools": {"type": "path"},
    "gather_seconds": {"type": "int", "default": 300},
    "extra": {"type": "dict", "default": {}},
    "libvirt_uri": {"type": "str", "default": "qemu:///system"},
}


def source_from(params: dict[str, Any]) -> Source:
    return Source(
        uri=params["libvirt_uri"],
        lab=Lab(
            paths=paths_of(params["lab"]),
            bridges=params["bridges"],
            nodes=params["nodes"],
            bmc_home=Path(params["bmc_home"]),
        ),
        networks=params["networks"],
        tools=Path(params["tools"]) if params["tools"] else None,
        gather_seconds=params["gather_seconds"],
        bootstrap_ips=params["bootstrap_ips"],
    )


def run(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    source = source_from(params)
    if check_mode:
        return {"changed": True, "path": "", "contents": []}
    paths = source.lab.paths
    known = bundle_secrets.known(paths, source.lab.bmc_home)
    try:
        files.make_directory(paths.directory, 0o700)
        made = bundle.make(paths.bundles, paths.lab, pieces(source, params["extra"]), Redactor(known).text)
    except OSError as error:
        raise OperatorError(f"No bundle can be made in {paths.bundles}: {error}.") from error
    path, contents = made
    return {"changed": True, "path": str(path), "contents": contents}


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
