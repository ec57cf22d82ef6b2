# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules and the keys that they need. A rule is skipped if a key that it needs could not be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable, NamedTuple

from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import Problems
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.parsed_lab import ParsedLab
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rules import addresses as rules_addresses
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rules import bmc as rules_bmc
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rules import dns as rules_dns
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rules import install as rules_install
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rules import nodes as rules_nodes
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rules import provisioning as rules_provisioning
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rules import storage as rules_storage
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rules import unique as rules_unique


class Rule(NamedTuple):
    check: Callable[[ParsedLab], Iterator[Finding]]
    needs: tuple[str, ...] = ()


NETWORKS = ("machine_network.cidr", "machine_network.cidr_v6")
GATEWAY = (*NETWORKS, "machine_network.gateway")
COUNTS = ("nodes.control_plane.count", "nodes.arbiters.count", "nodes.workers.count", "nodes.spares.count")
PROVISIONING = ("provisioning_network.cidr",)

RULES = (
    Rule(rules_nodes.some, COUNTS),
    Rule(rules_nodes.overrides, COUNTS),
    Rule(rules_nodes.hypervisors, ("hypervisors",)),
    Rule(rules_nodes.disks),
    Rule(rules_nodes.root_device_hints, ("name", "nodes")),
    Rule(rules_addresses.networks, NETWORKS),
    Rule(rules_addresses.gateway, GATEWAY),
    Rule(rules_addresses.claims, GATEWAY),
    Rule(rules_addresses.ranges, GATEWAY),
    Rule(rules_addresses.vips, (*NETWORKS, "machine_network.vips")),
    Rule(rules_addresses.bootstrap, (*GATEWAY, "bootstrap.address")),
    Rule(rules_addresses.prefixes, ("machine_network.pools", "bootstrap.address")),
    Rule(
        rules_addresses.shared_lan,
        ("machine_network.shared_lan", "machine_network.topology", "machine_network.pools", "bootstrap.address"),
    ),
    Rule(rules_addresses.static_routes, NETWORKS),
    Rule(rules_addresses.time_servers, (*NETWORKS, "machine_network.ntp_servers")),
    Rule(rules_addresses.mtu, (*NETWORKS, "machine_network.mtu")),
    Rule(rules_provisioning.network, (*NETWORKS, *PROVISIONING)),
    Rule(rules_provisioning.addresses, PROVISIONING),
    Rule(rules_provisioning.dhcp_range, (*PROVISIONING, *COUNTS, "provisioning_network")),
    Rule(rules_bmc.protocol, ("bmc.protocol", "provisioning_network")),
    Rule(rules_bmc.clients, (*NETWORKS, *PROVISIONING, "bmc.clients")),
    Rule(rules_bmc.ports, ("bmc.protocol", "bmc.port", *COUNTS)),
    Rule(rules_bmc.faults, ("bmc.protocol", "bmc.faults", *COUNTS)),
    Rule(rules_storage.pool_directory, ("name", "storage_pool")),
    Rule(rules_dns.domain, ("name", "base_domain")),
    Rule(rules_dns.forwarders, GATEWAY),
    Rule(rules_dns.records, ("name", "base_domain")),
    Rule(rules_unique.host_names),
    Rule(rules_unique.macs, ("name", *COUNTS)),
    Rule(rules_unique.uuids, ("name", *COUNTS)),
    Rule(rules_unique.serials, ("name", *COUNTS)),
    Rule(rules_unique.interfaces, ("name", "machine_network.topology", "machine_network.bridge")),
    Rule(rules_install.control_plane, (*COUNTS, "nodes.control_plane.fencing")),
    Rule(rules_install.releases, ("install.version",)),
    Rule(rules_install.capabilities, ("install",)),
    Rule(rules_install.proxy, ("install.proxy",)),
    Rule(rules_install.fencing, ("nodes.control_plane.fencing", "bmc.tls")),
    Rule(rules_install.sizes, ("nodes",)),
    Rule(rules_install.secrets),
)


PLAN_NEEDS = (
    *GATEWAY,
    *COUNTS,
    "machine_network.vips",
    "machine_network.dhcp_pool",
    "machine_network.pools",
    "machine_network.reservations",
    "bootstrap",
    "nodes.overrides",
)


def judge(parsed: ParsedLab, problems: Problems) -> None:
    for rule in RULES:
        if all(problems.knows(key) for key in rule.needs):
            problems.found.extend(rule.check(parsed))


def can_be_planned(problems: Problems) -> bool:
    """Addresses can be assigned only if all keys that affect them are valid."""
    return not any(problems.concern(key) for key in PLAN_NEEDS)
