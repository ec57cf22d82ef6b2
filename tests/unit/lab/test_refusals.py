# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that a lab_spec is refused for, in the words that the operator reads."""
# ruff: noqa: E501 - the messages stand here as they are shown

from __future__ import annotations

import pytest
from unit.lab.samples import errors_of, spec_of

NODE_COUNTS = [
    (
        "one control plane node",
        "nodes: {control_plane: {count: 1}}",
        [
            "lab_spec.nodes.control_plane.count: is 1; 3 or more are right, or 2 with nodes.arbiters.count: 1 or nodes.control_plane.fencing: true"
        ],
    ),
    (
        "none",
        "nodes: {control_plane: {count: 0}}",
        [
            "lab_spec.nodes.control_plane.count: is 0; 3 or more are right, or 2 with nodes.arbiters.count: 1 or nodes.control_plane.fencing: true"
        ],
    ),
    (
        "two without an arbiter",
        "nodes: {control_plane: {count: 2}}",
        [
            "lab_spec.nodes.control_plane.count: is 2; 3 or more are right, or 2 with nodes.arbiters.count: 1 or nodes.control_plane.fencing: true"
        ],
    ),
    (
        "two arbiters",
        "nodes: {control_plane: {count: 2}, arbiters: {count: 2}}",
        ["lab_spec.nodes.arbiters.count: is 2; 0 or 1 is right"],
    ),
    (
        "an arbiter too many",
        "nodes: {arbiters: {count: 1}}",
        ["lab_spec.nodes.arbiters.count: is 1 beside 3 control plane nodes; an arbiter is for exactly 2"],
    ),
    (
        "fencing of three",
        "nodes: {control_plane: {fencing: true}}",
        ["lab_spec.nodes.control_plane.fencing: is true for 3 control plane nodes; it is for exactly 2"],
    ),
    (
        "fencing and an arbiter",
        "nodes: {control_plane: {count: 2, fencing: true}, arbiters: {count: 1}}",
        ["lab_spec.nodes.control_plane.fencing: is true beside an arbiter; one of the two is right"],
    ),
    (
        "negative count",
        "nodes: {workers: {count: -1}}",
        ["lab_spec.nodes.workers.count: is -1, a number; a whole number from 0 to 250 is right"],
    ),
    (
        "absurd count",
        "nodes: {workers: {count: 100000}}",
        ["lab_spec.nodes.workers.count: is 100000, a number; a whole number from 0 to 250 is right"],
    ),
]

NAMES = [
    (
        "capital letters",
        "name: Ha",
        ["lab_spec.name: is 'Ha'; lower case letters, digits and inner hyphens are right, with no dot"],
    ),
    (
        "a dot",
        "name: ha.one",
        ["lab_spec.name: is 'ha.one'; lower case letters, digits and inner hyphens are right, with no dot"],
    ),
    (
        "too long",
        "name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        ["lab_spec.name: has 55 characters; 54 at most are right"],
    ),
    ("no name", "name:", ["lab_spec.name: is missing; a name is right, such as ha"]),
    (
        "a domain with a space",
        "base_domain: lab example",
        ["lab_spec.base_domain: is 'lab example'; a domain in lower case is right, such as lab.example.test"],
    ),
    (
        "a domain too long",
        "base_domain: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        [
            "lab_spec.base_domain: makes the cluster's domain 246 characters long; 207 at most leave room for the names in it"
        ],
    ),
    (
        "a reservation called like a node",
        "machine_network: {reservations: [{name: worker-0, mac: '52:54:00:00:00:01', ip: 192.168.126.9}]}\nnodes: {workers: {count: 1}}",
        [
            "lab_spec.machine_network.reservations[0].name: is worker-0, which the node worker-0 has already; another one is right"
        ],
    ),
    (
        "a reservation called api",
        "machine_network: {reservations: [{name: api, mac: '52:54:00:00:00:01', ip: 192.168.126.9}]}",
        [
            "lab_spec.machine_network.reservations[0].name: is api, which the cluster itself has already; another one is right"
        ],
    ),
    (
        "two reservations of one name",
        "machine_network: {reservations: [{name: a, mac: '52:54:00:00:00:01', ip: 192.168.126.9}, {name: a, mac: '52:54:00:00:00:02', ip: 192.168.126.8}]}",
        [
            "lab_spec.machine_network.reservations[1].name: is a, which lab_spec.machine_network.reservations[0] has already; another one is right"
        ],
    ),
    (
        "a record of the lab's own",
        "machine_network: {dns: {records: {api: {addresses: [192.0.2.1]}}}}",
        ["lab_spec.machine_network.dns.records.api: is a name that the lab gives to its own; another one is right"],
    ),
    (
        "an empty record",
        "machine_network: {dns: {records: {mirror: }}}",
        ["lab_spec.machine_network.dns.records.mirror: holds nothing; one of these is right: addresses, txt, srv"],
    ),
    (
        "a service in the wrong place",
        "machine_network: {dns: {records: {mirror: {srv: [{target: a.example.test, port: 1}]}}}}",
        [
            "lab_spec.machine_network.dns.records.mirror.srv: stands at mirror; a name such as _ldap._tcp.example.test is right"
        ],
    ),
    (
        "text below an asterisk",
        "machine_network: {dns: {records: {'*.a.test': {txt: [hello]}}}}",
        [
            "lab_spec.machine_network.dns.records.*.a.test: begins with *, which is for addresses alone; txt and srv need a name of their own"
        ],
    ),
    (
        "a time server out of reach",
        "machine_network: {ntp_servers: ['fd00::1']}",
        ["lab_spec.machine_network.ntp_servers: holds fd00::1, which machines without IPv6 do not reach; leave it out"],
    ),
    (
        "DNS that asks itself",
        "machine_network: {dns: {forwarders: [192.168.126.1]}}",
        [
            "lab_spec.machine_network.dns.forwarders: holds 192.168.126.1, the lab's own DNS server, which would ask itself; other servers are right"
        ],
    ),
]

INTERFACES = [
    (
        "a bridge name too long",
        "machine_network: {bridge: baremetal-of-the-lab}",
        ["lab_spec.machine_network.bridge: has 20 characters; 15 at most are right, which is Linux's limit"],
    ),
    (
        "a bridge name with a slash",
        "machine_network: {bridge: bare/metal}",
        [
            "lab_spec.machine_network.bridge: is 'bare/metal'; an interface name is right: letters, digits, dot, hyphen, underscore"
        ],
    ),
    (
        "one bridge for two networks",
        "machine_network: {bridge: provisioning}\nprovisioning_network: {}",
        [
            "lab_spec.provisioning_network.bridge: is provisioning, which the machine network's bridge has already; another one is right"
        ],
    ),
    (
        "the lab's own bridge",
        "machine_network: {bridge: nm-ha}",
        ["lab_spec.machine_network.bridge: is nm-ha, which the lab itself has already; another one is right"],
    ),
    (
        "an MTU of nothing",
        "machine_network: {mtu: 0}",
        ["lab_spec.machine_network.mtu: is 0, a number; a whole number from 576 to 9216 is right"],
    ),
    (
        "an MTU too small for IPv6",
        "machine_network: {cidr_v6: 'fd00:1::/64', mtu: 1000}",
        ["lab_spec.machine_network.mtu: is 1000; IPv6 needs 1280 or more"],
    ),
]

NETWORKS = [
    (
        "host bits",
        "machine_network: {cidr: 192.168.126.5/24}",
        [
            "lab_spec.machine_network.cidr: is '192.168.126.5/24', an address in a network; the network itself is 192.168.126.0/24"
        ],
    ),
    (
        "no prefix length",
        "machine_network: {cidr: 192.168.126.0}",
        ["lab_spec.machine_network.cidr: is '192.168.126.0'; a network has a prefix length: 192.168.126.0/24"],
    ),
    (
        "no network",
        "machine_network: {cidr: my network}",
        ["lab_spec.machine_network.cidr: is 'my network'; a network is right, such as 192.168.126.0/24"],
    ),
    (
        "IPv6 in the wrong key",
        "machine_network: {cidr: 'fd00:1::/64'}",
        [
            "lab_spec.machine_network.cidr: is fd00:1::/64; an IPv4 network is right here, and cidr_v6 is the key for IPv6"
        ],
    ),
    (
        "IPv4 in the wrong key",
        "machine_network: {cidr_v6: 192.168.126.0/24}",
        [
            "lab_spec.machine_network.cidr_v6: is 192.168.126.0/24; an IPv6 network is right here, such as fd2e:6f44:5dd8::/64"
        ],
    ),
    (
        "loopback",
        "machine_network: {cidr: 127.0.0.0/24}",
        [
            "lab_spec.machine_network.cidr: is 127.0.0.0/24, which no machines can have; one such as 192.168.126.0/24 is right"
        ],
    ),
    (
        "too large",
        "machine_network: {cidr: 0.0.0.0/0}",
        ["lab_spec.machine_network.cidr: is 0.0.0.0/0, too large to be one network; a /8 or smaller is right"],
    ),
    (
        "IPv6 too large for dnsmasq",
        "machine_network: {cidr_v6: 'fd00:1::/48'}",
        ["lab_spec.machine_network.cidr_v6: is fd00:1::/48, too large to be one network; a /64 or smaller is right"],
    ),
    (
        "no room at all",
        "machine_network: {cidr: 192.168.126.0/30}",
        ["lab_spec.machine_network.cidr: is 192.168.126.0/30, too small for any lab; a /28 is right"],
    ),
    (
        "too small for the nodes",
        "machine_network: {cidr: 192.168.126.0/28}\nnodes: {workers: {count: 20}}",
        [
            "lab_spec.machine_network.cidr: has room for 14 addresses, and this lab needs 30 (gateway, VIPs, 23 nodes, reservations, DHCP pools); a /27 is right"
        ],
    ),
    (
        "no room beside what is pinned",
        "machine_network: {cidr: 192.168.126.0/28, gateway: 192.168.126.14, vips: {api: 192.168.126.2, ingress: 192.168.126.12}}\nnodes: {workers: {count: 1}, overrides: {control-plane-0: {ip: 192.168.126.4}, control-plane-1: {ip: 192.168.126.6}, control-plane-2: {ip: 192.168.126.8}, worker-0: {ip: 192.168.126.10}}}",
        [
            "lab_spec.machine_network.cidr: has no 2 addresses in a row left beside what is pinned; a larger network, or fewer pinned addresses, is right"
        ],
    ),
    (
        "the cluster's pod network",
        "machine_network: {cidr: 10.128.0.0/16}",
        [
            "lab_spec.machine_network.cidr: is 10.128.0.0/16, which overlaps 10.128.0.0/14, the cluster's pod network; a network apart is right, such as 192.168.126.0/24"
        ],
    ),
    (
        "the service network of the installation",
        "machine_network: {cidr: 10.1.0.0/16}\ninstall: {config: {networking: {serviceNetwork: [10.1.0.0/24]}}}",
        [
            "lab_spec.machine_network.cidr: is 10.1.0.0/16, which overlaps 10.1.0.0/24, the cluster's service network; a network apart is right, such as 192.168.126.0/24"
        ],
    ),
]

ADDRESSES = [
    (
        "a VIP outside",
        "machine_network: {vips: {api: 10.0.0.5}}",
        [
            "lab_spec.machine_network.vips.api: is 10.0.0.5, outside the machine network 192.168.126.0/24; 192.168.126.1 to 192.168.126.254 are right"
        ],
    ),
    (
        "a VIP in the DHCP pool",
        "machine_network: {vips: {api: 192.168.126.102}, dhcp_pool: {start: 192.168.126.100, end: 192.168.126.110}}",
        [
            "lab_spec.machine_network.vips.api: is 192.168.126.102, inside the DHCP pool (192.168.126.100 to 192.168.126.110); one outside is right"
        ],
    ),
    (
        "a VIP that is reserved",
        "machine_network: {vips: {api: 192.168.126.9}, reservations: [{name: a, mac: '52:54:00:00:00:01', ip: 192.168.126.9}]}",
        [
            "lab_spec.machine_network.reservations[0].ip: is 192.168.126.9, which the API VIP has already (lab_spec.machine_network.vips.api); another one is right"
        ],
    ),
    (
        "a VIP that is a node's",
        "machine_network: {vips: {ingress: 192.168.126.50}}\nnodes: {overrides: {control-plane-0: {ip: 192.168.126.50}}}",
        [
            "lab_spec.nodes.overrides.control-plane-0.ip: is 192.168.126.50, which the ingress VIP has already (lab_spec.machine_network.vips.ingress); another one is right"
        ],
    ),
    (
        "one VIP for both",
        "machine_network: {vips: {api: 192.168.126.9, ingress: 192.168.126.9}}",
        [
            "lab_spec.machine_network.vips.ingress: is 192.168.126.9, which the API VIP has already (lab_spec.machine_network.vips.api); another one is right"
        ],
    ),
    (
        "a VIP that is the gateway",
        "machine_network: {vips: {api: 192.168.126.1}}",
        ["lab_spec.machine_network.vips.api: is 192.168.126.1, the gateway's address; another one is right"],
    ),
    (
        "a VIP that is the network",
        "machine_network: {vips: {api: 192.168.126.0}}",
        [
            "lab_spec.machine_network.vips.api: is 192.168.126.0, the address of 192.168.126.0/24 itself; 192.168.126.1 to 192.168.126.254 are right"
        ],
    ),
    (
        "a VIP that is the broadcast address",
        "machine_network: {vips: {api: 192.168.126.255}}",
        [
            "lab_spec.machine_network.vips.api: is 192.168.126.255, the broadcast address of 192.168.126.0/24; 192.168.126.1 to 192.168.126.254 are right"
        ],
    ),
    (
        "IPv6 first in a lab that has IPv4",
        "machine_network: {cidr: 192.168.126.0/24, cidr_v6: 'fd00:1::/64', vips: {api: ['fd00:1::5', 192.168.126.5], ingress: [192.168.126.6, 'fd00:1::6']}}",
        [
            "lab_spec.machine_network.vips.api: begins with fd00:1::5; IPv4 first is right, as in lab_spec.machine_network"
        ],
    ),
    (
        "VIPs that do not match",
        "machine_network: {cidr: 192.168.126.0/24, cidr_v6: 'fd00:1::/64', vips: {api: 192.168.126.5, ingress: [192.168.126.6, 'fd00:1::6']}}",
        ["lab_spec.machine_network.vips.ingress: has 2, and api has 1; as many for ingress as for api are right"],
    ),
    (
        "two VIPs of one family",
        "machine_network: {vips: {api: [192.168.126.5, 192.168.126.6]}}",
        [
            "lab_spec.machine_network.vips.api: has two addresses of one family; [IPv4, IPv6] or just 192.168.126.5 is right"
        ],
    ),
    (
        "IPv6 in a lab without",
        "machine_network: {vips: {api: ['192.168.126.5', 'fd00:1::5'], ingress: [192.168.126.6, 'fd00:1::6']}}",
        [
            "lab_spec.machine_network.vips.api[1]: is fd00:1::5, and the machine network has no IPv6; lab_spec.machine_network.cidr_v6 gives it one",
            "lab_spec.machine_network.vips.ingress[1]: is fd00:1::6, and the machine network has no IPv6; lab_spec.machine_network.cidr_v6 gives it one",
        ],
    ),
    (
        "a gateway outside",
        "machine_network: {gateway: 10.0.0.1}",
        [
            "lab_spec.machine_network.gateway: is 10.0.0.1, outside the machine network 192.168.126.0/24; 192.168.126.1 to 192.168.126.254 are right"
        ],
    ),
    (
        "no address",
        "machine_network: {vips: {api: here}}",
        ["lab_spec.machine_network.vips.api: is 'here'; an IP address is right, such as 192.168.126.5"],
    ),
    (
        "a multicast address",
        "machine_network: {vips: {api: 224.0.0.1}}",
        ["lab_spec.machine_network.vips.api: is '224.0.0.1'; the address of a machine is right, such as 192.168.126.5"],
    ),
    (
        "a reservation outside",
        "machine_network: {reservations: [{name: a, mac: '52:54:00:00:00:01', ip: 10.0.0.9}]}",
        [
            "lab_spec.machine_network.reservations[0].ip: is 10.0.0.9, outside the machine network 192.168.126.0/24; 192.168.126.1 to 192.168.126.254 are right"
        ],
    ),
    (
        "a node in a pool",
        "machine_network: {pools: [{mac_prefix: '52:54:00', start: 192.168.126.10, end: 192.168.126.17}]}\nnodes: {overrides: {control-plane-1: {ip: 192.168.126.12}}}",
        [
            "lab_spec.nodes.overrides.control-plane-1.ip: is 192.168.126.12, inside the pool of 52:54:00 (192.168.126.10 to 192.168.126.17); one outside is right"
        ],
    ),
]

RANGES = [
    (
        "backwards",
        "machine_network: {dhcp_pool: {start: 192.168.126.110, end: 192.168.126.100}}",
        [
            "lab_spec.machine_network.dhcp_pool: has no range from start to end; start first, both of one family, is right"
        ],
    ),
    (
        "of two families",
        "machine_network: {cidr: 192.168.126.0/24, cidr_v6: 'fd00:1::/64', dhcp_pool: {start: 192.168.126.110, end: 'fd00:1::9'}}",
        [
            "lab_spec.machine_network.dhcp_pool: has no range from start to end; start first, both of one family, is right"
        ],
    ),
    (
        "outside",
        "machine_network: {dhcp_pool: {start: 192.168.126.250, end: 192.168.127.5}}",
        [
            "lab_spec.machine_network.dhcp_pool.end: is 192.168.127.5, outside the machine network 192.168.126.0/24; 192.168.126.1 to 192.168.126.254 are right"
        ],
    ),
    (
        "too small",
        "machine_network: {dhcp_pool: {start: 192.168.126.100, end: 192.168.126.100}}",
        [
            "lab_spec.machine_network.dhcp_pool: is 192.168.126.100 to 192.168.126.100, 1 in all; 2 to 65535 addresses are right"
        ],
    ),
    (
        "too large",
        "machine_network: {cidr: 172.16.0.0/13, dhcp_pool: {start: 172.17.0.0, end: 172.18.0.0}}",
        [
            "lab_spec.machine_network.dhcp_pool: is 172.17.0.0 to 172.18.0.0, 65537 in all; 2 to 65535 addresses are right"
        ],
    ),
    (
        "around the gateway",
        "machine_network: {gateway: 192.168.126.105, dhcp_pool: {start: 192.168.126.100, end: 192.168.126.110}}",
        [
            "lab_spec.machine_network.dhcp_pool: is 192.168.126.100 to 192.168.126.110, and the gateway 192.168.126.105 lies inside; a range without it is right"
        ],
    ),
    (
        "overlapping",
        "machine_network: {dhcp_pool: {start: 192.168.126.100, end: 192.168.126.110}, pools: [{mac_prefix: '52:54:00', start: 192.168.126.110, end: 192.168.126.120}]}",
        [
            "lab_spec.machine_network.pools[0]: is 192.168.126.110 to 192.168.126.120, which overlaps the DHCP pool (192.168.126.100 to 192.168.126.110); ranges apart are right"
        ],
    ),
    (
        "without an end",
        "machine_network: {dhcp_pool: {start: 192.168.126.100}}",
        [
            "lab_spec.machine_network.dhcp_pool.end: is missing; an address, or [IPv4, IPv6] is right, such as 192.168.126.239"
        ],
    ),
    (
        "a prefix twice",
        "machine_network: {pools: [{mac_prefix: '52:54:00', start: 192.168.126.110, end: 192.168.126.120}, {mac_prefix: '52:54', start: 192.168.126.130, end: 192.168.126.131}]}",
        [
            "lab_spec.machine_network.pools[1].mac_prefix: is 52:54, which overlaps 52:54:00 of lab_spec.machine_network.pools[0]; prefixes apart are right"
        ],
    ),
    (
        "a prefix inside the bootstrap VM's",
        "machine_network: {pools: [{mac_prefix: '52:54:00:aa', start: 192.168.126.110, end: 192.168.126.120}]}",
        [
            "lab_spec.machine_network.pools[0].mac_prefix: is 52:54:00:aa, which overlaps 52:54:00 of the bootstrap VM's own pool; prefixes apart are right"
        ],
    ),
    (
        "a route through the outside",
        "machine_network: {pools: [{mac_prefix: '52:54:00', start: 192.168.126.110, end: 192.168.126.120, static_routes: [{to: 10.0.0.0/19, via: 10.0.0.1}]}]}",
        [
            "lab_spec.machine_network.pools[0].static_routes[0].via: is 10.0.0.1, outside the machine network 192.168.126.0/24; 192.168.126.1 to 192.168.126.254 are right"
        ],
    ),
    (
        "a route with host bits",
        "machine_network: {pools: [{mac_prefix: '52:54:00', start: 192.168.126.110, end: 192.168.126.120, static_routes: [{to: 10.0.0.1/19, via: 192.168.126.2}]}]}",
        [
            "lab_spec.machine_network.pools[0].static_routes[0].to: is '10.0.0.1/19', an address in a network; the network itself is 10.0.0.0/19"
        ],
    ),
    (
        "a route of IPv6",
        "machine_network: {pools: [{mac_prefix: '52:54:00', start: 192.168.126.110, end: 192.168.126.120, static_routes: [{to: 'fd00::/64', via: 192.168.126.2}]}]}",
        [
            "lab_spec.machine_network.pools[0].static_routes[0]: is no IPv4 route in an IPv4 network; DHCP hands out no other, so leave it out"
        ],
    ),
]

BOOTSTRAP = [
    (
        "an address from the pool",
        "bootstrap: {address: pool, ip: 192.168.126.9}",
        ["lab_spec.bootstrap.ip: means nothing with address: pool; address: reserved or static uses it"],
    ),
    (
        "a MAC with a static address",
        "bootstrap: {address: static, mac: '52:54:00:00:00:01'}",
        ["lab_spec.bootstrap.mac: means nothing with address: static; address: reserved uses it"],
    ),
    (
        "a gateway for a reserved address",
        "bootstrap: {address: reserved, gateway: 192.168.126.1}",
        ["lab_spec.bootstrap.gateway: means nothing with address: reserved; address: static uses it"],
    ),
    (
        "a static address that is the API VIP",
        "machine_network: {vips: {api: 192.168.126.5}}\nbootstrap: {address: static, ip: 192.168.126.5}",
        [
            "lab_spec.bootstrap.ip: is 192.168.126.5, which the API VIP has already (lab_spec.machine_network.vips.api); another one is right"
        ],
    ),
    (
        "a static address outside",
        "bootstrap: {address: static, ip: 10.0.0.5}",
        [
            "lab_spec.bootstrap.ip: is 10.0.0.5, outside the machine network 192.168.126.0/24; 192.168.126.1 to 192.168.126.254 are right"
        ],
    ),
    (
        "a static gateway outside",
        "bootstrap: {address: static, gateway: 10.0.0.1}",
        [
            "lab_spec.bootstrap.gateway: is 10.0.0.1, outside the machine network 192.168.126.0/24; 192.168.126.1 to 192.168.126.254 are right"
        ],
    ),
    (
        "a static address of the wrong family",
        "machine_network: {cidr: 192.168.126.0/24, cidr_v6: 'fd00:1::/64'}\nbootstrap: {address: static, ip: 'fd00:1::9'}",
        ["lab_spec.bootstrap.ip: is fd00:1::9; the installer takes the primary family, so one IPv4 address is right"],
    ),
    (
        "a static DNS server of the wrong family",
        "bootstrap: {address: static, dns: 'fd00:1::9'}",
        ["lab_spec.bootstrap.dns: is fd00:1::9; the installer takes the primary family, so one IPv4 address is right"],
    ),
]

PROVISIONING_NETWORK = [
    (
        "over the machine network",
        "provisioning_network: {cidr: 192.168.0.0/16}",
        [
            "lab_spec.provisioning_network.cidr: is 192.168.0.0/16, which overlaps the machine network 192.168.126.0/24; a network apart is right"
        ],
    ),
    (
        "over the cluster's services",
        "provisioning_network: {cidr: 172.30.0.0/24}",
        [
            "lab_spec.provisioning_network.cidr: is 172.30.0.0/24, which overlaps 172.30.0.0/16, the cluster's service network; a network apart is right, such as 192.168.126.0/24"
        ],
    ),
    (
        "an address outside",
        "provisioning_network: {host_ip: 172.23.0.1}",
        [
            "lab_spec.provisioning_network.host_ip: is 172.23.0.1, outside the provisioning network 172.22.0.0/24; 172.22.0.1 to 172.22.0.254 are right"
        ],
    ),
    (
        "one address for two",
        "provisioning_network: {bootstrap_ip: 172.22.0.1}",
        ["lab_spec.provisioning_network.bootstrap_ip: is 172.22.0.1, which host_ip has already; another one is right"],
    ),
    (
        "an address in the range",
        "provisioning_network: {host_ip: 172.22.0.100}",
        [
            "lab_spec.provisioning_network.host_ip: is 172.22.0.100, inside the DHCP range (172.22.0.10 to 172.22.0.254); one outside is right"
        ],
    ),
    (
        "a range outside",
        "provisioning_network: {dhcp_range: {start: 172.23.0.10, end: 172.23.0.20}}",
        [
            "lab_spec.provisioning_network.dhcp_range.start: is 172.23.0.10, outside the provisioning network 172.22.0.0/24; 172.22.0.1 to 172.22.0.254 are right",
            "lab_spec.provisioning_network.dhcp_range.end: is 172.23.0.20, outside the provisioning network 172.22.0.0/24; 172.22.0.1 to 172.22.0.254 are right",
        ],
    ),
    (
        "a range backwards",
        "provisioning_network: {dhcp_range: {start: 172.22.0.20, end: 172.22.0.10}}",
        [
            "lab_spec.provisioning_network.dhcp_range: has no range from start to end; one with 3 addresses or more is right"
        ],
    ),
    (
        "a range too small for the nodes",
        "provisioning_network: {dhcp_range: {start: 172.22.0.10, end: 172.22.0.11}}",
        [
            "lab_spec.provisioning_network.dhcp_range: is 172.22.0.10 to 172.22.0.11, 2 in all; 3 to 65535 addresses are right"
        ],
    ),
    (
        "a network too small for the nodes",
        "provisioning_network: {cidr: 172.22.0.0/29}\nnodes: {workers: {count: 5}}",
        [
            "lab_spec.provisioning_network.dhcp_range: is 172.22.0.4 to 172.22.0.6, 3 in all; 8 to 65535 addresses are right"
        ],
    ),
    (
        "a range nobody serves",
        "provisioning_network: {mode: unmanaged, dhcp_range: {start: 172.22.0.10, end: 172.22.0.60}}",
        [
            "lab_spec.provisioning_network.dhcp_range: means nothing with mode: unmanaged, where DHCP is not OpenShift's; leave it out"
        ],
    ),
]

BMCS = [
    (
        "PXE by Redfish without its network",
        "bmc: {protocol: redfish}",
        [
            "lab_spec.bmc.protocol: is redfish, which boots nodes from a provisioning network; redfish-virtualmedia is right, or a lab_spec.provisioning_network"
        ],
    ),
    (
        "IPMI without its network",
        "bmc: {protocol: ipmi}",
        [
            "lab_spec.bmc.protocol: is ipmi, which boots nodes from a provisioning network; redfish-virtualmedia is right, or a lab_spec.provisioning_network"
        ],
    ),
    (
        "IPMI with TLS",
        "provisioning_network: {}\nbmc: {protocol: ipmi, tls: true}",
        ["lab_spec.bmc.tls: is true, and ipmi has no TLS; false is right"],
    ),
    (
        "IPMI with secure boot",
        "provisioning_network: {}\nbmc: {protocol: ipmi}\nfirmware: uefi-secure",
        ["lab_spec.firmware: is uefi-secure, which the installer refuses for ipmi; uefi or bios is right"],
    ),
    (
        "IPMI with secure boot of one node",
        "provisioning_network: {}\nbmc: {protocol: ipmi}\nnodes: {overrides: {control-plane-0: {firmware: uefi-secure}}}",
        [
            "lab_spec.nodes.overrides.control-plane-0.firmware: is uefi-secure, which the installer refuses for ipmi; uefi or bios is right"
        ],
    ),
    (
        "IPMI with fencing",
        "provisioning_network: {}\nbmc: {protocol: ipmi}\nnodes: {control_plane: {count: 2, fencing: true}}",
        ["lab_spec.nodes.control_plane.fencing: is true, and ipmi cannot fence; bmc.protocol: redfish is right"],
    ),
    (
        "two on one port",
        "provisioning_network: {}\nbmc: {protocol: ipmi}\nnodes: {overrides: {control-plane-0: {bmc_port: 6231}}}",
        [
            "lab_spec.nodes.overrides.control-plane-0.bmc_port: is 6231, which control-plane-1 has already; another port is right"
        ],
    ),
    (
        "ports beyond the last",
        "provisioning_network: {}\nbmc: {protocol: ipmi, port: 65534}",
        ["lab_spec.bmc.port: gives control-plane-2 the port 65536; 65535 is the highest"],
    ),
    (
        "a port of its own by Redfish",
        "nodes: {overrides: {control-plane-0: {bmc_port: 6231}}}",
        [
            "lab_spec.nodes.overrides.control-plane-0.bmc_port: is for bmc.protocol: ipmi; by Redfish all nodes share bmc.port"
        ],
    ),
    (
        "a privileged port",
        "bmc: {port: 443}",
        ["lab_spec.bmc.port: is 443, a number; a whole number from 1024 to 65535 is right"],
    ),
    (
        "a protocol misspelt",
        "bmc: {protocol: redfish-virtual-media}",
        [
            "lab_spec.bmc.protocol: is 'redfish-virtual-media', a text; did you mean redfish-virtualmedia? one of these is right: redfish-virtualmedia, redfish, ipmi"
        ],
    ),
]

NODES = [
    (
        "an override of nobody",
        "nodes: {overrides: {worker-0: {memory: 8GiB}}}",
        [
            "lab_spec.nodes.overrides.worker-0: is no node of this lab; its nodes are control-plane-0, control-plane-1, control-plane-2"
        ],
    ),
    (
        "an override misspelt",
        "nodes: {overrides: {control-plan-0: {memory: 8GiB}}}",
        ["lab_spec.nodes.overrides.control-plan-0: is no node of this lab; did you mean control-plane-0?"],
    ),
    (
        "a hypervisor that is not there",
        "nodes: {overrides: {control-plane-0: {hypervisor: other}}}",
        [
            "lab_spec.nodes.overrides.control-plane-0.hypervisor: is other; one of lab_spec.hypervisors is right: hypervisor"
        ],
    ),
    (
        "a hypervisor of no name",
        "hypervisors: [my host]",
        ["lab_spec.hypervisors[0]: is 'my host'; the name of a host in the inventory is right, such as hypervisor"],
    ),
    ("hypervisors twice", "hypervisors: [a, a]", ["lab_spec.hypervisors: holds a more than once; once is right"]),
    ("no hypervisors", "hypervisors: []", ["lab_spec.hypervisors: has 0 items; 1 to 100 are right"]),
    (
        "a MAC in a network that is not there",
        "nodes: {overrides: {control-plane-0: {provisioning_mac: '52:54:00:00:00:01'}}}",
        [
            "lab_spec.nodes.overrides.control-plane-0.provisioning_mac: means nothing without lab_spec.provisioning_network"
        ],
    ),
    (
        "a MAC twice",
        "nodes: {overrides: {control-plane-0: {mac: '52:54:00:00:00:01'}, control-plane-1: {mac: '52:54:00:00:00:01'}}}",
        [
            "lab_spec.nodes.overrides.control-plane-1.mac: is 52:54:00:00:00:01, which the node control-plane-0 has already; another one is right"
        ],
    ),
    (
        "a MAC that is a reservation's",
        "machine_network: {reservations: [{name: a, mac: '52:54:00:00:00:01', ip: 192.168.126.9}]}\nnodes: {overrides: {control-plane-0: {mac: '52:54:00:00:00:01'}}}",
        [
            "lab_spec.machine_network.reservations[0].mac: is 52:54:00:00:00:01, which the node control-plane-0 has already; another one is right"
        ],
    ),
    (
        "a MAC derived for another node",
        "nodes: {overrides: {control-plane-0: {mac: '52:54:00:4a:96:7a'}}}",
        [
            "lab_spec.nodes.overrides.control-plane-0.mac: is 52:54:00:4a:96:7a, which the node control-plane-1 has already; another one is right"
        ],
    ),
    (
        "a multicast MAC",
        "nodes: {overrides: {control-plane-0: {mac: '53:54:00:00:00:01'}}}",
        [
            "lab_spec.nodes.overrides.control-plane-0.mac: is 53:54:00:00:00:01, a multicast address; the first pair has to be an even number, such as 52"
        ],
    ),
    (
        "no MAC",
        "nodes: {overrides: {control-plane-0: {mac: '52-54-00-00-00-01'}}}",
        [
            "lab_spec.nodes.overrides.control-plane-0.mac: is '52-54-00-00-00-01'; six pairs of hex digits are right, such as 52:54:00:12:34:56"
        ],
    ),
    (
        "a MAC of nobody",
        "nodes: {overrides: {control-plane-0: {mac: '00:00:00:00:00:00'}}}",
        [
            "lab_spec.nodes.overrides.control-plane-0.mac: is 00:00:00:00:00:00, which no machine may have; 52:54:00:12:34:56 would be right"
        ],
    ),
    (
        "a UUID twice",
        "nodes: {overrides: {control-plane-0: {uuid: 8c0e3b1a-5f3c-4c8e-9d55-0d6a3f0a7b11}, control-plane-1: {uuid: 8C0E3B1A-5F3C-4C8E-9D55-0D6A3F0A7B11}}}",
        [
            "lab_spec.nodes.overrides.control-plane-1.uuid: is 8c0e3b1a-5f3c-4c8e-9d55-0d6a3f0a7b11, which the node control-plane-0 has already; another one is right"
        ],
    ),
    (
        "a UUID of nobody",
        "nodes: {overrides: {control-plane-0: {uuid: 00000000-0000-0000-0000-000000000000}, control-plane-1: {uuid: FFFFFFFF-ffff-ffff-ffff-ffffffffffff}}}",
        [
            "lab_spec.nodes.overrides.control-plane-0.uuid: is all zeros, which is nobody's; a UUID is right that no other machine has",
            "lab_spec.nodes.overrides.control-plane-1.uuid: is all ones, which is nobody's; a UUID is right that no other machine has",
        ],
    ),
    (
        "a serial number for many disks",
        "nodes: {workers: {count: 2, disks: [{size: 20GiB, serial: one}]}}",
        [
            "lab_spec.nodes.workers.disks[0].serial: is one, which disk 0 of the node worker-0 has already; another one is right"
        ],
    ),
    (
        "a serial number too long",
        "nodes: {workers: {disks: [{size: 20GiB, serial: a-serial-number-too-long}]}}",
        [
            "lab_spec.nodes.workers.disks[0].serial: is 'a-serial-number-too-long'; 1 to 20 letters, digits, hyphens, underscores are right"
        ],
    ),
    ("no disks", "nodes: {workers: {disks: []}}", ["lab_spec.nodes.workers.disks: has 0 items; 1 to 20 are right"]),
    (
        "a virtio disk that spins",
        "nodes: {workers: {disks: [{size: 20GiB, bus: virtio, rotational: true}]}}",
        ["lab_spec.nodes.workers.disks[0].rotational: cannot be shown by the bus virtio; bus: scsi or sata is right"],
    ),
    (
        "hints without any",
        "nodes: {overrides: {control-plane-0: {root_device_hints: {}}}}",
        [
            "lab_spec.nodes.overrides.control-plane-0.root_device_hints: holds nothing; one of these is right: deviceName, hctl, model, vendor, serialNumber, minSizeGigabytes, wwn, rotational"
        ],
    ),
    (
        "hints by a path that changes",
        "nodes: {overrides: {control-plane-0: {root_device_hints: {deviceName: /dev/disk/by-id/x}}}}",
        [
            "lab_spec.nodes.overrides.control-plane-0.root_device_hints.deviceName: is '/dev/disk/by-id/x'; /dev/<name> or /dev/disk/by-path/<name> is right"
        ],
    ),
]

SIZES = [
    (
        "decimal units",
        "nodes: {workers: {memory: 16GB}}",
        ["lab_spec.nodes.workers.memory: is '16GB'; a size in binary units is right: 16GiB"],
    ),
    (
        "half a unit",
        "nodes: {workers: {memory: 16Gi}}",
        ["lab_spec.nodes.workers.memory: is '16Gi'; a size in binary units is right: 16GiB"],
    ),
    (
        "small letters",
        "nodes: {workers: {memory: 512mib}}",
        ["lab_spec.nodes.workers.memory: is '512mib'; a size in binary units is right: 512MiB"],
    ),
    (
        "no unit",
        "nodes: {workers: {memory: '16'}}",
        ["lab_spec.nodes.workers.memory: is '16'; it lacks a unit: 16GiB or 16MiB would be right"],
    ),
    (
        "a number without a unit",
        "nodes: {workers: {memory: 16384}}",
        ["lab_spec.nodes.workers.memory: is 16384, a number; a size is right, such as 16GiB"],
    ),
    (
        "no size",
        "nodes: {workers: {memory: plenty}}",
        ["lab_spec.nodes.workers.memory: is 'plenty'; a number with KiB, MiB, GiB or TiB is right, such as 16GiB"],
    ),
    (
        "nothing",
        "nodes: {workers: {memory: 0GiB}}",
        ["lab_spec.nodes.workers.memory: is 0GiB; 128MiB to 16TiB are right"],
    ),
    (
        "negative",
        "nodes: {workers: {memory: -1GiB}}",
        ["lab_spec.nodes.workers.memory: is '-1GiB'; a number with KiB, MiB, GiB or TiB is right, such as 16GiB"],
    ),
    (
        "a fraction of a MiB",
        "nodes: {workers: {memory: 1000.5KiB}}",
        ["lab_spec.nodes.workers.memory: is '1000.5KiB'; a whole number of MiB is right, such as 512MiB"],
    ),
    (
        "absurd",
        "nodes: {workers: {disks: [{size: 9999TiB}]}}",
        ["lab_spec.nodes.workers.disks[0].size: is 9999TiB; 16MiB to 64TiB are right"],
    ),
]

STORAGE_POOLS = [
    (
        "a path that is relative",
        "storage_pool: {path: images}",
        ["lab_spec.storage_pool.path: is 'images'; an absolute path is right, such as /srv/labs/demo"],
    ),
    *(
        (
            f"the path {path}",
            f"storage_pool: {{path: {path}}}",
            [
                f"lab_spec.storage_pool.path: is '{path}'; a path with no '.', '..' or needless slash is right, such as /srv/labs/demo"
            ],
        )
        for path in ("/", "/srv/labs/", "//srv/labs", "/srv//labs", "/srv/./labs", "/srv/../labs", "/srv/..")
    ),
    (
        "a path of two lines",
        'storage_pool: {path: "/srv/a\\nb"}',
        ["lab_spec.storage_pool.path: is '/srv/a\\nb'; one line of printable text is right"],
    ),
    (
        "a path that stands alone",
        "storage_pool: /srv/labs/demo",
        ["lab_spec.storage_pool: is '/srv/labs/demo', a text; a mapping is right, with keys such as path"],
    ),
    *(
        (
            f"a directory of the system, {path}",
            f"storage_pool: {{path: {path}}}",
            [
                f"lab_spec.storage_pool.path: is {path}, a directory of the system; one of its own below it is right, such as {right}"
            ],
        )
        for path, right in {
            "/home": "/home/labs/demo",
            "/srv": "/srv/labs/demo",
            "/var/lib/libvirt/images": "/var/lib/libvirt/images/labs/demo",
            "/root": "/root/labs/demo",
            "/var/log": "/var/log/labs/demo",
        }.items()
    ),
    *(
        (
            f"in a tree of others, {path}",
            f"storage_pool: {{path: {path}}}",
            [f"lab_spec.storage_pool.path: is {path}, {where}; one elsewhere is right, such as /srv/labs/demo"],
        )
        for path, where in {
            "/etc": "a directory of the system",
            "/etc/labs": "in /etc, which is of the system",
            "/usr/local/labs": "in /usr, which is of the system",
            "/var/lib/libvirt/qemu/labs": "in /var/lib/libvirt/qemu, which is of the system",
            "/var/lib/nometal": "a directory of nometal.ipi itself",
            "/var/lib/nometal/labs/demo": "in /var/lib/nometal, which is of nometal.ipi itself",
        }.items()
    ),
    (
        "where the media are",
        "storage_pool: {path: /var/lib/libvirt/images/nometal-ha-media}",
        [
            "lab_spec.storage_pool.path: is /var/lib/libvirt/images/nometal-ha-media, where the lab's BMCs have their media; another directory is right, such as /srv/labs/demo"
        ],
    ),
]

INSTALLATION = [
    ("too old", "install: {version: stable-4.8}", ["lab_spec.install.version: is 4.8; 4.9 or later is right"]),
    (
        "a version without quotes",
        "install: {version: 4.20}",
        ["lab_spec.install.version: is 4.2, a number; a version is right, such as stable-4.20"],
    ),
    (
        "no version",
        "install: {version: newest}",
        ["lab_spec.install.version: is 'newest'; a release (4.20.3) or a channel (stable-4.20) is right"],
    ),
    (
        "neither release nor channel",
        "install: {version: '4.19'}",
        ["lab_spec.install.version: is '4.19'; a release (4.19.3) or a channel (stable-4.19) is right"],
    ),
    (
        "a release with more to it",
        "install: {version: 4.19.7+x}",
        ["lab_spec.install.version: is '4.19.7+x'; a release (4.19.7) or a channel (stable-4.19) is right"],
    ),
    (
        "a channel of OKD",
        "install: {distribution: okd}",
        [
            "lab_spec.install.version: is stable-4.20, a channel, and OKD's releases page has none; a release such as 4.20.0-okd-scos.10 is right, or a source that has channels"
        ],
    ),
    (
        "an arbiter too early",
        "install: {version: stable-4.19}\nnodes: {control_plane: {count: 2}, arbiters: {count: 1}}",
        [
            "lab_spec.nodes.arbiters.count: asks for an arbiter, which 4.19 cannot; lab_spec.install.version of 4.20 or later is right"
        ],
    ),
    (
        "fencing too early",
        "install: {version: 4.19.3}\nnodes: {control_plane: {count: 2, fencing: true}}",
        [
            "lab_spec.nodes.control_plane.fencing: asks for fencing, which 4.19 cannot; lab_spec.install.version of 4.20 or later is right"
        ],
    ),
    (
        "a static address too early",
        "install: {version: 4.10.3}\nbootstrap: {address: static}",
        [
            "lab_spec.bootstrap.address: is static, which 4.10 cannot; lab_spec.install.version of 4.11 or later is right"
        ],
    ),
    (
        "two VIPs too early",
        "install: {version: 4.11.3}\nmachine_network: {cidr: 192.168.126.0/24, cidr_v6: 'fd00:1::/64', vips: {api: [192.168.126.5, 'fd00:1::5'], ingress: [192.168.126.6, 'fd00:1::6']}}",
        [
            "lab_spec.machine_network.vips.api: has two addresses, which 4.11 cannot; lab_spec.install.version of 4.12 or later is right",
            "lab_spec.machine_network.vips.ingress: has two addresses, which 4.11 cannot; lab_spec.install.version of 4.12 or later is right",
        ],
    ),
    (
        "network configuration too early",
        "install: {version: 4.9.3}\nnodes: {overrides: {control-plane-0: {network_config: {interfaces: []}}}}",
        [
            "lab_spec.nodes.overrides.control-plane-0.network_config: configures the node's network, which 4.9 cannot; lab_spec.install.version of 4.10 or later is right"
        ],
    ),
    (
        "nodes as for the rehearsal",
        "install: {}\nnodes: {control_plane: {vcpus: 1, memory: 512MiB, disks: [{size: 1GiB}]}}",
        [
            "lab_spec.nodes.control_plane.memory: is too little for OpenShift on control-plane-0; 8GiB or more is right",
            "lab_spec.nodes.control_plane.vcpus: is too little for OpenShift on control-plane-0; 2 or more are right",
            "lab_spec.nodes.control_plane.disks: is too little for OpenShift on control-plane-0; a disk of 20GiB or more is right",
        ],
    ),
    (
        "the pull secret itself",
        "install: {pull_secret_file: '{\"auths\": {}}'}",
        ["lab_spec.install.pull_secret_file: holds the content itself; the path of a file that holds it is right"],
    ),
    (
        "the key itself",
        "install: {ssh_key_file: ssh-ed25519 AAAA me}",
        ["lab_spec.install.ssh_key_file: holds the content itself; the path of a file that holds it is right"],
    ),
    (
        "a pull secret in the configuration",
        "install: {config: {pullSecret: x}}",
        ["lab_spec.install.config.pullSecret: is a secret, and lab_spec holds none; give it by a vaulted variable"],
    ),
    (
        "a password in an address",
        "install: {config: {proxy: {httpsProxy: 'http://me:hidden@proxy.example.test:3128'}}}",
        [
            "lab_spec.install.config.proxy.httpsProxy: holds a secret (a key or a password), and lab_spec holds none; a vaulted variable is right"
        ],
    ),
    (
        "a password in a proxy's address",
        "install: {proxy: {http: 'http://me:hidden@proxy.example.test:3128', https: 'https://:hidden@proxy.example.test'}}",
        [
            "lab_spec.install.proxy.http: holds a secret (a key or a password), and lab_spec holds none; a vaulted variable is right",
            "lab_spec.install.proxy.https: holds a secret (a key or a password), and lab_spec holds none; a vaulted variable is right",
        ],
    ),
    (
        "a proxy of another kind, its password not shown",
        "install: {proxy: {http: 'socks://me:hidden@proxy.example.test'}}",
        [
            "lab_spec.install.proxy.http: is no such URL; one that begins with http:// is right, such as http://proxy.example.test:3128"
        ],
    ),
    (
        "a proxy without a scheme",
        "install: {proxy: {https: proxy.example.test}}",
        [
            "lab_spec.install.proxy.https: is 'proxy.example.test'; one that begins with http:// or https:// is right, such as http://proxy.example.test:3128"
        ],
    ),
    (
        "exceptions from no proxy",
        "install: {proxy: {no_proxy: [.example.test]}}",
        ["lab_spec.install.proxy: names no proxy; http or https is right, or both"],
    ),
    (
        "exceptions in one text",
        "install: {proxy: {http: 'http://proxy.example.test', no_proxy: ['a, b']}}",
        [
            "lab_spec.install.proxy.no_proxy[0]: is 'a, b'; one domain, address or network is right, without comma or space"
        ],
    ),
    (
        "a mirror with a tag",
        "install: {image_mirrors: [{source: 'quay.io/a/b:4.20', mirrors: ['mirror:5000/a']}, {source: 'https://quay.io', mirrors: []}]}",
        [
            "lab_spec.install.image_mirrors[0].source: is 'quay.io/a/b:4.20'; a registry or repository is right, without scheme, tag and digest",
            "lab_spec.install.image_mirrors[1].source: is 'https://quay.io'; a registry or repository is right, without scheme, tag and digest",
            "lab_spec.install.image_mirrors[1].mirrors: has 0 items; 1 to 20 are right",
        ],
    ),
    (
        "a relative directory of tools",
        "install: {source: mirror/clients}",
        [
            "lab_spec.install.source: is 'mirror/clients'; one that begins with http:// or https:// is right, such as https://mirror.example.test/clients or /srv/mirror/clients"
        ],
    ),
    (
        "capabilities and CPU partitioning too early",
        "install: {version: 4.10.3, capabilities: {baseline: vCurrent}, cpu_partitioning: true}",
        [
            "lab_spec.install.capabilities: chooses capabilities, which 4.10 cannot; lab_spec.install.version of 4.11 or later is right",
            "lab_spec.install.cpu_partitioning: asks for CPU partitioning, which 4.10 cannot; lab_spec.install.version of 4.13 or later is right",
        ],
    ),
    (
        "a set of capabilities to come",
        "install: {version: 4.13.3, capabilities: {baseline: v4.14}}",
        [
            "lab_spec.install.capabilities.baseline: is v4.14, which 4.13 has not; None, vCurrent, or v4.11 to v4.13 is right"
        ],
    ),
    (
        "no set of capabilities",
        "install: {capabilities: {baseline: everything, additional: [a b]}}",
        [
            "lab_spec.install.capabilities.baseline: is 'everything'; None, vCurrent or a release such as v4.18 is right",
            "lab_spec.install.capabilities.additional[0]: is 'a b'; the name of a capability is right, such as Console",
        ],
    ),
    (
        "capabilities without which there is no installation",
        "install: {version: 4.15.3, capabilities: {baseline: None, additional: [baremetal]}}",
        [
            "lab_spec.install.capabilities.additional: lacks MachineAPI, which the installation cannot do without; add it, or take another baseline than None"
        ],
    ),
    (
        "fencing without TLS",
        "install: {}\nnodes: {control_plane: {count: 2, fencing: true}}\nbmc: {tls: false}",
        ["lab_spec.bmc.tls: is false, and nodes fence each other by TLS; true is right"],
    ),
    (
        "a key deep in the configuration",
        "install: {config: {a: [{b: '-----BEGIN RSA PRIVATE KEY-----'}]}}",
        [
            "lab_spec.install.config.a[0].b: holds a secret (a key or a password), and lab_spec holds none; a vaulted variable is right"
        ],
    ),
]

TYPES = [
    (
        "a list for a mapping",
        "machine_network: [1]",
        ["lab_spec.machine_network: is a list; a mapping is right, with keys such as cidr, cidr_v6, gateway"],
    ),
    (
        "a text for a mapping",
        "nodes: many",
        ["lab_spec.nodes: is 'many', a text; a mapping is right, with keys such as control_plane, arbiters, workers"],
    ),
    (
        "a mapping for a list",
        "machine_network: {reservations: {a: b}}",
        ["lab_spec.machine_network.reservations: is a mapping; a list is right"],
    ),
    (
        "a text for a list",
        "machine_network: {ntp_servers: 192.168.126.1}",
        ["lab_spec.machine_network.ntp_servers: is '192.168.126.1', a text; a list is right"],
    ),
    (
        "a boolean for a number",
        "nodes: {workers: {count: true}}",
        ["lab_spec.nodes.workers.count: is true, a boolean; a whole number from 0 to 250 is right"],
    ),
    ("a text for a boolean", "bmc: {tls: maybe}", ["lab_spec.bmc.tls: is 'maybe', a text; true or false is right"]),
    (
        "a fraction for a number",
        "nodes: {workers: {count: 2.5}}",
        ["lab_spec.nodes.workers.count: is 2.5, a number; a whole number from 0 to 250 is right"],
    ),
    (
        "nothing in a list that needs something",
        "hypervisors: [null]",
        ["lab_spec.hypervisors[0]: is empty; an inventory name is right, such as hypervisor"],
    ),
    (
        "a disk without a size",
        "nodes: {workers: {count: 1, disks: [{}]}}",
        ["lab_spec.nodes.workers.disks[0].size: is missing; a size is right, such as 16GiB"],
    ),
    (
        "nothing in a list",
        "machine_network: {ntp_servers: [null]}",
        ["lab_spec.machine_network.ntp_servers[0]: is empty; an address is right, such as 192.168.126.1"],
    ),
    (
        "a MAC read as a number",
        "machine_network: {pools: [{mac_prefix: 52:54:00, start: 192.168.126.110, end: 192.168.126.120}]}",
        [
            "lab_spec.machine_network.pools[0].mac_prefix: is 190440, a number; a MAC prefix is right, such as 52:54:00; if 52:54:00 was meant, put it in quotes"
        ],
    ),
    (
        "a date",
        "name: 2026-11-18",
        [
            "lab_spec.name: is 2026-11-18, a date; a name is right, such as ha; if 2026-11-18 was meant, put it in quotes"
        ],
    ),
    ("bytes", "name: !!binary aGE=", ["lab_spec.name: is of the type bytes; a name is right, such as ha"]),
    (
        "not a number",
        "install: {config: {a: .nan}}",
        ["lab_spec.install.config.a: is nan, a number; a text, number, boolean, list or mapping is right"],
    ),
    (
        "a huge number",
        "install: {config: {a: 99999999999999999999}}",
        ["lab_spec.install.config.a: is a huge number; a text, number, boolean, list or mapping is right"],
    ),
    (
        "a key of the free part that is no text",
        "install: {config: {1: a}}",
        ["lab_spec.install.config: has the key 1, which is no text; put it in quotes"],
    ),
    (
        "a key misspelt",
        "machine_network: {gatway: 192.168.126.1}",
        ["lab_spec.machine_network.gatway: is no known key; did you mean gateway?"],
    ),
    (
        "a key unheard of",
        "machine_network: {colour: blue}",
        [
            "lab_spec.machine_network.colour: is no known key; known here: bridge, cidr, cidr_v6, dhcp_pool, dns, forward, gateway, mtu, ntp_servers, pools, reservations, shared_lan, topology, vips"
        ],
    ),
    (
        "a key that is a number",
        "bmc: {8000: x}",
        ["lab_spec.bmc: has the key 8000, which is no text; known here: port, protocol, tls"],
    ),
]

SEVERAL_AT_ONCE = [
    (
        "an unreadable network silences what needs it",
        "machine_network: {cidr: 10.0.0.0, vips: {api: 10.0.0.5, ingress: 10.0.0.5}, mtu: 0}\nbmc: {protocol: ipmi}",
        [
            "lab_spec.machine_network.cidr: is '10.0.0.0'; a network has a prefix length: 10.0.0.0/24",
            "lab_spec.machine_network.mtu: is 0, a number; a whole number from 576 to 9216 is right",
            "lab_spec.bmc.protocol: is ipmi, which boots nodes from a provisioning network; redfish-virtualmedia is right, or a lab_spec.provisioning_network",
        ],
    ),
    (
        "a misspelt network silences what needs it",
        "machine_network: {cidrr: 10.0.0.0/24, vips: {api: 10.0.0.5}}",
        ["lab_spec.machine_network.cidrr: is no known key; did you mean cidr?"],
    ),
    (
        "an unreadable neighbour does not hide the others",
        "machine_network: {reservations: [{name: a, mac: here, ip: 192.168.126.9}, {name: b, mac: '52:54:00:00:00:01', ip: 10.0.0.9}, {name: b, mac: '52:54:00:00:00:01', ip: 192.168.126.8}]}",
        [
            "lab_spec.machine_network.reservations[0].mac: is 'here'; six pairs of hex digits are right, such as 52:54:00:12:34:56",
            "lab_spec.machine_network.reservations[1].ip: is 10.0.0.9, outside the machine network 192.168.126.0/24; 192.168.126.1 to 192.168.126.254 are right",
            "lab_spec.machine_network.reservations[2].name: is b, which lab_spec.machine_network.reservations[1] has already; another one is right",
            "lab_spec.machine_network.reservations[2].mac: is 52:54:00:00:00:01, which the reservation b has already; another one is right",
        ],
    ),
    (
        "an unreadable count does not make strangers of nodes",
        "nodes: {workers: {count: two}, overrides: {worker-1: {memory: 16}}}",
        [
            "lab_spec.nodes.workers.count: is 'two', a text; a whole number from 0 to 250 is right",
            "lab_spec.nodes.overrides.worker-1.memory: is 16, a number; a size is right, such as 16GiB",
        ],
    ),
    (
        "a network too small beside other errors",
        "machine_network: {cidr: 192.168.126.0/28}\nnodes: {workers: {count: 9}}\nbmc: {protocol: ipmi}\ninstall: {version: stable-4.8}",
        [
            "lab_spec.bmc.protocol: is ipmi, which boots nodes from a provisioning network; redfish-virtualmedia is right, or a lab_spec.provisioning_network",
            "lab_spec.install.version: is 4.8; 4.9 or later is right",
            "lab_spec.machine_network.cidr: has room for 14 addresses, and this lab needs 19 (gateway, VIPs, 12 nodes, reservations, DHCP pools); a /27 is right",
        ],
    ),
    (
        "no follow-up to an unreadable override",
        "nodes: {overrides: {control-plane-0: {disks: [], root_device_hints: {deviceName: sda}}}}",
        [
            "lab_spec.nodes.overrides.control-plane-0.disks: has 0 items; 1 to 20 are right",
            "lab_spec.nodes.overrides.control-plane-0.root_device_hints.deviceName: is 'sda'; /dev/<name> or /dev/disk/by-path/<name> is right",
        ],
    ),
]

SHARED_LAN = [
    (
        "a bridge that libvirt makes",
        "machine_network: {shared_lan: true, topology: direct}\nbootstrap: {address: reserved}",
        [
            "lab_spec.machine_network.shared_lan: is true, but libvirt makes the bridge of topology: direct itself; topology: veth is right"
        ],
    ),
    (
        "whatever serves machines that are not the lab's",
        "machine_network: {shared_lan: true, dhcp_pool: {start: 192.168.126.220, end: 192.168.126.239}, pools: [{mac_prefix: '02:00', start: 192.168.126.110, end: 192.168.126.120}]}",
        [
            "lab_spec.machine_network.dhcp_pool: would serve any machine of the shared LAN; leave it out",
            "lab_spec.machine_network.pools[0]: would serve any machine of the shared LAN with a MAC of 02:00; leave it out",
            "lab_spec.bootstrap.address: is pool, which would serve any VM of the shared LAN with a MAC of 52:54:00; reserved or static is right",
        ],
    ),
]

TABLES = {
    "shared LAN": SHARED_LAN,
    "node counts": NODE_COUNTS,
    "names": NAMES,
    "interfaces": INTERFACES,
    "networks": NETWORKS,
    "addresses": ADDRESSES,
    "ranges": RANGES,
    "bootstrap": BOOTSTRAP,
    "provisioning network": PROVISIONING_NETWORK,
    "BMCs": BMCS,
    "nodes": NODES,
    "sizes": SIZES,
    "storage pools": STORAGE_POOLS,
    "installation": INSTALLATION,
    "types": TYPES,
    "several at once": SEVERAL_AT_ONCE,
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(text, expected, id=f"{theme}: {what}")
        for theme, table in TABLES.items()
        for what, text, expected in table
    ],
)
def test_refuses(text: str, expected: list[str]) -> None:
    assert errors_of(spec_of(text)) == expected


def test_every_theme_tells_its_cases_apart() -> None:
    for table in TABLES.values():
        assert len({what for what, _text, _expected in table}) == len(table)
