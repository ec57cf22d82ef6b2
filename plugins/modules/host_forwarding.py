#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: host_forwarding
short_description: Whether a host forwards packets, before the labs and after
version_added: 0.1.0
description:
  - libvirt has the host forward packets as soon as a network is started, and leaves it at that.
  - Before the first lab, it is noted where the host does not, and what there is that might need it but did without.
  - After the last lab, the host forwards as before, unless something that is not a lab's has come to need it meanwhile.
    That may be a running libvirt network, bridges of container engines, WireGuard, a sysctl file, a setting of
    systemd-networkd or NetworkManager, or a rule for network address translation.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.internal
  - nometal.ipi.reconciled
  - nometal.ipi.host_memory
options:
  state:
    description: V(noted) before the first lab, V(restored) after the last one.
    type: str
    choices: [noted, restored]
    default: noted
"""

EXAMPLES = r"""
- name: Note whether the host forwards packets
  nometal.ipi.host_forwarding:

- name: Forward packets as before
  nometal.ipi.host_forwarding:
    state: restored
"""

RETURN = r"""
steps:
  description: What was done, or in check mode would be done.
  returned: success
  type: list
  elements: str
  sample: [set net/ipv4/ip_forward to 0]
kept_for:
  description: Of each switch that stays on, for what.
  returned: when O(state=restored)
  type: dict
  sample:
    net/ipv4/ip_forward: [libvirt network default is running]
"""

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._resources.forwarding.forwarding import run

ARGUMENTS = {
    "memory": {"type": "path", "default": "/var/lib/nometal/host.json"},
    "state": {"type": "str", "choices": ["noted", "restored"], "default": "noted"},
}


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
