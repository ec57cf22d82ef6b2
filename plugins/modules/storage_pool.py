#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: storage_pool
short_description: The libvirt storage pool of one lab
version_added: 0.1.0
description:
  - Makes a libvirt storage pool of type C(dir), with its directory, started and started again at boot;
    or removes it with the disks that M(nometal.ipi.bmh_vm) made in it for VMs of O(lab).
  - The pool's UUID is the owner's mark. A pool of the same name with another UUID is another owner's and is
    never touched, nor is a directory that held anything before it became the pool's.
  - Directories of the system, such as C(/home) or C(/srv) itself, and those of this collection are refused.
  - A disk is known by its file's extended attribute C(trusted.nometal.ipi.vm), or, where the file system has none, by
    a file C(.NAME.nometal-vm) beside it. Whatever else is in the directory stays, and RV(kept) names it. Nothing is
    ever removed from a file system that is mounted below.
  - A directory that was there before the pool stays as well, with the owner, group, mode and SELinux label that it
    had. A file C(.nometal-pool.json) in the directory notes them as long as the pool is there.
  - A pool on whose disks VMs or images of others depend is not removed, also if that shows only in the images.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.reconciled
  - nometal.ipi.libvirt
options:
  name:
    description: Name of the pool.
    type: str
    required: true
  uuid:
    description: UUID of the pool, as the lab model derives it from the lab's name.
    type: str
    required: true
  path:
    description:
      - Absolute path of the pool's directory, which is made if it is missing, and else must be empty.
      - Below C(/var/lib/libvirt/images) SELinux and AppArmor let VMs use it as it is.
    type: path
    required: true
  lab:
    description:
      - Name of the lab that owns the pool. Disks that were made for the owner's VMs go with the pool.
      - Without it, no disk is known to be the owner's, and a pool that holds a disk of any VM is not removed.
    type: str
    aliases: [owner]
  state:
    description: Whether the pool is to be there, started, or gone with what was made in it.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Make the storage pool of the lab
  nometal.ipi.storage_pool:
    name: nometal-demo
    uuid: 1ca7a10e-4f5b-5680-a8a8-317039a90d6e
    path: /var/lib/libvirt/images/nometal-demo

- name: Remove it with the disks of the lab
  nometal.ipi.storage_pool:
    name: nometal-demo
    uuid: 1ca7a10e-4f5b-5680-a8a8-317039a90d6e
    path: /var/lib/libvirt/images/nometal-demo
    lab: demo
    state: absent
"""

RETURN = r"""
steps:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample: [define nometal-demo, build nometal-demo, start nometal-demo, autostart nometal-demo]
kept:
  description: What is in the directory that was not made for O(lab), and stays, each with the reason.
  returned: with O(state=absent)
  type: list
  elements: str
  sample: ["/srv/labs/demo/notes.txt (not made by nometal.ipi)", "/srv/labs/demo/iso (a mount point)"]
"""

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._resources.storage_pool.port import LabPool

ARGUMENTS = {
    "name": {"type": "str", "required": True},
    "uuid": {"type": "str", "required": True},
    "path": {"type": "path", "required": True},
    "lab": {"type": "str", "aliases": ["owner"]},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "libvirt_uri": {"type": "str", "default": "qemu:///system"},
}


def main() -> None:
    run_module(ARGUMENTS, LabPool.run)


if __name__ == "__main__":
    main()
