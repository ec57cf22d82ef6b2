#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: libvirt_leftovers
short_description: What libvirt has left of a lab on a host from which it was uninstalled
version_added: 0.1.0
description:
  - Packages go, and what they were used for stays. On a host that has no libvirt any more, this removes the
    definitions of the lab's VMs, networks and storage pools, with disks, firmware variables and logs, and ends what
    still serves the networks.
  - A thing is the lab's by the mark in its definition; a disk by the mark of its VM or its own. What is not marked
    stays, and so do disks as long as there are definitions of VMs that are not the lab's, for these may use them.
  - Where libvirt is installed, this is refused, for libvirt removes what it has.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.internal
  - nometal.ipi.reconciled
options:
  lab:
    description: Name of the lab.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Remove what is left of a lab
  nometal.ipi.libvirt_leftovers:
    lab: demo
"""

RETURN = r"""
steps:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample: [remove disk /var/lib/libvirt/images/nometal-demo/demo-worker-0-0.qcow2, remove VM demo-worker-0]
kept:
  description: What stays, with the reason.
  returned: success
  type: list
  elements: str
  sample: ["/var/lib/libvirt/images/nometal-demo/mine.qcow2, which is not marked as the lab's"]
"""

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._labs.leftovers import LabLeftovers

ARGUMENTS = {"lab": {"type": "str", "required": True}}


def main() -> None:
    run_module(ARGUMENTS, LabLeftovers.run)


if __name__ == "__main__":
    main()
