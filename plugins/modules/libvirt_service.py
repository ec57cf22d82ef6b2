#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: libvirt_service
short_description: libvirt running on this host, now and after a reboot
version_added: 0.1.0
description:
  - Starts libvirt as this host starts services, as one daemon or as the modular ones, under systemd or without any
    service manager, and waits until the socket that the OpenShift installer dials answers.
  - What it starts is noted first, so that O(state=restored) stops that and nothing else.
    Under systemd, a target of its own pulls libvirt in at boot; how libvirt's own units are enabled stays as it is.
  - It also installs the hook through which libvirt tells the labs that one of its networks has started or stopped,
    also at boot. libvirt looks for hooks at its start only, so a daemon that was started before is restarted, once.
    Networks and VMs run on meanwhile.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.reconciled
  - nometal.ipi.host_memory
options:
  layout:
    description:
      - How this distribution runs libvirt.
      - A host on which C(libvirtd) is in use keeps it, whatever is said here.
    type: str
    choices: [monolithic, modular]
    default: monolithic
  state:
    description:
      - V(started) has libvirt running now and, under systemd, at boot.
      - V(restored) stops what V(started) started here, unless VMs are defined that need it, and removes the hook.
    type: str
    choices: [started, restored]
    default: started
"""

EXAMPLES = r"""
- name: Have libvirt running
  nometal.ipi.libvirt_service:
    layout: modular

- name: Put it back as it was
  nometal.ipi.libvirt_service:
    state: restored
"""

RETURN = r"""
steps:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample:
    - install /etc/libvirt/hooks/network.d/nometal
    - start libvirtd.socket
    - enable nometal-libvirt.target
in_use:
  description:
    - What others have in libvirt, which had better stay installed for it. These are VMs, storage pools and networks.
      The network C(default) comes with libvirt, and counts while something is plugged into it.
  returned: when O(state=restored)
  type: list
  elements: str
  sample: [VM mine, network theirs]
kept_for:
  description: VMs for whose sake libvirt was left running, although O(state=started) has started it.
  returned: when O(state=restored)
  type: list
  elements: str
  sample: []
"""

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._resources.libvirt_service.service import HostLibvirt

ARGUMENTS = {
    "layout": {"type": "str", "choices": ["monolithic", "modular"], "default": "monolithic"},
    "memory": {"type": "path", "default": "/var/lib/nometal/host.json"},
    "state": {"type": "str", "choices": ["started", "restored"], "default": "started"},
}


def main() -> None:
    run_module(ARGUMENTS, HostLibvirt.run)


if __name__ == "__main__":
    main()
