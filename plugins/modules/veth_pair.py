#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: veth_pair
short_description: A veth pair that joins two bridges, now and after a reboot
version_added: 0.1.0
description:
  - Makes a pair of virtual Ethernet ends, each on its bridge, and the plain bridge of the nodes if it is missing.
    What was changed behind its back is repaired, and each step says what was wrong.
  - The pair is back after a reboot, and after a libvirt network was restarted by anyone, without Ansible. For that, an
    entry of the hook that M(nometal.ipi.libvirt_service) installs makes it anew when a libvirt network starts.
    If libvirt would not call the hook, the module warns.
  - An end that exists is this pair's if its peer is the other end, or if the pair's entry of the hook names it.
    What is not this pair's is neither changed nor removed.
  - NetworkManager and systemd-networkd, where the host has them, are configured to leave these links alone.
  - A bridge that the module makes has no forwarding delay and no address, the host answers on it
    neither IPv6 nor ARP for its other addresses, and it bears the alias C(nometal.ipi).
    A bridge without it is another owner's. It is used, but never changed or removed.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.reconciled
requirements:
  - pyroute2 for the managed host's Python, as role nometal.ipi.host_prep installs it; not needed to remove a pair
options:
  name:
    description:
      - Name of the pair, after which its files are called.
      - Letters, digits, dot, hyphen and underscore; 64 characters at most.
      - Required with O(state=present). Without it, O(state=absent) removes all pairs of O(lab).
    type: str
  lab:
    description:
      - Name of the lab whose pair it is. It is noted in the pair's entry of the hook.
      - By that the lab's pairs are known when O(name) is left out. One that is named after the lab is known anyway.
    type: str
    aliases: [owner]
  a:
    description: The end at a bridge that is there already, as a rule that of a libvirt network. Goes with O(name).
    type: dict
    suboptions:
      name:
        description: Name of the end, 15 characters at most. If it exists, it has to be this pair's.
        type: str
        required: true
      bridge:
        description: The bridge that it goes to. Without one, it goes to none.
        type: str
      make_bridge:
        description:
          - Whether the bridge is made if it is missing. If not, it must be there.
          - Do not say so for the bridge of a libvirt network. libvirt makes it, and does not start the network
            if another program has done so.
        type: bool
        default: false
  b:
    description:
      - The end at the plain bridge of the nodes, which is made if it is missing.
      - It cannot go to a bridge that another pair joins to another network, for the two networks would be one.
      - It cannot leave a bridge made by this module as long as machines are on that one.
      - Goes with O(name).
    type: dict
    suboptions:
      name:
        description: Name of the end, 15 characters at most. If it exists, it has to be this pair's.
        type: str
        required: true
      bridge:
        description: The bridge that it goes to. Without one, it goes to none.
        type: str
      make_bridge:
        description:
          - Whether the bridge is made if it is missing. If not, it must be there.
          - Set this to V(false) for the bridge of a libvirt network. libvirt makes it, and does not start the network
            if another program has done so.
        type: bool
        default: true
  shared:
    description:
      - Whether others may be on O(b.bridge), such as behind the host's uplink.
      - Without it, a bridge of others with other links on it is refused, for whoever serves DHCP at O(a) would serve
        the LAN of others. So is one with VMs on it, unless the pair has joined it already.
      - A bridge that this module has made is refused once it has an uplink. A veth or the tap of a VM is plugged into
        that one on purpose.
    type: bool
    default: false
  awaited:
    description:
      - Bridges that are there by the time that the pair is made, since others make them before, such as those of the
        lab's libvirt networks. In check mode, there is no warning that they are missing.
    type: list
    elements: str
    default: []
  mtu:
    description: MTU of both ends and of a bridge that is made, from 68 to 65535.
    type: int
    default: 1500
  state:
    description:
      - V(present) has the pair there and working.
      - V(absent) removes it with its files, and bridges made by this module on which nothing else is and which
        no other pair is to join. An end of that name which is not this pair's is left alone.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Join the bridge of the nodes to the libvirt network
  nometal.ipi.veth_pair:
    name: nmn-demo
    a: {name: nmn-demo, bridge: nm-demo}
    b: {name: nmb-demo, bridge: baremetal}

- name: Remove the pair
  nometal.ipi.veth_pair:
    name: nmn-demo
    a: {name: nmn-demo, bridge: nm-demo}
    b: {name: nmb-demo, bridge: baremetal}
    state: absent

- name: Remove all pairs of a lab
  nometal.ipi.veth_pair:
    lab: demo
    state: absent
"""

RETURN = r"""
steps:
  description: What was done, or in check mode would be done, in order, and what was wrong before.
  returned: success
  type: list
  elements: str
  sample:
    - release nmb-demo (was on virbr0)
    - join nmb-demo (to baremetal)
    - up nmb-demo (was down)
"""

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import argument_spec
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth.declared import Declared
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth.port import run

NEEDED = ("name", "a", "b")
ARGUMENTS = {
    **argument_spec(Declared, needed=()),
    "awaited": {"type": "list", "elements": "str", "default": []},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}
RULES = {
    "required_if": [("state", "present", NEEDED)],
    "required_one_of": [("name", "lab")],
    "required_together": [NEEDED],
}


def main() -> None:
    run_module(ARGUMENTS, run, **RULES)


if __name__ == "__main__":
    main()
