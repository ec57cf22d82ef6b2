#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: split_dns
short_description: The host asks a lab's name servers for the lab's names
version_added: 0.1.0
description:
  - Has the host itself ask the name servers of a lab for the names of the lab, and for no others, by the means that fit
    what the host asks first. All other names are asked for where they were before.
  - Where C(/etc/resolv.conf) leads to systemd-resolved, the lab's link gets DNS settings of its own, again whenever
    its network starts.
    systemd-resolved goes by them while the link has carrier, that is while a veth pair or a VM is on the bridge.
  - Where it leads to the dnsmasq that NetworkManager runs, that gets a file in C(/etc/NetworkManager/dnsmasq.d).
  - Anywhere else C(/etc/resolv.conf) itself is the means, in which no name server can be given for some names only.
    A small dnsmasq on 127.78.77.53 sees to the split, and one line puts it before the other name servers,
    which stay as they are.
    Both are there only while the network of a lab is up, and all labs share them. Under systemd the line is put back
    when DHCP, NetworkManager or resolvconf write the file anew.
  - Name servers that libvirt runs for its networks go by C(/etc/resolv.conf) too, and so in this last case ask the
    small dnsmasq for what they do not know. So guests of one lab can see the names of the other labs on their host,
    and a network must answer all names below its own domain and all its addresses itself (C(localOnly), C(localPtr)).
    The small dnsmasq logs once at its start that it does not use itself, which is as it should be.
  - A name server of the user's own on the host must not take its upstream servers from C(/etc/resolv.conf), or it is
    passed by while a lab is up, since the two would ask each other for ever.
  - What is to be there whenever the network starts is done by the network hook, which M(nometal.ipi.libvirt_service)
    installs.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.reconciled
options:
  lab:
    description: Name of the lab.
    type: str
    aliases: [owner]
    required: true
  link:
    description:
      - Bridge of the lab's network, by its interface name, 15 characters at most.
      - As long as it is not there, the lab's servers are not asked.
      - Required with O(state=present). What is removed is known by O(lab).
    type: str
  domains:
    description:
      - Domains of the lab, and reverse zones if they are not those of O(subnets). All names below are its own.
      - No other lab on the host can have the same one.
    type: list
    elements: str
    default: []
  subnets:
    description:
      - Subnets of the lab, whose addresses are looked up at its servers too.
      - Reverse zones end at the dots, so labs on one host cannot share a /24 (for IPv6, a /124).
    type: list
    elements: str
    default: []
  servers:
    description:
      - Addresses of the lab's name servers, in the lab's network. Loopback, multicast, link-local and unspecified
        addresses are refused.
      - Required with O(state=present), as is one of O(domains) and O(subnets).
    type: list
    elements: str
    default: []
  names:
    description:
      - Names that the lab's name servers know, such as that of the cluster's API.
      - The host is asked for them as its programs ask. Where it does not find the addresses that the lab's name
        servers give, the resolver is set up anew; the module fails if that does not help.
      - They are not asked for while O(link) is down, nor from systemd-resolved while it has no carrier.
    type: list
    elements: str
    default: []
  state:
    description: Whether the host is to know the lab's names, or to be as it was before.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Resolve the lab's names on its host
  nometal.ipi.split_dns:
    lab: demo
    link: nm-demo
    domains: [demo.lab.example.test]
    subnets: [192.168.126.0/24]
    servers: [192.168.126.1]
    names: [api.demo.lab.example.test]

- name: Leave the host's resolver as it was
  nometal.ipi.split_dns:
    lab: demo
    link: nm-demo
    state: absent
"""

RETURN = r"""
means:
  description: What makes the host ask there, V(systemd-resolved), V(NetworkManager) or V(resolv.conf).
  returned: when O(state=present)
  type: str
  sample: systemd-resolved
steps:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample: [write systemd-resolved, apply systemd-resolved]
"""

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.choice import SplitDns

ARGUMENTS = {
    "lab": {"type": "str", "required": True, "aliases": ["owner"]},
    "link": {"type": "str"},
    "domains": {"type": "list", "elements": "str", "default": []},
    "subnets": {"type": "list", "elements": "str", "default": []},
    "servers": {"type": "list", "elements": "str", "default": []},
    "names": {"type": "list", "elements": "str", "default": []},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}
RULES = {"required_if": [("state", "present", ["link"])]}


def main() -> None:
    run_module(ARGUMENTS, SplitDns.run, **RULES)


if __name__ == "__main__":
    main()
