#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: lab_checkpoint
short_description: Keep all nodes of a lab as they are at one moment, and go back to that
version_added: 0.1.0
description:
  - A checkpoint is all VMs of a lab on the managed host at one moment, with their disks, definitions (media, boot
    override and all else that BMCs keep there), UEFI variables, TPMs, and what their BMCs keep of BIOS settings.
  - Disks are kept as snapshots inside their images, which takes a moment however large they are, and space only for
    what is overwritten afterwards. The rest lies below C(/var/lib/nometal/labs/LAB/checkpoints), which root alone can
    read.
  - A checkpoint is there as a whole or not at all. What a run that was killed has left, the next one removes, and VMs
    that waited for that run go on. A restore that was interrupted is repeated by the next one.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.libvirt
attributes:
  check_mode:
    support: full
    description: Refuses what a real run would, and changes nothing.
  diff_mode:
    support: none
    description: What was done is listed in RV(steps).
  idempotent:
    support: partial
    description: V(restored) restores each time.
options:
  lab:
    description: Name of the lab. Its VMs on this host are those with its mark, as M(nometal.ipi.bmh_vm) makes them.
    type: str
    required: true
  name:
    description: Name of the checkpoint, of letters, digits and inner dots, hyphens and underscores.
    type: str
    required: true
  state:
    description:
      - V(present) takes the checkpoint, unless there is one of this name.
      - V(restored) makes the VMs what they were. What was written since is lost. VMs that were on are started.
      - V(absent) removes the checkpoint. The VMs stay as they are.
    type: str
    choices: [present, restored, absent]
    default: present
  running:
    description:
      - Whether VMs that are on are paused together while their checkpoint is taken, and go on afterwards. It has their
        disks and not their memory, so a guest that is restored finds its disks as after a power cut.
    type: bool
    default: false
  stop:
    description:
      - Whether VMs that are on are stopped. For a checkpoint their power buttons are pressed, and they are started
        again when it is taken; nodes of a cluster are refused, as metal3 would switch them on again. For a restore
        their power is cut, as what they have not written is lost anyway.
      - With neither this nor O(running), VMs that are on are refused.
    type: bool
    default: false
  stop_timeout:
    description: Seconds that guests have to shut down. If one takes longer, no checkpoint is taken.
    type: int
    default: 300
  home:
    description: Directory of all that labs keep on the host.
    type: path
    default: /var/lib/nometal
  bmc_home:
    description: Directory of the BMC services, as O(nometal.ipi.redfish_emulator#module:home).
    type: path
    default: /var/lib/nometal/bmc
notes:
  - A checkpoint is restored only to the VMs that it was taken of. Nodes that were added or removed since, and disks
    that were added, removed, grown or made anew, are refused. Other changes of VMs (memory, cards) are undone; the next
    run of stage nodes makes them as C(lab_spec) says.
"""

EXAMPLES = r"""
- name: Keep the nodes as they are, which are switched off
  nometal.ipi.lab_checkpoint:
    lab: demo
    name: before-upgrade

- name: Go back to that, whether they are on or off
  nometal.ipi.lab_checkpoint:
    lab: demo
    name: before-upgrade
    state: restored
    stop: true

- name: Remove the checkpoint
  nometal.ipi.lab_checkpoint:
    lab: demo
    name: before-upgrade
    state: absent
"""

RETURN = r"""
steps:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample: [begin checkpoint before-upgrade, snapshot disk /var/lib/libvirt/images/nometal-demo/demo-worker-0-0.qcow2]
checkpoint:
  description: The checkpoint of this name as it was before, with its VMs and disks; null if there was none.
  returned: success
  type: dict
  sample: {name: before-upgrade, taken: "2026-11-19T11:02:03Z", while_running: false, cluster: "", nodes: []}
"""

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._resources.checkpoint.resource import LabCheckpoint

ARGUMENTS = {
    "lab": {"type": "str", "required": True},
    "name": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["present", "restored", "absent"], "default": "present"},
    "running": {"type": "bool", "default": False},
    "stop": {"type": "bool", "default": False},
    "stop_timeout": {"type": "int", "default": 300},
    "home": {"type": "path", "default": "/var/lib/nometal"},
    "bmc_home": {"type": "path", "default": "/var/lib/nometal/bmc"},
    "libvirt_uri": {"type": "str", "default": "qemu:///system"},
}


def main() -> None:
    run_module(ARGUMENTS, LabCheckpoint.run)


if __name__ == "__main__":
    main()
