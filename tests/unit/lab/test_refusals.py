# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that a lab_spec is refused for: keys and codes here, the wording in messages.txt."""
# ruff: noqa: E501 - specifications in one line each

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import golden
from unit.lab.samples import TREE, findings_of, spec_of

from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import ROOT
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.variables import with_variables

MESSAGES = Path(__file__).parent / "messages.txt"
HEAD = """\
# The wording of all errors in a lab_spec: the case of test_refusals.py, then code and message of each error.
# To write it anew, after a change that is meant: NOMETAL_UPDATE_GOLDEN=1 pytest tests/unit/lab/test_refusals.py
"""
UTILS = TREE / "plugins/module_utils"
REPORTING = ("Finding", "add", "add_unknown", "duplicates")
"""Calls whose first argument is a code."""

NODE_COUNTS = [
    (
        "one control plane node",
        "nodes: {control_plane: {count: 1}}\ninstall: {}",
        ["nodes.control_plane.count: nodes.control-plane-count"],
    ),
    (
        "none",
        "nodes: {control_plane: {count: 0}, workers: {count: 3}}\ninstall: {}",
        ["nodes.control_plane.count: nodes.control-plane-count"],
    ),
    (
        "two without an arbiter",
        "nodes: {control_plane: {count: 2}}\ninstall: {}",
        ["nodes.control_plane.count: nodes.control-plane-count"],
    ),
    (
        "two arbiters",
        "nodes: {control_plane: {count: 2}, arbiters: {count: 2}}\ninstall: {}",
        ["nodes.arbiters.count: nodes.arbiters"],
    ),
    (
        "an arbiter too many",
        "nodes: {arbiters: {count: 1}}\ninstall: {}",
        ["nodes.arbiters.count: nodes.arbiter-unused"],
    ),
    (
        "fencing of three",
        "nodes: {control_plane: {fencing: true}}\ninstall: {}",
        ["nodes.control_plane.fencing: nodes.fencing-unused"],
    ),
    (
        "fencing and an arbiter",
        "nodes: {control_plane: {count: 2, fencing: true}, arbiters: {count: 1}}\ninstall: {}",
        ["nodes.control_plane.fencing: nodes.fencing-and-arbiter"],
    ),
    (
        "no node at all",
        "nodes: {control_plane: {count: 0}}",
        ["nodes: nodes.none"],
    ),
    (
        "negative count",
        "nodes: {workers: {count: -1}}",
        ["nodes.workers.count: schema.number"],
    ),
    (
        "absurd count",
        "nodes: {workers: {count: 100000}}",
        ["nodes.workers.count: schema.number"],
    ),
]

NAMES = [
    (
        "capital letters",
        "name: Ha",
        ["name: schema.value"],
    ),
    (
        "a dot",
        "name: ha.one",
        ["name: schema.value"],
    ),
    (
        "too long",
        "name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        ["name: schema.value"],
    ),
    ("no name", "name:", ["name: schema.missing"]),
    (
        "a domain with a space",
        "base_domain: lab example",
        ["base_domain: schema.value"],
    ),
    (
        "a domain too long",
        "base_domain: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        ["base_domain: dns.domain-too-long"],
    ),
    (
        "a reservation called like a node",
        "machine_network: {reservations: [{name: worker-0, mac: '52:54:00:00:00:01', ip: 192.168.126.9}]}\nnodes: {workers: {count: 1}}",
        ["machine_network.reservations[0].name: unique.host-name"],
    ),
    (
        "a reservation called api",
        "machine_network: {reservations: [{name: api, mac: '52:54:00:00:00:01', ip: 192.168.126.9}]}",
        ["machine_network.reservations[0].name: unique.host-name"],
    ),
    (
        "two reservations of one name",
        "machine_network: {reservations: [{name: a, mac: '52:54:00:00:00:01', ip: 192.168.126.9}, {name: a, mac: '52:54:00:00:00:02', ip: 192.168.126.8}]}",
        ["machine_network.reservations[1].name: unique.host-name"],
    ),
    (
        "a record of the lab's own",
        "machine_network: {dns: {records: {api: {addresses: [192.0.2.1]}}}}",
        ["machine_network.dns.records.api: dns.name-used"],
    ),
    (
        "an empty record",
        "machine_network: {dns: {records: {mirror: }}}",
        ["machine_network.dns.records.mirror: schema.empty"],
    ),
    (
        "a service in the wrong place",
        "machine_network: {dns: {records: {mirror: {srv: [{target: a.example.test, port: 1}]}}}}",
        ["machine_network.dns.records.mirror.srv: dns.service-name"],
    ),
    (
        "text below an asterisk",
        "machine_network: {dns: {records: {'*.a.test': {txt: [hello]}}}}",
        ["machine_network.dns.records.*.a.test: dns.wildcard"],
    ),
    (
        "a time server out of reach",
        "machine_network: {ntp_servers: ['fd00::1']}",
        ["machine_network.ntp_servers: network.ntp-family"],
    ),
    (
        "DNS that asks itself",
        "machine_network: {dns: {forwarders: [192.168.126.1]}}",
        ["machine_network.dns.forwarders: dns.forwards-to-itself"],
    ),
]

INTERFACES = [
    (
        "a bridge name too long",
        "machine_network: {bridge: baremetal-of-the-lab}",
        ["machine_network.bridge: schema.value"],
    ),
    (
        "a bridge name with a slash",
        "machine_network: {bridge: bare/metal}",
        ["machine_network.bridge: schema.value"],
    ),
    (
        "one bridge for two networks",
        "machine_network: {bridge: provisioning}\nprovisioning_network: {}",
        ["provisioning_network.bridge: unique.interface"],
    ),
    (
        "the lab's own bridge",
        "machine_network: {bridge: nm-ha}",
        ["machine_network.bridge: unique.interface"],
    ),
    (
        "an MTU of nothing",
        "machine_network: {mtu: 0}",
        ["machine_network.mtu: schema.number"],
    ),
    (
        "an MTU too small for IPv6",
        "machine_network: {cidr_v6: 'fd00:1::/64', mtu: 1000}",
        ["machine_network.mtu: network.mtu"],
    ),
]

NETWORKS = [
    (
        "host bits",
        "machine_network: {cidr: 192.168.126.5/24}",
        ["machine_network.cidr: schema.value"],
    ),
    (
        "no prefix length",
        "machine_network: {cidr: 192.168.126.0}",
        ["machine_network.cidr: schema.value"],
    ),
    (
        "no network",
        "machine_network: {cidr: my network}",
        ["machine_network.cidr: schema.value"],
    ),
    (
        "IPv6 in the wrong key",
        "machine_network: {cidr: 'fd00:1::/64'}",
        ["machine_network.cidr: schema.value"],
    ),
    (
        "IPv4 in the wrong key",
        "machine_network: {cidr_v6: 192.168.126.0/24}",
        ["machine_network.cidr_v6: schema.value"],
    ),
    (
        "loopback",
        "machine_network: {cidr: 127.0.0.0/24}",
        ["machine_network.cidr: schema.value"],
    ),
    (
        "too large",
        "machine_network: {cidr: 0.0.0.0/0}",
        ["machine_network.cidr: schema.value"],
    ),
    (
        "IPv6 too large for dnsmasq",
        "machine_network: {cidr_v6: 'fd00:1::/48'}",
        ["machine_network.cidr_v6: schema.value"],
    ),
    (
        "too few addresses for any lab",
        "machine_network: {cidr: 192.168.126.0/30}",
        ["machine_network.cidr: schema.value"],
    ),
    (
        "too small for the nodes",
        "machine_network: {cidr: 192.168.126.0/28}\nnodes: {workers: {count: 20}}",
        ["machine_network.cidr: network.too-small"],
    ),
    (
        "no addresses left beside the pinned ones",
        "machine_network: {cidr: 192.168.126.0/28, gateway: 192.168.126.14, vips: {api: 192.168.126.2, ingress: 192.168.126.12}}\nnodes: {workers: {count: 1}, overrides: {control-plane-0: {ip: 192.168.126.4}, control-plane-1: {ip: 192.168.126.6}, control-plane-2: {ip: 192.168.126.8}, worker-0: {ip: 192.168.126.10}}}",
        ["machine_network.cidr: network.too-small"],
    ),
    (
        "the cluster's pod network",
        "machine_network: {cidr: 10.128.0.0/16}",
        ["machine_network.cidr: network.overlaps-cluster"],
    ),
    (
        "the service network of the installation",
        "machine_network: {cidr: 10.1.0.0/16}\ninstall: {config: {networking: {serviceNetwork: [10.1.0.0/24]}}}",
        ["machine_network.cidr: network.overlaps-cluster"],
    ),
]

ADDRESSES = [
    (
        "a VIP outside",
        "machine_network: {vips: {api: 10.0.0.5}}",
        ["machine_network.vips.api: address.outside"],
    ),
    (
        "a VIP in the DHCP pool",
        "machine_network: {vips: {api: 192.168.126.102}, dhcp_pool: {start: 192.168.126.100, end: 192.168.126.110}}",
        ["machine_network.vips.api: address.in-range"],
    ),
    (
        "a VIP that is reserved",
        "machine_network: {vips: {api: 192.168.126.9}, reservations: [{name: a, mac: '52:54:00:00:00:01', ip: 192.168.126.9}]}",
        ["machine_network.reservations[0].ip: address.used"],
    ),
    (
        "a VIP that is a node's",
        "machine_network: {vips: {ingress: 192.168.126.50}}\nnodes: {overrides: {control-plane-0: {ip: 192.168.126.50}}}",
        ["nodes.overrides.control-plane-0.ip: address.used"],
    ),
    (
        "one VIP for both",
        "machine_network: {vips: {api: 192.168.126.9, ingress: 192.168.126.9}}",
        ["machine_network.vips.ingress: address.used"],
    ),
    (
        "a VIP that is the gateway",
        "machine_network: {vips: {api: 192.168.126.1}}",
        ["machine_network.vips.api: address.used"],
    ),
    (
        "a VIP that is the network",
        "machine_network: {vips: {api: 192.168.126.0}}",
        ["machine_network.vips.api: address.outside"],
    ),
    (
        "a VIP that is the broadcast address",
        "machine_network: {vips: {api: 192.168.126.255}}",
        ["machine_network.vips.api: address.outside"],
    ),
    (
        "IPv6 first in a lab that has IPv4",
        "machine_network: {cidr: 192.168.126.0/24, cidr_v6: 'fd00:1::/64', vips: {api: ['fd00:1::5', 192.168.126.5], ingress: [192.168.126.6, 'fd00:1::6']}}",
        ["machine_network.vips.api: vips.order"],
    ),
    (
        "VIPs that do not match",
        "machine_network: {cidr: 192.168.126.0/24, cidr_v6: 'fd00:1::/64', vips: {api: 192.168.126.5, ingress: [192.168.126.6, 'fd00:1::6']}}",
        ["machine_network.vips.ingress: vips.number"],
    ),
    (
        "two VIPs of one family",
        "machine_network: {vips: {api: [192.168.126.5, 192.168.126.6]}}",
        ["machine_network.vips.api: schema.family-twice"],
    ),
    (
        "IPv6 in a lab without",
        "machine_network: {vips: {api: ['192.168.126.5', 'fd00:1::5'], ingress: [192.168.126.6, 'fd00:1::6']}}",
        ["machine_network.vips.api[1]: address.family", "machine_network.vips.ingress[1]: address.family"],
    ),
    (
        "a gateway outside",
        "machine_network: {gateway: 10.0.0.1}",
        ["machine_network.gateway: address.outside"],
    ),
    (
        "no address",
        "machine_network: {vips: {api: here}}",
        ["machine_network.vips.api: schema.value"],
    ),
    (
        "a multicast address",
        "machine_network: {vips: {api: 224.0.0.1}}",
        ["machine_network.vips.api: schema.value"],
    ),
    (
        "a reservation outside",
        "machine_network: {reservations: [{name: a, mac: '52:54:00:00:00:01', ip: 10.0.0.9}]}",
        ["machine_network.reservations[0].ip: address.outside"],
    ),
    (
        "a node in a pool",
        "machine_network: {pools: [{mac_prefix: '52:54:00', start: 192.168.126.10, end: 192.168.126.17}]}\nnodes: {overrides: {control-plane-1: {ip: 192.168.126.12}}}",
        ["nodes.overrides.control-plane-1.ip: address.in-range"],
    ),
]

RANGES = [
    (
        "backwards",
        "machine_network: {dhcp_pool: {start: 192.168.126.110, end: 192.168.126.100}}",
        ["machine_network.dhcp_pool: range.invalid"],
    ),
    (
        "of two families",
        "machine_network: {cidr: 192.168.126.0/24, cidr_v6: 'fd00:1::/64', dhcp_pool: {start: 192.168.126.110, end: 'fd00:1::9'}}",
        ["machine_network.dhcp_pool: range.invalid"],
    ),
    (
        "outside",
        "machine_network: {dhcp_pool: {start: 192.168.126.250, end: 192.168.127.5}}",
        ["machine_network.dhcp_pool.end: address.outside"],
    ),
    (
        "too small",
        "machine_network: {dhcp_pool: {start: 192.168.126.100, end: 192.168.126.100}}",
        ["machine_network.dhcp_pool: range.size"],
    ),
    (
        "too large",
        "machine_network: {cidr: 172.16.0.0/13, dhcp_pool: {start: 172.17.0.0, end: 172.18.0.0}}",
        ["machine_network.dhcp_pool: range.size"],
    ),
    (
        "around the gateway",
        "machine_network: {gateway: 192.168.126.105, dhcp_pool: {start: 192.168.126.100, end: 192.168.126.110}}",
        ["machine_network.dhcp_pool: range.has-gateway"],
    ),
    (
        "overlapping",
        "machine_network: {dhcp_pool: {start: 192.168.126.100, end: 192.168.126.110}, pools: [{mac_prefix: '52:54:00', start: 192.168.126.110, end: 192.168.126.120}]}",
        ["machine_network.pools[0]: range.overlaps"],
    ),
    (
        "without an end",
        "machine_network: {dhcp_pool: {start: 192.168.126.100}}",
        ["machine_network.dhcp_pool.end: schema.missing"],
    ),
    (
        "a prefix twice",
        "machine_network: {pools: [{mac_prefix: '52:54:00', start: 192.168.126.110, end: 192.168.126.120}, {mac_prefix: '52:54', start: 192.168.126.130, end: 192.168.126.131}]}",
        ["machine_network.pools[1].mac_prefix: pools.prefix-overlaps"],
    ),
    (
        "a prefix inside the bootstrap VM's",
        "machine_network: {pools: [{mac_prefix: '52:54:00:aa', start: 192.168.126.110, end: 192.168.126.120}]}",
        ["machine_network.pools[0].mac_prefix: pools.prefix-overlaps"],
    ),
    (
        "a route through the outside",
        "machine_network: {pools: [{mac_prefix: '52:54:00', start: 192.168.126.110, end: 192.168.126.120, static_routes: [{to: 10.0.0.0/19, via: 10.0.0.1}]}]}",
        ["machine_network.pools[0].static_routes[0].via: address.outside"],
    ),
    (
        "a route with host bits",
        "machine_network: {pools: [{mac_prefix: '52:54:00', start: 192.168.126.110, end: 192.168.126.120, static_routes: [{to: 10.0.0.1/19, via: 192.168.126.2}]}]}",
        ["machine_network.pools[0].static_routes[0].to: schema.value"],
    ),
    (
        "a route of IPv6",
        "machine_network: {pools: [{mac_prefix: '52:54:00', start: 192.168.126.110, end: 192.168.126.120, static_routes: [{to: 'fd00::/64', via: 192.168.126.2}]}]}",
        ["machine_network.pools[0].static_routes[0]: pools.route-family"],
    ),
]

BOOTSTRAP = [
    (
        "an address from the pool",
        "bootstrap: {address: pool, ip: 192.168.126.9}",
        ["bootstrap.ip: bootstrap.unused"],
    ),
    (
        "a MAC with a static address",
        "bootstrap: {address: static, mac: '52:54:00:00:00:01'}",
        ["bootstrap.mac: bootstrap.unused"],
    ),
    (
        "a gateway for a reserved address",
        "bootstrap: {address: reserved, gateway: 192.168.126.1}",
        ["bootstrap.gateway: bootstrap.unused"],
    ),
    (
        "a static address that is the API VIP",
        "machine_network: {vips: {api: 192.168.126.5}}\nbootstrap: {address: static, ip: 192.168.126.5}",
        ["bootstrap.ip: address.used"],
    ),
    (
        "a static address outside",
        "bootstrap: {address: static, ip: 10.0.0.5}",
        ["bootstrap.ip: address.outside"],
    ),
    (
        "a static gateway outside",
        "bootstrap: {address: static, gateway: 10.0.0.1}",
        ["bootstrap.gateway: address.outside"],
    ),
    (
        "a static address of the wrong family",
        "machine_network: {cidr: 192.168.126.0/24, cidr_v6: 'fd00:1::/64'}\nbootstrap: {address: static, ip: 'fd00:1::9'}",
        ["bootstrap.ip: bootstrap.family"],
    ),
    (
        "a static DNS server of the wrong family",
        "bootstrap: {address: static, dns: 'fd00:1::9'}",
        ["bootstrap.dns: bootstrap.family"],
    ),
]

PROVISIONING_NETWORK = [
    (
        "over the machine network",
        "provisioning_network: {cidr: 192.168.0.0/16}",
        ["provisioning_network.cidr: provisioning.overlaps-machine-network"],
    ),
    (
        "over the cluster's services",
        "provisioning_network: {cidr: 172.30.0.0/24}",
        ["provisioning_network.cidr: network.overlaps-cluster"],
    ),
    (
        "an address outside",
        "provisioning_network: {host_ip: 172.23.0.1}",
        ["provisioning_network.host_ip: address.outside"],
    ),
    (
        "one address for two",
        "provisioning_network: {bootstrap_ip: 172.22.0.1}",
        ["provisioning_network.bootstrap_ip: provisioning.address-used"],
    ),
    (
        "an address in the range",
        "provisioning_network: {host_ip: 172.22.0.100}",
        ["provisioning_network.host_ip: address.in-range"],
    ),
    (
        "a range outside",
        "provisioning_network: {dhcp_range: {start: 172.23.0.10, end: 172.23.0.20}}",
        [
            "provisioning_network.dhcp_range.start: address.outside",
            "provisioning_network.dhcp_range.end: address.outside",
        ],
    ),
    (
        "a range backwards",
        "provisioning_network: {dhcp_range: {start: 172.22.0.20, end: 172.22.0.10}}",
        ["provisioning_network.dhcp_range: provisioning.no-range"],
    ),
    (
        "a range too small for the nodes",
        "provisioning_network: {dhcp_range: {start: 172.22.0.10, end: 172.22.0.11}}",
        ["provisioning_network.dhcp_range: range.size"],
    ),
    (
        "a network too small for the nodes",
        "provisioning_network: {cidr: 172.22.0.0/29}\nnodes: {workers: {count: 5}}",
        ["provisioning_network.dhcp_range: range.size"],
    ),
    (
        "a range that is not served",
        "provisioning_network: {mode: unmanaged, dhcp_range: {start: 172.22.0.10, end: 172.22.0.60}}",
        ["provisioning_network.dhcp_range: provisioning.range-unused"],
    ),
]

BMCS = [
    (
        "PXE by Redfish without its network",
        "bmc: {protocol: redfish}",
        ["bmc.protocol: bmc.needs-provisioning-network"],
    ),
    (
        "IPMI without its network",
        "bmc: {protocol: ipmi}",
        ["bmc.protocol: bmc.needs-provisioning-network"],
    ),
    (
        "IPMI with TLS",
        "provisioning_network: {}\nbmc: {protocol: ipmi, tls: true}",
        ["bmc.tls: bmc.ipmi-tls"],
    ),
    (
        "IPMI with secure boot",
        "provisioning_network: {}\nbmc: {protocol: ipmi}\nfirmware: uefi-secure",
        ["firmware: bmc.ipmi-secure-boot"],
    ),
    (
        "IPMI with secure boot of one node",
        "provisioning_network: {}\nbmc: {protocol: ipmi}\nnodes: {overrides: {control-plane-0: {firmware: uefi-secure}}}",
        ["nodes.overrides.control-plane-0.firmware: bmc.ipmi-secure-boot"],
    ),
    (
        "IPMI with fencing",
        "provisioning_network: {}\nbmc: {protocol: ipmi}\nnodes: {control_plane: {count: 2, fencing: true}}",
        ["nodes.control_plane.fencing: bmc.ipmi-fencing"],
    ),
    (
        "two on one port",
        "provisioning_network: {}\nbmc: {protocol: ipmi}\nnodes: {overrides: {control-plane-0: {bmc_port: 6231}}}",
        ["nodes.overrides.control-plane-0.bmc_port: bmc.port-used"],
    ),
    (
        "ports beyond the last",
        "provisioning_network: {}\nbmc: {protocol: ipmi, port: 65534}",
        ["bmc.port: bmc.port-too-high"],
    ),
    (
        "a port of its own by Redfish",
        "nodes: {overrides: {control-plane-0: {bmc_port: 6231}}}",
        ["nodes.overrides.control-plane-0.bmc_port: nodes.bmc-port-unused"],
    ),
    (
        "a client that is this machine",
        "bmc: {clients: [127.0.0.0/8]}",
        ["bmc.clients[0]: bmc.client"],
    ),
    (
        "clients of the other family",
        "bmc: {clients: [198.51.100.0/24, 'fd00:9::/64']}",
        ["bmc.clients[1]: bmc.client-family"],
    ),
    (
        "clients in the lab",
        "bmc: {clients: [192.168.126.128/25]}\nprovisioning_network: {}",
        ["bmc.clients[0]: bmc.client-of-lab"],
    ),
    (
        "everybody is a client",
        "bmc: {clients: [0.0.0.0/0]}",
        ["bmc.clients[0]: bmc.client-of-lab"],
    ),
    (
        "clients in the provisioning network",
        "bmc: {clients: [172.22.0.0/25]}\nprovisioning_network: {}",
        ["bmc.clients[0]: bmc.client-of-lab"],
    ),
    (
        "a client twice",
        "bmc: {clients: [198.51.100.0/24, 198.51.100.7/32]}",
        ["bmc.clients[1]: bmc.client-twice"],
    ),
    (
        "a fault that IPMI does not have",
        "provisioning_network: {}\nbmc: {protocol: ipmi, faults: {rules: [{fault: media-failed}, {fault: boot-ignored}]}}",
        ["bmc.faults.rules[0].fault: bmc.ipmi-fault"],
    ),
    (
        "a fault of some paths with IPMI",
        "provisioning_network: {}\nbmc: {protocol: ipmi, faults: {rules: [{fault: status, status: 503, path: /x}]}}",
        ["bmc.faults.rules[0]: bmc.ipmi-fault-limits"],
    ),
    (
        "a fault of a node that is not there",
        "bmc: {faults: {rules: [{fault: reboot, seconds: 1, nodes: [worker-7]}]}}",
        ["bmc.faults.rules[0].nodes: bmc.fault-node"],
    ),
    (
        "a fault that lacks what it needs",
        "bmc: {faults: {rules: [{fault: status}]}}",
        ["bmc.faults.rules[0].status: schema.value"],
    ),
    (
        "a fault with what is not its own",
        "bmc: {faults: {rules: [{fault: status, status: 503, seconds: 1}]}}",
        ["bmc.faults.rules[0].seconds: schema.value"],
    ),
    (
        "a path for a fault that chooses its requests",
        "bmc: {faults: {rules: [{fault: boot-ignored, path: '*/Systems/*'}]}}",
        ["bmc.faults.rules[0].path: schema.value"],
    ),
    (
        "nodes for a fault of connections",
        "bmc: {faults: {rules: [{fault: connection-refused, nodes: [worker-0]}]}}",
        ["bmc.faults.rules[0].nodes: schema.value"],
    ),
    (
        "a relative path of a fault",
        "bmc: {faults: {rules: [{fault: status, status: 503, path: Systems}]}}",
        ["bmc.faults.rules[0].path: schema.value"],
    ),
    (
        "a privileged port",
        "bmc: {port: 443}",
        ["bmc.port: schema.number"],
    ),
    (
        "a protocol misspelt",
        "bmc: {protocol: redfish-virtual-media}",
        ["bmc.protocol: schema.choice"],
    ),
]

NODES = [
    (
        "a number left out of the control plane",
        "nodes: {overrides: {control-plane-0: {remove: true}, worker-x: {remove: true}}}",
        [
            "nodes.overrides.control-plane-0.remove: nodes.remove",
            "nodes.overrides.worker-x.remove: nodes.remove",
        ],
    ),
    (
        "a number left out that is written in another way",
        "nodes: {workers: {count: 1}, overrides: {worker-00: {remove: true}}}",
        ["nodes.overrides.worker-00: nodes.unknown"],
    ),
    (
        "a number left out that no node would have",
        "nodes: {workers: {count: 2}, overrides: {worker-0: {remove: true}, worker-9: {remove: true}}}",
        ["nodes.overrides.worker-9.remove: nodes.remove-unused"],
    ),
    (
        "a number left out of a role without nodes",
        "nodes: {workers: {count: 2}, overrides: {spare-0: {remove: true}}}",
        ["nodes.overrides.spare-0.remove: nodes.remove-unused"],
    ),
    (
        "an override of an unknown node",
        "nodes: {overrides: {worker-0: {memory: 8GiB}}}",
        ["nodes.overrides.worker-0: nodes.unknown"],
    ),
    (
        "an override misspelt",
        "nodes: {overrides: {control-plan-0: {memory: 8GiB}}}",
        ["nodes.overrides.control-plan-0: nodes.unknown"],
    ),
    (
        "a hypervisor that is not there",
        "nodes: {overrides: {control-plane-0: {hypervisor: other}}}",
        ["nodes.overrides.control-plane-0.hypervisor: nodes.hypervisor"],
    ),
    (
        "a hypervisor of no name",
        "hypervisors: [my host]",
        ["hypervisors[0]: schema.value"],
    ),
    ("hypervisors twice", "hypervisors: [a, a]", ["hypervisors: hypervisors.twice"]),
    ("two hypervisors", "hypervisors: [a, b]", ["hypervisors: hypervisors.several"]),
    ("no hypervisors", "hypervisors: []", ["hypervisors: schema.items"]),
    (
        "a MAC in a network that is not there",
        "nodes: {overrides: {control-plane-0: {provisioning_mac: '52:54:00:00:00:01'}}}",
        ["nodes.overrides.control-plane-0.provisioning_mac: nodes.provisioning-mac-unused"],
    ),
    (
        "a MAC twice",
        "nodes: {overrides: {control-plane-0: {mac: '52:54:00:00:00:01'}, control-plane-1: {mac: '52:54:00:00:00:01'}}}",
        ["nodes.overrides.control-plane-1.mac: unique.mac"],
    ),
    (
        "a MAC that is a reservation's",
        "machine_network: {reservations: [{name: a, mac: '52:54:00:00:00:01', ip: 192.168.126.9}]}\nnodes: {overrides: {control-plane-0: {mac: '52:54:00:00:00:01'}}}",
        ["machine_network.reservations[0].mac: unique.mac"],
    ),
    (
        "a MAC derived for another node",
        "nodes: {overrides: {control-plane-0: {mac: '52:54:00:4a:96:7a'}}}",
        ["nodes.overrides.control-plane-0.mac: unique.mac"],
    ),
    (
        "a multicast MAC",
        "nodes: {overrides: {control-plane-0: {mac: '53:54:00:00:00:01'}}}",
        ["nodes.overrides.control-plane-0.mac: schema.value"],
    ),
    (
        "no MAC",
        "nodes: {overrides: {control-plane-0: {mac: '52-54-00-00-00-01'}}}",
        ["nodes.overrides.control-plane-0.mac: schema.value"],
    ),
    (
        "a MAC that is not valid",
        "nodes: {overrides: {control-plane-0: {mac: '00:00:00:00:00:00'}}}",
        ["nodes.overrides.control-plane-0.mac: schema.value"],
    ),
    (
        "a UUID twice",
        "nodes: {overrides: {control-plane-0: {uuid: 8c0e3b1a-5f3c-4c8e-9d55-0d6a3f0a7b11}, control-plane-1: {uuid: 8C0E3B1A-5F3C-4C8E-9D55-0D6A3F0A7B11}}}",
        ["nodes.overrides.control-plane-1.uuid: unique.uuid"],
    ),
    (
        "a UUID that is not valid",
        "nodes: {overrides: {control-plane-0: {uuid: 00000000-0000-0000-0000-000000000000}, control-plane-1: {uuid: FFFFFFFF-ffff-ffff-ffff-ffffffffffff}}}",
        ["nodes.overrides.control-plane-0.uuid: schema.value", "nodes.overrides.control-plane-1.uuid: schema.value"],
    ),
    (
        "a serial number for many disks",
        "nodes: {workers: {count: 2, disks: [{size: 20GiB, serial: one}]}}",
        ["nodes.workers.disks[0].serial: unique.serial"],
    ),
    (
        "a serial number too long",
        "nodes: {workers: {disks: [{size: 20GiB, serial: a-serial-number-too-long}]}}",
        ["nodes.workers.disks[0].serial: schema.value"],
    ),
    ("no disks", "nodes: {workers: {disks: []}}", ["nodes.workers.disks: schema.items"]),
    (
        "a virtio disk that spins",
        "nodes: {workers: {disks: [{size: 20GiB, bus: virtio, rotational: true}]}}",
        ["nodes.workers.disks[0].rotational: disks.rotational"],
    ),
    (
        "hints without any",
        "nodes: {overrides: {control-plane-0: {root_device_hints: {}}}}",
        ["nodes.overrides.control-plane-0.root_device_hints: schema.empty"],
    ),
    (
        "hints by a path that changes",
        "nodes: {overrides: {control-plane-0: {root_device_hints: {deviceName: /dev/disk/by-id/x}}}}",
        ["nodes.overrides.control-plane-0.root_device_hints.deviceName: schema.value"],
    ),
]

SIZES = [
    (
        "decimal units",
        "nodes: {workers: {memory: 16GB}}",
        ["nodes.workers.memory: schema.value"],
    ),
    (
        "half a unit",
        "nodes: {workers: {memory: 16Gi}}",
        ["nodes.workers.memory: schema.value"],
    ),
    (
        "small letters",
        "nodes: {workers: {memory: 512mib}}",
        ["nodes.workers.memory: schema.value"],
    ),
    (
        "no unit",
        "nodes: {workers: {memory: '16'}}",
        ["nodes.workers.memory: schema.value"],
    ),
    (
        "a number without a unit",
        "nodes: {workers: {memory: 16384}}",
        ["nodes.workers.memory: schema.text"],
    ),
    (
        "no size",
        "nodes: {workers: {memory: plenty}}",
        ["nodes.workers.memory: schema.value"],
    ),
    (
        "nothing",
        "nodes: {workers: {memory: 0GiB}}",
        ["nodes.workers.memory: schema.value"],
    ),
    (
        "negative",
        "nodes: {workers: {memory: -1GiB}}",
        ["nodes.workers.memory: schema.value"],
    ),
    (
        "a fraction of a MiB",
        "nodes: {workers: {memory: 1000.5KiB}}",
        ["nodes.workers.memory: schema.value"],
    ),
    (
        "absurd",
        "nodes: {workers: {disks: [{size: 9999TiB}]}}",
        ["nodes.workers.disks[0].size: schema.value"],
    ),
]

STORAGE_POOLS = [
    (
        "a path that is relative",
        "storage_pool: {path: images}",
        ["storage_pool.path: schema.value"],
    ),
    *(
        (
            f"the path {path}",
            f"storage_pool: {{path: {path}}}",
            ["storage_pool.path: schema.value"],
        )
        for path in ("/", "/srv/labs/", "//srv/labs", "/srv//labs", "/srv/./labs", "/srv/../labs", "/srv/..")
    ),
    (
        "a path of two lines",
        'storage_pool: {path: "/srv/a\\nb"}',
        ["storage_pool.path: schema.value"],
    ),
    (
        "a path that stands alone",
        "storage_pool: /srv/labs/demo",
        ["storage_pool: schema.mapping"],
    ),
    *(
        (
            f"a directory of the system, {path}",
            f"storage_pool: {{path: {path}}}",
            ["storage_pool.path: storage.system-directory"],
        )
        for path in ("/home", "/srv", "/var/lib/libvirt/images", "/root", "/var/log")
    ),
    *(
        (
            f"in a tree of others, {path}",
            f"storage_pool: {{path: {path}}}",
            ["storage_pool.path: storage.system-directory"],
        )
        for path in (
            *("/etc", "/etc/labs", "/usr/local/labs", "/var/lib/libvirt/qemu/labs"),
            *("/var/lib/nometal", "/var/lib/nometal/labs/demo"),
        )
    ),
    (
        "where the media are",
        "storage_pool: {path: /var/lib/libvirt/images/nometal-ha-media}",
        ["storage_pool.path: storage.media-directory"],
    ),
]

INSTALLATION = [
    ("too old", "install: {version: stable-4.8}", ["install.version: install.release-too-old"]),
    (
        "a version without quotes",
        "install: {version: 4.20}",
        ["install.version: schema.text"],
    ),
    (
        "no version",
        "install: {version: newest}",
        ["install.version: schema.value"],
    ),
    (
        "neither release nor channel",
        "install: {version: '4.19'}",
        ["install.version: schema.value"],
    ),
    (
        "a release with more to it",
        "install: {version: 4.19.7+x}",
        ["install.version: schema.value"],
    ),
    (
        "a channel of OKD",
        "install: {distribution: okd}",
        ["install.version: install.okd-channel"],
    ),
    (
        "an arbiter too early",
        "install: {version: stable-4.18}\nnodes: {control_plane: {count: 2}, arbiters: {count: 1}}",
        ["nodes.arbiters.count: install.not-in-release"],
    ),
    (
        "fencing too early",
        "install: {version: 4.18.3}\nnodes: {control_plane: {count: 2, fencing: true}}",
        ["nodes.control_plane.fencing: install.not-in-release"],
    ),
    (
        "a static address too early",
        "install: {version: 4.10.3}\nbootstrap: {address: static}",
        ["bootstrap.address: install.not-in-release"],
    ),
    (
        "two VIPs too early",
        "install: {version: 4.11.3}\nmachine_network: {cidr: 192.168.126.0/24, cidr_v6: 'fd00:1::/64', vips: {api: [192.168.126.5, 'fd00:1::5'], ingress: [192.168.126.6, 'fd00:1::6']}}",
        ["machine_network.vips.api: install.not-in-release", "machine_network.vips.ingress: install.not-in-release"],
    ),
    (
        "network configuration too early",
        "install: {version: 4.9.3}\nnodes: {overrides: {control-plane-0: {network_config: {interfaces: []}}}}",
        ["nodes.overrides.control-plane-0.network_config: install.not-in-release"],
    ),
    (
        "nodes as for the rehearsal",
        "install: {}\nnodes: {control_plane: {vcpus: 1, memory: 512MiB, disks: [{size: 1GiB}]}}",
        [
            "nodes.control_plane.memory: install.memory",
            "nodes.control_plane.vcpus: install.vcpus",
            "nodes.control_plane.disks: install.disk",
        ],
    ),
    (
        "the pull secret itself",
        "install: {pull_secret_file: '{\"auths\": {}}'}",
        ["install.pull_secret_file: schema.value"],
    ),
    (
        "the key itself",
        "install: {ssh_key_file: ssh-ed25519 AAAA me}",
        ["install.ssh_key_file: schema.value"],
    ),
    (
        "a pull secret in the configuration",
        "install: {config: {pullSecret: x}}",
        ["install.config.pullSecret: install.secret"],
    ),
    (
        "a password in an address",
        "install: {config: {proxy: {httpsProxy: 'http://me:hidden@proxy.example.test:3128'}}}",
        ["install.config.proxy.httpsProxy: install.secret"],
    ),
    (
        "a password in a proxy's address",
        "install: {proxy: {http: 'http://me:hidden@proxy.example.test:3128', https: 'https://:hidden@proxy.example.test'}}",
        ["install.proxy.http: install.secret", "install.proxy.https: install.secret"],
    ),
    (
        "a proxy of another kind, its password not shown",
        "install: {proxy: {http: 'socks://me:hidden@proxy.example.test'}}",
        ["install.proxy.http: schema.value"],
    ),
    (
        "a proxy without a scheme",
        "install: {proxy: {https: proxy.example.test}}",
        ["install.proxy.https: schema.value"],
    ),
    (
        "exceptions from no proxy",
        "install: {proxy: {no_proxy: [.example.test]}}",
        ["install.proxy: install.no-proxy"],
    ),
    (
        "exceptions in one text",
        "install: {proxy: {http: 'http://proxy.example.test', no_proxy: ['a, b']}}",
        ["install.proxy.no_proxy[0]: schema.value"],
    ),
    (
        "a mirror with a tag",
        "install: {image_mirrors: [{source: 'quay.io/a/b:4.20', mirrors: ['mirror:5000/a']}, {source: 'https://quay.io', mirrors: []}]}",
        [
            "install.image_mirrors[0].source: schema.value",
            "install.image_mirrors[1].source: schema.value",
            "install.image_mirrors[1].mirrors: schema.items",
        ],
    ),
    (
        "a relative directory of tools",
        "install: {source: mirror/clients}",
        ["install.source: schema.value"],
    ),
    (
        "capabilities and CPU partitioning too early",
        "install: {version: 4.10.3, capabilities: {baseline: vCurrent}, cpu_partitioning: true}",
        ["install.capabilities: install.not-in-release", "install.cpu_partitioning: install.not-in-release"],
    ),
    (
        "a set of capabilities to come",
        "install: {version: 4.13.3, capabilities: {baseline: v4.14}}",
        ["install.capabilities.baseline: install.baseline"],
    ),
    (
        "no set of capabilities",
        "install: {capabilities: {baseline: everything, additional: [a b]}}",
        ["install.capabilities.baseline: schema.value", "install.capabilities.additional[0]: schema.value"],
    ),
    (
        "capabilities without which there is no installation",
        "install: {version: 4.15.3, capabilities: {baseline: None, additional: [baremetal]}}",
        ["install.capabilities.additional: install.capabilities-required"],
    ),
    (
        "a set of capabilities without Ingress and a manager for marketplace",
        "install: {version: 4.16.3, capabilities: {baseline: v4.14}}",
        [
            "install.capabilities.additional: install.capabilities-required",
            "install.capabilities.additional: install.capabilities-marketplace",
        ],
    ),
    (
        "a set of capabilities that no release has",
        "install: {version: 5.2.3, capabilities: {baseline: v4.19}}",
        ["install.capabilities.baseline: install.baseline"],
    ),
    (
        "capabilities that the release does not have",
        "install: {version: 4.15.3, capabilities: {additional: [console, Ingress, Speed]}}",
        [
            "install.capabilities.additional[0]: install.capability",
            "install.capabilities.additional[1]: install.capability",
            "install.capabilities.additional[2]: install.capability",
        ],
    ),
    (
        "fencing without TLS",
        "install: {}\nnodes: {control_plane: {count: 2, fencing: true}}\nbmc: {tls: false}",
        ["bmc.tls: install.fencing-needs-tls"],
    ),
    (
        "a key deep in the configuration",
        "install: {config: {a: [{b: '-----BEGIN RSA PRIVATE KEY-----'}]}}",
        ["install.config.a[0].b: install.secret"],
    ),
]

TYPES = [
    (
        "a list for a mapping",
        "machine_network: [1]",
        ["machine_network: schema.mapping"],
    ),
    (
        "a text for a mapping",
        "nodes: many",
        ["nodes: schema.mapping"],
    ),
    (
        "a mapping for a list",
        "machine_network: {reservations: {a: b}}",
        ["machine_network.reservations: schema.list"],
    ),
    (
        "a text for a list",
        "machine_network: {ntp_servers: 192.168.126.1}",
        ["machine_network.ntp_servers: schema.list"],
    ),
    (
        "a boolean for a number",
        "nodes: {workers: {count: true}}",
        ["nodes.workers.count: schema.number"],
    ),
    ("a text for a boolean", "bmc: {tls: maybe}", ["bmc.tls: schema.boolean"]),
    (
        "a fraction for a number",
        "nodes: {workers: {count: 2.5}}",
        ["nodes.workers.count: schema.number"],
    ),
    (
        "nothing in a list that needs something",
        "hypervisors: [null]",
        ["hypervisors[0]: schema.text"],
    ),
    (
        "a disk without a size",
        "nodes: {workers: {count: 1, disks: [{}]}}",
        ["nodes.workers.disks[0].size: schema.missing"],
    ),
    (
        "nothing in a list",
        "machine_network: {ntp_servers: [null]}",
        ["machine_network.ntp_servers[0]: schema.text"],
    ),
    (
        "a MAC read as a number",
        "machine_network: {pools: [{mac_prefix: 52:54:00, start: 192.168.126.110, end: 192.168.126.120}]}",
        ["machine_network.pools[0].mac_prefix: schema.text"],
    ),
    (
        "a date",
        "name: 2026-11-18",
        ["name: schema.text"],
    ),
    ("bytes", "name: !!binary aGE=", ["name: schema.text"]),
    (
        "not a number",
        "install: {config: {a: .nan}}",
        ["install.config.a: schema.data"],
    ),
    (
        "a huge number",
        "install: {config: {a: 99999999999999999999}}",
        ["install.config.a: schema.data"],
    ),
    (
        "a key of the free part that is not text",
        "install: {config: {1: a}}",
        ["install.config: schema.data"],
    ),
    (
        "a key misspelt",
        "machine_network: {gatway: 192.168.126.1}",
        ["machine_network.gatway: schema.unknown-key"],
    ),
    (
        "a key unheard of",
        "machine_network: {colour: blue}",
        ["machine_network.colour: schema.unknown-key"],
    ),
    (
        "a key that is a number",
        "bmc: {8000: x}",
        ["bmc: schema.key-type"],
    ),
]

SEVERAL_AT_ONCE = [
    (
        "an unreadable network silences what needs it",
        "machine_network: {cidr: 10.0.0.0, vips: {api: 10.0.0.5, ingress: 10.0.0.5}, mtu: 0}\nbmc: {protocol: ipmi}",
        [
            "machine_network.cidr: schema.value",
            "machine_network.mtu: schema.number",
            "bmc.protocol: bmc.needs-provisioning-network",
        ],
    ),
    (
        "a misspelt network silences what needs it",
        "machine_network: {cidrr: 10.0.0.0/24, vips: {api: 10.0.0.5}}",
        ["machine_network.cidrr: schema.unknown-key"],
    ),
    (
        "an unreadable neighbour does not hide the others",
        "machine_network: {reservations: [{name: a, mac: here, ip: 192.168.126.9}, {name: b, mac: '52:54:00:00:00:01', ip: 10.0.0.9}, {name: b, mac: '52:54:00:00:00:01', ip: 192.168.126.8}]}",
        [
            "machine_network.reservations[0].mac: schema.value",
            "machine_network.reservations[1].ip: address.outside",
            "machine_network.reservations[2].name: unique.host-name",
            "machine_network.reservations[2].mac: unique.mac",
        ],
    ),
    (
        "an unreadable count does not make strangers of nodes",
        "nodes: {workers: {count: two}, overrides: {worker-1: {memory: 16}}}",
        ["nodes.workers.count: schema.number", "nodes.overrides.worker-1.memory: schema.text"],
    ),
    (
        "a network too small beside other errors",
        "machine_network: {cidr: 192.168.126.0/28}\nnodes: {workers: {count: 9}}\nbmc: {protocol: ipmi}\ninstall: {version: stable-4.8}",
        [
            "bmc.protocol: bmc.needs-provisioning-network",
            "install.version: install.release-too-old",
            "machine_network.cidr: network.too-small",
        ],
    ),
    (
        "no follow-up to an unreadable override",
        "nodes: {overrides: {control-plane-0: {disks: [], root_device_hints: {deviceName: sda}}}}",
        [
            "nodes.overrides.control-plane-0.disks: schema.items",
            "nodes.overrides.control-plane-0.root_device_hints.deviceName: schema.value",
        ],
    ),
]

SHARED_LAN = [
    (
        "a bridge that libvirt makes",
        "machine_network: {shared_lan: true, topology: direct}\nbootstrap: {address: reserved}",
        ["machine_network.shared_lan: shared-lan.direct"],
    ),
    (
        "whatever serves machines that are not the lab's",
        "machine_network: {shared_lan: true, dhcp_pool: {start: 192.168.126.220, end: 192.168.126.239}, pools: [{mac_prefix: '02:00', start: 192.168.126.110, end: 192.168.126.120}]}",
        [
            "machine_network.dhcp_pool: shared-lan.dhcp-pool",
            "machine_network.pools[0]: shared-lan.pool",
            "bootstrap.address: shared-lan.bootstrap-pool",
        ],
    ),
]

HINTS = [
    (
        "a hint that no disk matches",
        "nodes: {overrides: {control-plane-0: {root_device_hints: {deviceName: /dev/nvme0n1}}}}",
        ["nodes.overrides.control-plane-0.root_device_hints.deviceName: disks.root-device-hints"],
    ),
    (
        "a hint that no disk can have",
        "nodes: {overrides: {control-plane-0: {root_device_hints: {wwn: '0x5000c500a1b2c3d4'}}}}",
        ["nodes.overrides.control-plane-0.root_device_hints.wwn: disks.root-device-hints"],
    ),
    (
        "a size that no disk has",
        "nodes: {overrides: {control-plane-0: {root_device_hints: {minSizeGigabytes: 121}}}}",
        ["nodes.overrides.control-plane-0.root_device_hints.minSizeGigabytes: disks.root-device-hints"],
    ),
    (
        "hints that only different disks match",
        "nodes: {overrides: {control-plane-0: {disks: [{size: 20GiB, serial: one}, {size: 40GiB}], root_device_hints: {serialNumber: one, minSizeGigabytes: 40}}}}",
        ["nodes.overrides.control-plane-0.root_device_hints: disks.root-device-hints"],
    ),
]

OTHER_HYPERVISORS = spec_of("hypervisors: [two]"), ["one"]
SEVERAL_HYPERVISORS = spec_of(""), ["one", "two"]

TABLES = {
    "root device hints": HINTS,
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


def keys_and_codes(found: list[Finding]) -> list[str]:
    keys = (finding.subject.removeprefix(ROOT).removeprefix(".") for finding in found)
    return [f"{key}: {finding.code}" for key, finding in zip(keys, found)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(text, expected, id=f"{theme}: {what}")
        for theme, table in TABLES.items()
        for what, text, expected in table
    ],
)
def test_refuses(text: str, expected: list[str]) -> None:
    assert keys_and_codes(findings_of(spec_of(text))) == expected


def test_refuses_other_hypervisors_than_the_inventorys() -> None:
    found = findings_of(*OTHER_HYPERVISORS)
    assert keys_and_codes(found) == ["hypervisors: hypervisors.not-of-inventory"]


def test_refuses_an_inventory_of_several_hypervisors() -> None:
    assert keys_and_codes(findings_of(*SEVERAL_HYPERVISORS)) == ["hypervisors: hypervisors.several"]


def test_messages() -> None:
    cases = {
        f"{theme}: {what}": (spec_of(text), list[str]()) for theme, table in TABLES.items() for what, text, _ in table
    }
    cases["nodes: hypervisors other than the inventory's"] = OTHER_HYPERVISORS
    cases["nodes: several hypervisors in the inventory"] = SEVERAL_HYPERVISORS
    found = {name: findings_of(*given) for name, given in cases.items()}
    found["variables: none of lab_spec"] = with_variables({}, {"lab_spec_nodes_worker_count": "2"})[1]
    golden.compare(golden.wording(HEAD, found), MESSAGES)


def test_every_code_has_a_message_here() -> None:
    files = [*(UTILS / "_lab").rglob("*.py"), *(UTILS / "_core").glob("*.py")]
    declared = {code for file in files for code in codes_in(file)}
    assert len(declared) > 60
    assert declared == set(re.findall(r"^  (\S+)  lab_spec", MESSAGES.read_text(), re.MULTILINE))


def codes_in(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).rpartition(".")[2] in REPORTING:
            code = node.args[0]
            if isinstance(code, ast.Constant) and isinstance(code.value, str):
                yield f"unique.{code.value}" if ast.unparse(node.func) == "duplicates" else code.value


def test_every_theme_tells_its_cases_apart() -> None:
    for table in TABLES.values():
        assert len({what for what, _text, _expected in table}) == len(table)
