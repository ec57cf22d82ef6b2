# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Causes that lie in the lab's network. Pure."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import GIVEN_BY, HOST
from ansible_collections.nometal.ipi.plugins.module_utils._core.wording import listed
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import PORT, is_between
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Forward
from ansible_collections.nometal.ipi.plugins.module_utils._observe import packet_filter
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall import lab as firewall

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.evidence import Evidence
    from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import Check
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab
    from ansible_collections.nometal.ipi.plugins.module_utils._observe.packet_filter import Rule

NETWORK = "playbooks/network.yml repairs it."
MOST_NAMED = 4
DNS_PORT = 53
FORWARDING = {"ipv4": "net.ipv4.ip_forward", "ipv6": "net.ipv6.conf.all.forwarding"}


def broken_path(lab: Lab, evidence: Evidence, _check: Check | None = None) -> str:
    network = lab.machine_network
    if not evidence.networks.get(network["name"]):
        return f"libvirt network {network['name']} is not running. {NETWORK}"
    for place in _places(lab):
        link = evidence.links.get(place["name"])
        if link is None:
            return f"Link {place['name']} is gone, which ties {network['bridge']} and {lab.bridge} together. {NETWORK}"
        if "UP" not in link.get("flags", ()):
            return f"Link {place['name']} is down. {NETWORK}"
        if link.get("master") != place["bridge"]:
            there = link.get("master", "no bridge")
            return f"Link {place['name']} is on {there} rather than on {place['bridge']}. {NETWORK}"
    down = [
        name for name in (network["bridge"], lab.bridge) if "UP" not in evidence.links.get(name, {}).get("flags", ())
    ]
    return f"Bridge {down[0]} is down or gone. {NETWORK}" if down else ""


def _places(lab: Lab) -> list[Mapping[str, Any]]:
    return [end for pair in lab.veth_pairs for end in (pair["a"], pair["b"])]


def exhausted_pool(lab: Lab, evidence: Evidence, _check: Check) -> str:
    if lab.bootstrap["mode"] != "pool":
        return ""
    for start, end in lab.bootstrap_places():
        first, last = ipaddress.ip_address(start), ipaddress.ip_address(end)
        size = int(last) - int(first) + 1
        taken = sorted(mac for address, mac in evidence.leases if is_between(address, start, end))
        if len(taken) >= size:
            return (
                f"The pool {start} to {end} is used up: its {size} addresses are leased to "
                f"{listed(taken, MOST_NAMED)}. Free them, or declare a larger pool in machine_network.pools."
            )
    return ""


def second_server(lab: Lab, evidence: Evidence, check: Check) -> str:
    servers = _addresses_in(check.seen.rpartition(GIVEN_BY)[2])
    strange = [address for address in servers if address not in lab.gateways]
    if not strange:
        return ""
    return (
        f"A second DHCP server, {_holder(evidence, strange[0])}, answers on {lab.bridge}: "
        "it gives nodes addresses that the lab knows nothing of. Take it off the bridge."
    )


def foreign_lease(lab: Lab, evidence: Evidence, check: Check) -> str:
    return second_server(lab, evidence, check) if GIVEN_BY in check.seen else ""


def holder(_lab: Lab, evidence: Evidence, check: Check) -> str:
    known = [address for address in _addresses_in(check.seen) if address in evidence.neighbours]
    if not known:
        return ""
    shown = listed([_holder(evidence, address) for address in known], MOST_NAMED)
    return f"It is {shown}. Take it from there, or name other machine_network.vips."


def _holder(evidence: Evidence, address: str) -> str:
    mac = evidence.neighbours.get(address, "")
    known = evidence.machines.get(mac, "")
    return f"{address} ({mac}{f', {known} of this host' if known else ''})" if mac else address


def _addresses_in(text: str) -> list[str]:
    words = [word.strip(",;()") for word in text.split()]
    return [word.rstrip(":") for word in words if _is_address(word.rstrip(":"))]


def _is_address(word: str) -> bool:
    try:
        ipaddress.ip_address(word)
    except ValueError:
        return False
    return True


def small_mtu(lab: Lab, evidence: Evidence, _check: Check) -> str:
    """A bridge takes the smallest of its ports', and new ports take the bridge's: the pair's ends come first."""
    wanted, bridges = lab.machine_network["mtu"], [lab.machine_network["bridge"], lab.bridge]
    ports = [name for name, link in evidence.links.items() if link.get("master") in bridges and not _is_tap(link)]
    names = [*(place["name"] for place in _places(lab)), *ports, *bridges]
    small = [name for name in names if evidence.links.get(name, {}).get("mtu", wanted) < wanted]
    if not small:
        return ""
    return f"MTU of {small[0]} is {evidence.links[small[0]]['mtu']}, that of the lab {wanted}. {NETWORK}"


def _is_tap(link: Mapping[str, Any]) -> bool:
    return link.get("linkinfo", {}).get("info_kind") == "tun"


def missing_record(lab: Lab, evidence: Evidence, check: Check) -> str:
    told = f"{check.expected} {check.seen}"
    addresses = {address: name for address, name in lab.reverse_names().items() if f"{address} is" in told}
    asked = {name for name in lab.names() if f"{name} is" in told} | set(addresses.values())
    declared = {name for host in lab.machine_network["dns"]["hosts"] for name in host["names"]}
    missing = sorted((asked & declared) - set(evidence.records))
    if not missing:
        return ""
    shown = listed(missing, MOST_NAMED)
    return f"libvirt network {lab.machine_network['name']} has no DNS record of {shown}. {NETWORK}"


def silent_name_server(lab: Lab, evidence: Evidence, check: Check) -> str:
    server = lab.gateways[0]
    if evidence.name_server == "no answer":
        return f"The lab's name server, dnsmasq at {server}, does not even answer the host: it does not run. {NETWORK}"
    rule = filtering(evidence, DNS_PORT)
    if rule and "no answer" in check.seen and check.who != HOST:
        return f"The name server at {server} answers the host, but not the lab: the packet filter has {rule}."
    return ""


def filtering(evidence: Evidence, port: int) -> Rule | None:
    return next((rule for rule in evidence.rules if rule.refuses and rule.is_about(port)), None)


def filtered_http(lab: Lab, evidence: Evidence, _check: Check) -> str:
    rule = filtering(evidence, PORT)
    return f"The packet filter keeps the host from {lab.urls[0]}: {rule}. Remove that rule." if rule else ""


def no_forwarding(lab: Lab, evidence: Evidence, _check: Check) -> str:
    off = [family for family in lab.families if not evidence.forwarding.get(family, True)]
    if not off:
        return ""
    return (
        f"The host does not forward {off[0]} packets: `sysctl {FORWARDING[off[0]]}=1`, and take what has set it to 0 "
        "out of /etc/sysctl.d."
    )


def no_translation(lab: Lab, evidence: Evidence, _check: Check) -> str:
    """Known only where rules were read at all."""
    if lab.machine_network["forward"] != Forward.NAT or not evidence.rules:
        return ""
    subnets = [address["cidr"] for address in lab.machine_network["addresses"] if address["family"] == "ipv4"]
    masks = [rule.text for rule in evidence.rules if "masquerade" in rule.text.lower()]
    bare = [subnet for subnet in subnets if not any(subnet in mask for mask in masks)]
    if not bare:
        return ""
    return (
        f"libvirt's rules that translate {bare[0]} are gone from the packet filter: somebody has flushed it. {NETWORK}"
    )


def lost_rules(lab: Lab, evidence: Evidence, _check: Check) -> str:
    if not evidence.lost_rules:
        return ""
    return (
        f"libvirt's rules for network {lab.machine_network['name']} are gone from the packet filter "
        f"({listed(evidence.lost_rules, MOST_NAMED)}): somebody has flushed it. {NETWORK}"
    )


def refused_to_host(lab: Lab, evidence: Evidence, _check: Check) -> str:
    return _refused(lab, evidence, "input")


def refused_on_the_way(lab: Lab, evidence: Evidence, _check: Check) -> str:
    return _refused(lab, evidence, "forward")


def _refused(lab: Lab, evidence: Evidence, hook: str) -> str:
    """A policy, or a last rule, where stage network has the lab let through and it no longer is."""
    tag = firewall.Lab(lab.name).tag
    rule = next((rule for rule in packet_filter.refusing(evidence.rules, tag) if rule.hook == hook), None)
    if rule is None:
        return ""
    return f"The packet filter refuses what comes from the lab, by {rule}, before rules of the lab let it in. {NETWORK}"


def own_clock(lab: Lab, _evidence: Evidence, check: Check) -> str:
    own = [gateway for gateway in lab.gateways if f"{gateway} does not answer" in check.seen]
    if not own:
        return ""
    return (
        f"{own[0]} is this host, on which nothing tells the time: have chronyd serve the lab (`allow` in its "
        "settings), or name other servers in machine_network.ntp_servers."
    )
