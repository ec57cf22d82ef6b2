#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: checkpoint_info
short_description: List the checkpoints of a lab
version_added: 0.1.0
description:
  - Lists what M(nometal.ipi.lab_checkpoint) has kept of a lab on the managed host, and whether it can be restored.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.read_only
  - nometal.ipi.libvirt
options:
  lab:
    description: Name of the lab.
    type: str
    required: true
  home:
    description: Directory of all that labs keep on the host.
    type: path
    default: /var/lib/nometal
"""

EXAMPLES = r"""
- name: List the checkpoints of a lab
  nometal.ipi.checkpoint_info:
    lab: demo
  register: demo_checkpoints
"""

RETURN = r"""
checkpoints:
  description:
    - The checkpoints, the oldest first. C(held_bytes) is what each takes of the storage pool at most, once all that it
      keeps is overwritten. C(obstacles) says why it cannot be restored, and is empty if it can.
  returned: success
  type: list
  elements: dict
  sample:
    - name: before-upgrade
      taken: "2026-11-19T11:02:03Z"
      while_running: false
      cluster: ""
      held_bytes: 1073741824
      obstacles: []
      nodes:
        - name: demo-worker-0
          uuid: c5d81e07-6a2b-4f39-b7c4-90e3fa1d5826
          was_on: false
          disks: [{name: demo-worker-0-0.qcow2, size_bytes: 10737418240, used_bytes: 1073741824}]
table:
  description: The same for people.
  returned: success
  type: list
  elements: str
  sample: ["before-upgrade: 2026-11-19T11:02:03Z, 1 node, switched off, holds 1.0 GiB at most"]
"""

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._resources.checkpoint.resource import information

if TYPE_CHECKING:
    from typing import Any

ARGUMENTS = {
    "lab": {"type": "str", "required": True},
    "home": {"type": "path", "default": "/var/lib/nometal"},
    "libvirt_uri": {"type": "str", "default": "qemu:///system"},
}


def run(params: dict[str, Any], **_options: bool) -> dict[str, Any]:
    return {"changed": False, **information({**params, "bmc_home": "/"})}


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
