# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Causes that lie in the lab's network. Pure."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._agent import lookups
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.cause import Cause
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.causes_path import NETWORK, ends
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import HOST
from ansible_collections.nometal.ipi.plugins.module_utils._core.wording import listed
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import PORT, is_between
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Forward
from ansible_collections.nometal.ipi.plugins.module_utils._observe import packet_filter
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall import lab as firewall

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.cause import Facts, Look
    from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.evidence import Evidence
    from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import Check
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab
    from ansible_collections.nometal.ipi.plugins.module_utils._observe.packet_filter import Rule

MOST_NAMED = 4
DNS_PORT = 53
FORWARDING = {"ipv4": "net.ipv4.ip_forward", "ipv6": "net.ipv6.conf.all.forwarding"}
ADDRESS = ("address", "address from its disk")
NAMES = ("names", "reverse names", "names on the host")
FILTERED = (*ADDRESS, "DHCP servers", "gateway", *NAMES)


def exhausted_pool(lab: Lab, evidence: Evidence, _check: Check) -> Facts:
    if lab.bootstrap.mode != "pool":
        return None
    for start, end in lab.bootstrap_places():
        first, last = ipaddress.ip_address(start), ipaddress.ip_address(end)
        size = int(last) - int(first) + 1
        taken = sorted(mac for address, mac in evidence.leases if is_between(address, start, end))
        if len(taken) >= size:
            return {"start": start, "end": end, "size": size, "macs": taken}
    return None


def _pool_used_up(start: str, end: str, size: int, macs: Sequence[str]) -> str:
    return f"The pool {start} to {end} is used up: its {size} addresses are leased to {listed(macs, MOST_NAMED)}."


def second_server(lab: Lab, evidence: Evidence, check: Check) -> Facts:
    strange = [server for server in check.facts.get("servers", ()) if server not in lab.gateways]
    return {"server": _holder(evidence, strange[0]), "bridge": lab.bridge} if strange else None


def _second_server(server: Mapping[str, str], bridge: str) -> str:
    return (
        f"A second DHCP server, {_shown(server)}, answers on {bridge}: it gives nodes addresses that are not the lab's."
    )


def holder(_lab: Lab, evidence: Evidence, check: Check) -> Facts:
    known = [address for address in check.facts.get("addresses", ()) if address in evidence.neighbours]
    return {"holders": [_holder(evidence, address) for address in known]} if known else None


def _held(holders: Sequence[Mapping[str, str]]) -> str:
    return f"Already used: {listed(map(_shown, holders), MOST_NAMED)}."


def _holder(evidence: Evidence, address: str) -> dict[str, str]:
    mac = evidence.neighbours.get(address, "")
    return {"address": address, "mac": mac, "machine": evidence.machines.get(mac, "")}


def _shown(holder: Mapping[str, str]) -> str:
    known = f", {holder['machine']} of this host" if holder["machine"] else ""
    return f"{holder['address']} ({holder['mac']}{known})" if holder["mac"] else holder["address"]


def small_mtu(lab: Lab, evidence: Evidence, _check: Check) -> Facts:
    """A bridge takes the smallest of its ports', and new ports take the bridge's: the pair's ends come first."""
    wanted, bridges = lab.machine_network.mtu, [lab.machine_network.bridge, lab.bridge]
    ports = [name for name, link in evidence.links.items() if link.master in bridges and link.kind != "tun"]
    names = [*(end.name for end in ends(lab)), *ports, *bridges]
    links = [evidence.links[name] for name in names if name in evidence.links]
    small = next((link for link in links if link.mtu < wanted), None)
    return {"link": small.name, "mtu": small.mtu, "wanted": wanted} if small else None


def missing_record(lab: Lab, evidence: Evidence, check: Check) -> Facts:
    declared = {name for host in lab.machine_network.dns.hosts for name in host.names}
    missing = sorted(({*check.facts.get("names", ())} & declared) - set(evidence.records))
    return {"network": lab.machine_network.name, "names": missing} if missing else None


def _no_record(network: str, names: Sequence[str]) -> str:
    return f"libvirt network {network} has no DNS record of {listed(names, MOST_NAMED)}."


def silent_name_server(lab: Lab, evidence: Evidence, _check: Check) -> Facts:
    return {"server": lab.gateways[0]} if evidence.name_server == lookups.NO_ANSWER else None


def filtered_name_server(lab: Lab, evidence: Evidence, check: Check) -> Facts:
    rule = filtering(evidence, DNS_PORT)
    if rule and check.facts.get("unanswered") and check.who != HOST:
        return {"server": lab.gateways[0], "rule": str(rule)}
    return None


def filtering(evidence: Evidence, port: int) -> Rule | None:
    return next((rule for rule in evidence.rules if rule.refuses and rule.is_about(port)), None)


def filtered_http(lab: Lab, evidence: Evidence, _check: Check) -> Facts:
    rule = filtering(evidence, PORT)
    return {"url": lab.urls[0], "rule": str(rule)} if rule else None


def no_forwarding(lab: Lab, evidence: Evidence, _check: Check) -> Facts:
    off = [family for family in lab.families if not evidence.forwarding.get(family, True)]
    return {"family": off[0], "sysctl": FORWARDING[off[0]]} if off else None


def no_translation(lab: Lab, evidence: Evidence, _check: Check) -> Facts:
    """Known only where rules were read at all."""
    if lab.machine_network.forward != Forward.NAT or not evidence.rules:
        return None
    subnets = [address.cidr for address in lab.machine_network.addresses if address.family == "ipv4"]
    masks = [rule.text for rule in evidence.rules if "masquerade" in rule.text.lower()]
    bare = [subnet for subnet in subnets if not any(subnet in mask for mask in masks)]
    return {"subnet": bare[0]} if bare else None


def lost_rules(lab: Lab, evidence: Evidence, _check: Check) -> Facts:
    network = lab.machine_network.name
    return {"network": network, "chains": [*evidence.lost_rules]} if evidence.lost_rules else None


def _lost(network: str, chains: Sequence[str]) -> str:
    chain = listed(chains, MOST_NAMED)
    gone = f"libvirt's rules for network {network} are gone from the packet filter ({chain})"
    return f"{gone}: another program has removed them."


def refused_at(hook: str) -> Look:
    def look(lab: Lab, evidence: Evidence, _check: Check) -> Facts:
        """A policy, or a last rule, where stage network has the lab let through and it no longer is."""
        tag = firewall.Lab(lab.name).tag
        rule = next((rule for rule in packet_filter.refusing(evidence.rules, tag) if rule.hook == hook), None)
        return {"rule": str(rule), "hook": hook} if rule else None

    return look


def own_clock(lab: Lab, _evidence: Evidence, check: Check) -> Facts:
    own = [gateway for gateway in lab.gateways if gateway in check.facts.get("silent_servers", ())]
    return {"server": own[0]} if own else None


REFUSED = "The packet filter refuses what comes from the lab, by {rule}, before rules of the lab let it in."
OFF_THE_BRIDGE = "Remove it from the bridge."

ROWS = (
    Cause("dhcp.second-server", ("DHCP servers",), second_server, _second_server, OFF_THE_BRIDGE),
    Cause(
        "dhcp.pool-used-up",
        (*ADDRESS, "DHCP servers"),
        exhausted_pool,
        _pool_used_up,
        "Free them, or declare a larger pool in machine_network.pools.",
    ),
    Cause("dhcp.foreign-lease", ADDRESS, second_server, _second_server, OFF_THE_BRIDGE),
    Cause(
        "dns.server-silent",
        NAMES,
        silent_name_server,
        "The lab's name server, dnsmasq at {server}, does not even answer the host: it does not run.",
        NETWORK,
    ),
    Cause(
        "dns.filtered",
        NAMES,
        filtered_name_server,
        "The name server at {server} answers the host, but not the lab: the packet filter has {rule}.",
    ),
    Cause("dns.record-missing", NAMES, missing_record, _no_record, NETWORK),
    Cause(
        "time.host-has-no-server",
        ("time",),
        own_clock,
        "{server} is this host, on which nothing tells the time:",
        "have chronyd serve the lab (`allow` in its settings), or name other servers in machine_network.ntp_servers.",
    ),
    Cause(
        "path.small-mtu",
        ("full-size frames",),
        small_mtu,
        "MTU of {link} is {mtu}, that of the lab {wanted}.",
        NETWORK,
    ),
    Cause(
        "forwarding.off",
        ("way out",),
        no_forwarding,
        "The host does not forward {family} packets:",
        "`sysctl {sysctl}=1`, and remove the line that sets it to 0 from /etc/sysctl.d.",
    ),
    Cause(
        "filter.no-translation",
        ("way out",),
        no_translation,
        "libvirt's rules that translate {subnet} are gone from the packet filter: another program has removed them.",
        NETWORK,
    ),
    Cause("filter.refused-to-host", FILTERED, refused_at("input"), REFUSED, NETWORK),
    Cause("filter.refused-on-the-way", ("way out", "other nodes"), refused_at("forward"), REFUSED, NETWORK),
    Cause("filter.lost-rules", (*FILTERED, "way out"), lost_rules, _lost, NETWORK),
    Cause(
        "vip.held",
        ("virtual addresses free",),
        holder,
        _held,
        "Free the address, or choose other machine_network.vips.",
    ),
    Cause(
        "vip.filtered",
        ("virtual addresses",),
        filtered_http,
        "The packet filter keeps the host from {url}: {rule}.",
        "Remove that rule.",
    ),
)
"""In this order: the first that is found is believed."""
