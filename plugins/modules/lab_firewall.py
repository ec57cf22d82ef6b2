#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: lab_firewall
short_description: One lab's openings in its host's firewall
version_added: 0.1.0
description:
  - Lets the lab's networks reach DHCP, DNS, NTP and the given ports on the host, whatever its firewall does otherwise,
    and keeps everybody else from those on the lab's addresses.
  - Lets through the host what the networks' forward modes say, and frames between the ports of one bridge, so that a
    FORWARD policy of DROP, as Docker sets it, does not cut the lab off.
    A new connection into a V(nat) network is not let in.
  - Works by every means that the host has. iptables, and those chains of others in nftables that refuse what they do
    not know, call chains of the lab's own; nftables has a table of the lab's own as well; in firewalld, libvirt's zones
    get rules about the lab's addresses. Rules of others stay as they are, and none is ever flushed.
  - libvirt's network hook brings the rules back when a network starts, as it does at boot.
  - Under systemd, the unit C(nometal-packet-filter@) brings them back, and libvirt's with them, when a service such as
    C(nftables) or C(netfilter-persistent) has started, restarted or reloaded. It goes with the last lab.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.reconciled
  - nometal.ipi.host_memory
options:
  lab:
    description: Name of the lab. It marks the chains, and is the only option that O(state=absent) needs.
    type: str
    aliases: [owner]
    required: true
  networks:
    description:
      - The lab's networks, as the lab model has them.
      - Read are C(bridge), C(forward) and, of each of C(addresses), C(gateway) and C(cidr).
      - Where C(dhcp.known_only) is set, the lab shares a LAN of others. Router advertisements then answer the machines
        of C(dhcp.reservations) alone, O(bridges) stay in their zone of firewalld, and only those with addresses of the
        lab are let through on them.
    type: list
    elements: dict
    default: []
  bridges:
    description:
      - Bridges of the lab that are not a libvirt network's, such as C(baremetal). One that comes later is fine.
      - The host may use such a bridge for purposes of its own, with an address of its own on it. Connections from
        and to that are left alone, and nothing is opened on it, except that in firewalld the bridge joins zone libvirt.
    type: list
    elements: str
    default: []
  ports:
    description: What the lab's networks reach on the host besides DHCP, DNS and NTP, which are the BMCs.
    type: list
    elements: dict
    default: []
    suboptions:
      protocol:
        description: Protocol of the port.
        type: str
        choices: [tcp, udp]
        default: tcp
      port:
        description: The port.
        type: int
        required: true
  clients:
    description:
      - Networks outside the lab from which O(ports) are reached, too, on the lab's addresses. They need a route to
        those by way of this host.
    type: list
    elements: str
    default: []
    version_added: 0.2.0
  state:
    description: Whether the lab is to be let through, or all of its rules are to be gone.
    type: str
    choices: [present, absent]
    default: present
requirements:
  - iptables or nft on the managed host
"""

EXAMPLES = r"""
- name: Let the lab through the firewall
  nometal.ipi.lab_firewall:
    lab: demo
    networks:
      - bridge: nm-demo
        forward: nat
        addresses:
          - gateway: 192.168.126.1
            cidr: 192.168.126.0/24
    bridges: [baremetal]
    ports:
      - port: 8000

- name: Leave the firewall as it was
  nometal.ipi.lab_firewall:
    lab: demo
    state: absent
"""

RETURN = r"""
steps:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample: [write hook entry, run hook entry]
"""

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import argument_spec
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.lab import Lab
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.port import LabFirewall

ARGUMENTS = {
    **argument_spec(Lab),
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "memory": {"type": "path", "default": "/var/lib/nometal/host.json"},
}


def main() -> None:
    run_module(ARGUMENTS, LabFirewall.run)


if __name__ == "__main__":
    main()
