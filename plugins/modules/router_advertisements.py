#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: router_advertisements
short_description: A host that forwards IPv6 keeps the routes that it has from router advertisements
version_added: 0.1.0
description:
  - A host that forwards IPv6 no longer listens to router advertisements unless told to. Without that, libvirt refuses
    to start an IPv6 network, rather than let a host lose the default route that it has from them.
  - Has the devices on which there are such routes listen all the same, now and after a reboot, and notes how it was.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.internal
  - nometal.ipi.reconciled
  - nometal.ipi.host_memory
options:
  file:
    description: The sysctl file for the next boot.
    type: path
    default: /etc/sysctl.d/60-nometal.conf
  state:
    description: Whether such devices are to listen although the host forwards, or as they did before.
    type: str
    choices: [present, restored]
    default: present
"""

EXAMPLES = r"""
- name: Keep the host's IPv6 default route
  nometal.ipi.router_advertisements:

- name: Listen as before
  nometal.ipi.router_advertisements:
    state: restored
"""

RETURN = r"""
steps:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample: [write file, set eth0=2]
"""

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._resources.router_advertisements.listening import (
    HostListening,
)

ARGUMENTS = {
    "file": {"type": "path", "default": "/etc/sysctl.d/60-nometal.conf"},
    "memory": {"type": "path", "default": "/var/lib/nometal/host.json"},
    "state": {"type": "str", "choices": ["present", "restored"], "default": "present"},
}


def main() -> None:
    run_module(ARGUMENTS, HostListening.run)


if __name__ == "__main__":
    main()
