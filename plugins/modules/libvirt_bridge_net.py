#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: libvirt_bridge_net
short_description: A libvirt network with its bridge, DHCP and DNS
version_added: 0.1.0
description:
  - Makes a libvirt network as declared, started and started again at boot; changes it; or removes it.
  - DHCP reservations, ranges and DNS records change while the network runs, and interrupt nothing. All else needs the
    network to be restarted, which is refused unless O(restart=allowed).
  - What a running network has lost is put back while it runs, such as a bridge that is down, an address of the host on
    it, a dnsmasq that has died, or packet forwarding that was switched off. A network that has lost its bridge is
    restarted.
  - Guests and links that are plugged into the bridge are back on it after a restart, of this module's or of anybody's.
  - The network's metadata in libvirt name its owner. A network without, or with another owner, is never touched unless
    O(adopt=true). What others have added to an owned network beside the things declared here stays.
  - A lease that keeps a reservation from its address is released, and the machine gets its address when it asks next.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.reconciled
  - nometal.ipi.libvirt
requirements:
  - dnsmasq-utils, as role nometal.ipi.host_prep installs it, for releasing leases
options:
  name:
    description:
      - Name of the network.
      - Left out with O(state=absent), it means all networks of O(lab), except O(keep).
    type: str
  lab:
    description: Name of the lab that owns the network. Lower case letters, digits and inner hyphens.
    type: str
    aliases: [owner]
    required: true
  keep:
    description:
      - Names of networks of O(lab) that stay, when O(name) is left out, or with O(exclusive=true). The owner goes on,
        so what is plugged into the others is not unplugged unless O(restart=allowed).
    type: list
    elements: str
    default: []
  exclusive:
    description:
      - With O(state=present), whether networks of O(lab) other than O(name) and O(keep) are removed first.
    type: bool
    default: false
  leaving:
    description:
      - Links that are removed before the network is made, by other means, such as a veth pair and the bridge that
        M(nometal.ipi.veth_pair) has made for it. In check mode they count as removed, so that all that this module
        would refuse is known before they go.
    type: list
    elements: str
    default: []
  uuid:
    description: UUID of a network that is made. One that is there keeps its own.
    type: str
  bridge:
    description:
      - Name of the bridge, which libvirt makes and removes with the network. At most 15 characters.
      - Required with O(state=present).
    type: str
  forward:
    description:
      - V(nat), behind the host's own address; V(route), routed by the host; V(open), routed and with no firewall rules
        of libvirt's; V(isolated), not at all.
    type: str
    choices: [nat, route, open, isolated]
    default: nat
  mtu:
    description: MTU of the bridge, from 576 to 65521, which DHCP hands out too.
    type: int
    default: 1500
  domain:
    description: Domain of the network. Its names are known here or nowhere; no other server is asked for them.
    type: str
  autostart:
    description: Whether the network starts with the host.
    type: bool
    default: true
  addresses:
    description:
      - The network's subnets, one of IPv4, of IPv6, or one of each.
      - Required with O(state=present).
    type: list
    elements: dict
    default: []
    suboptions:
      cidr:
        description: The subnet.
        type: str
        required: true
      gateway:
        description: The host's own address in it, which is also that of the DHCP and DNS server.
        type: str
        required: true
      prefix:
        description: Length of the subnet's prefix. It follows from O(addresses[].cidr), and may be given as well.
        type: int
      family:
        description: The subnet's family. It follows from O(addresses[].cidr), and may be given as well.
        type: str
        choices: [ipv4, ipv6]
  dhcp:
    description: Who gets which address. Empty, the network has no DHCP.
    type: dict
    suboptions:
      ranges:
        description:
          - Addresses for any machine.
          - libvirt would allow only as many leases as the ranges have addresses. Where there are reservations and pools
            as well, parts of the largest range stand in the network more than once, which makes room for them.
        type: list
        elements: dict
        default: []
        suboptions:
          start:
            description: First address.
            type: str
            required: true
          end:
            description: Last address.
            type: str
            required: true
          family:
            description: Follows from the addresses, and may be given as well.
            type: str
            choices: [ipv4, ipv6]
      reservations:
        description: Machines that always get the same address.
        type: list
        elements: dict
        default: []
        suboptions:
          name:
            description: The machine's host name.
            type: str
            required: true
          fqdn:
            description: The machine's full name. DHCP has no use for it; what DNS answers stands in O(dns.hosts).
            type: str
          mac:
            description: The machine's MAC address, by which DHCP knows it.
            type: str
            required: true
          duid:
            description: The machine's DUID, by which DHCPv6 knows it. Required for an IPv6 address.
            type: str
          ips:
            description: The machine's addresses, one of a family.
            type: list
            elements: str
            required: true
      known_only:
        description:
          - Whether machines without a reservation get no answer whatsoever, for a network that shares a LAN of others.
            O(dhcp.ranges) and O(dhcp.pools) must be empty then.
          - DHCP alone is limited. Module M(nometal.ipi.lab_firewall) keeps IPv6 router advertisements from others.
        type: bool
        default: false
      pools:
        description:
          - Addresses for machines whose MAC addresses begin alike, such as VMs that are not known beforehand. No other
            machine gets them.
          - A machine with a reservation keeps it. When a pool is used up, an address of O(dhcp.ranges) is given out.
          - The longest prefix wins. Pools of the same prefix share their addresses and their routes.
        type: list
        elements: dict
        default: []
        suboptions:
          mac_prefix:
            description: How the MAC addresses begin, one to five pairs of hex digits.
            type: str
            required: true
          start:
            description: First address.
            type: str
            required: true
          end:
            description: Last address.
            type: str
            required: true
          family:
            description: Follows from the addresses, and may be given as well.
            type: str
            choices: [ipv4, ipv6]
          static_routes:
            description: Routes that DHCP hands out to these machines, beside the default route.
            type: list
            elements: dict
            default: []
            suboptions:
              to:
                description: Destination.
                type: str
                required: true
              via:
                description: Next hop, in the network.
                type: str
                required: true
  dns:
    description: What the network's DNS server answers.
    type: dict
    suboptions:
      hosts:
        description: Names of addresses, and addresses of names.
        type: list
        elements: dict
        default: []
        suboptions:
          ip:
            description: The address, which stands here once.
            type: str
            required: true
          names:
            description: All names of the address. The first one is what it resolves to.
            type: list
            elements: str
            required: true
      wildcards:
        description: Domains below which every name has the same address.
        type: list
        elements: dict
        default: []
        suboptions:
          domain:
            description: The domain, with no asterisk.
            type: str
            required: true
          ip:
            description: The address. A domain may stand here once for each of its addresses.
            type: str
            required: true
      forwarders:
        description: Servers that are asked for all other names, instead of the host's own.
        type: list
        elements: str
        default: []
      records:
        description: Further records.
        type: dict
        suboptions:
          srv:
            description: Where services are.
            type: list
            elements: dict
            default: []
            suboptions:
              service:
                description: The service, with no underscore.
                type: str
                required: true
              protocol:
                description: The protocol, with no underscore.
                type: str
                required: true
              domain:
                description: The domain that has the service.
                type: str
                required: true
              target:
                description: The host that serves.
                type: str
                required: true
              port:
                description: The port.
                type: int
                required: true
              priority:
                description: Lower is asked first.
                type: int
                default: 0
              weight:
                description: Share among equals.
                type: int
                default: 0
          txt:
            description: Texts.
            type: list
            elements: dict
            default: []
            suboptions:
              name:
                description: The name that has the text.
                type: str
                required: true
              value:
                description: The text, 255 characters at most.
                type: str
                required: true
  ntp_servers:
    description: Addresses of time servers that DHCP hands out, of the families of O(addresses).
    type: list
    elements: str
    default: []
  restart:
    description:
      - Whether a running network may be restarted for changes that libvirt cannot make otherwise. Guests lose their
        network for a second or two; connections survive that.
    type: str
    choices: [refused, allowed]
    default: refused
  adopt:
    description: Take over a network of this name that is not the owner's, and change or remove it.
    type: bool
    default: false
  state:
    description: Whether the network is to be there, started, or gone.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Make the lab's network
  nometal.ipi.libvirt_bridge_net:
    name: nometal-demo
    lab: demo
    bridge: nm-demo
    domain: demo.lab.example.test
    addresses:
      - cidr: 192.168.126.0/24
        gateway: 192.168.126.1
    dhcp:
      ranges:
        - {start: 192.168.126.220, end: 192.168.126.239}
      reservations:
        - {name: control-plane-0, mac: "52:54:00:2c:a0:17", ips: [192.168.126.20]}
      pools:
        - {mac_prefix: "52:54:00", start: 192.168.126.10, end: 192.168.126.17}
    dns:
      hosts:
        - {ip: 192.168.126.5, names: [api.demo.lab.example.test]}
      wildcards:
        - {domain: apps.demo.lab.example.test, ip: 192.168.126.6}

- name: Make the networks of the model, and remove those that the lab had before
  nometal.ipi.libvirt_bridge_net:
    name: "{{ network.name }}"
    lab: "{{ lab.name }}"
    uuid: "{{ network.uuid }}"
    bridge: "{{ network.bridge }}"
    forward: "{{ network.forward }}"
    mtu: "{{ network.mtu }}"
    domain: "{{ network.domain }}"
    addresses: "{{ network.addresses }}"
    dhcp: "{{ network.dhcp }}"
    dns: "{{ network.dns }}"
    ntp_servers: "{{ network.ntp_servers }}"
    exclusive: true
    keep: "{{ lab.networks | map(attribute='name') | list }}"
    restart: allowed
  loop: "{{ lab.networks }}"
  loop_control:
    loop_var: network
    label: "{{ network.name }}"

- name: Remove one network of the lab
  nometal.ipi.libvirt_bridge_net:
    name: nometal-demo
    lab: demo
    state: absent

- name: Remove all networks of the lab, whatever they are called
  nometal.ipi.libvirt_bridge_net:
    lab: demo
    state: absent
"""

RETURN = r"""
steps:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample: [define nometal-demo, install hook of nometal-demo, start nometal-demo, autostart nometal-demo]
"""

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import run_module
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import argument_spec
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.declared import Declared
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.resource import run

NAMES = {"type": "list", "elements": "str", "default": []}
ARGUMENTS = {
    **argument_spec(Declared, needed=("lab",)),
    "keep": NAMES,
    "exclusive": {"type": "bool", "default": False},
    "leaving": NAMES,
    "restart": {"type": "str", "choices": ["refused", "allowed"], "default": "refused"},
    "adopt": {"type": "bool", "default": False},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "libvirt_uri": {"type": "str", "default": "qemu:///system"},
}
RULES = {"required_if": [("state", "present", ("name", "bridge"))]}


def main() -> None:
    run_module(ARGUMENTS, run, **RULES)


if __name__ == "__main__":
    main()
