# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the machine network and everything that has an address in it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.addresses import (
    V4,
    V6,
    Span,
    family_name,
    first_host,
    key_of,
    last_host,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Address, Network
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import Problem
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive import pinned
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.draft import Draft
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import MAC_PREFIX
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.lab import LabSpec

SMALLEST_POOL = 2  # an installation that is started again leaves its first lease behind
LARGEST_POOL = 65535  # libvirt's own limit
SMALLEST_IPV6_MTU = 1280

CLUSTER_NETWORKS = ("10.128.0.0/14", "fd01::/48")
SERVICE_NETWORKS = ("172.30.0.0/16", "fd02::/112")
OVN_NETWORKS = ("100.64.0.0/16", "100.88.0.0/16", "fd97::/64", "fd98::/64")


def networks(lab: Draft) -> Iterator[Problem]:
    spec = lab.spec
    for net in pinned.machine_networks(spec):
        yield from against_cluster(spec, net, key_of(net))


def against_cluster(spec: LabSpec, net: Network, path: str) -> Iterator[Problem]:
    """The cluster has networks of its own inside; one outside that overlaps would be unreachable from it."""
    for owner, inner in _inner_networks(spec):
        if inner.version == net.version and inner.overlaps(net):
            right = "a network apart is right, such as 192.168.126.0/24"
            yield Problem(path, f"is {net}, which overlaps {inner}, the cluster's {owner} network; {right}")


def _inner_networks(spec: LabSpec) -> Iterator[tuple[str, Network]]:
    config = spec.install.config.get("networking") if spec.install else None
    own = config if isinstance(config, dict) else {}
    for owner, key, defaults in (
        ("pod", "clusterNetwork", CLUSTER_NETWORKS),
        ("service", "serviceNetwork", SERVICE_NETWORKS),
        ("internal", "", OVN_NETWORKS),
    ):
        for item in own.get(key) or defaults:
            net = _network_or_none(item.get("cidr") if isinstance(item, dict) else item)
            if net:
                yield owner, net


def _network_or_none(value: Any) -> Network | None:
    try:
        return ipaddress.ip_network(value) if isinstance(value, str) else None
    except ValueError:
        return None


def gateway(lab: Draft) -> Iterator[Problem]:
    spec = lab.spec
    for item in spec.machine_network.gateway or ():
        yield from _outside(spec, item, "machine_network.gateway")


def claims(lab: Draft) -> Iterator[Problem]:
    spec = lab.spec
    taken: dict[Address, pinned.Claim] = {}
    gateways = [pinned.gateway_of(spec, net) for net in pinned.machine_networks(spec)]
    for claim in pinned.claims(spec):
        yield from _outside(spec, claim.address, claim.path)
        if claim.address in gateways:
            yield Problem(claim.path, f"is {claim.address}, the gateway's address; another one is right")
        for item in pinned.ranges(spec):
            if item.span and claim.address in item.span:
                yield Problem(
                    claim.path, f"is {claim.address}, inside {item.owner} ({item.span}); one outside is right"
                )
        earlier = taken.setdefault(claim.address, claim)
        if earlier is not claim:
            whose = f"{earlier.owner} has already (lab_spec.{earlier.path})"
            yield Problem(claim.path, f"is {claim.address}, which {whose}; another one is right")


def _outside(spec: LabSpec, item: Address, path: str) -> Iterator[Problem]:
    net = next((net for net in pinned.machine_networks(spec) if net.version == item.version), None)
    if net is None:
        family = family_name(item.version)
        yield Problem(path, f"is {item}, and the machine network has no {family}; lab_spec.{key_of(item)} gives it one")
    else:
        yield from outside(item, net, path, "the machine network")


def outside(item: Address, net: Network, path: str, owner: str) -> Iterator[Problem]:
    right = f"{first_host(net)} to {last_host(net)} are right"
    if item not in net:
        yield Problem(path, f"is {item}, outside {owner} {net}; {right}")
    elif item == net.network_address:
        yield Problem(path, f"is {item}, the address of {net} itself; {right}")
    elif item == net.broadcast_address and item.version == V4:
        yield Problem(path, f"is {item}, the broadcast address of {net}; {right}")


def ranges(lab: Draft) -> Iterator[Problem]:
    spec = lab.spec
    seen: list[pinned.PinnedRange] = []
    for item in pinned.ranges(spec):
        if item.span is None:
            yield Problem(item.path, "has no range from start to end; start first, both of one family, is right")
            continue
        yield from _outside(spec, item.span.start, f"{item.path}.start")
        yield from _outside(spec, item.span.end, f"{item.path}.end")
        yield from sized(item.span, item.path, SMALLEST_POOL)
        for net in pinned.machine_networks(spec):
            own = pinned.gateway_of(spec, net)
            if own in item.span:
                yield Problem(
                    item.path, f"is {item.span}, and the gateway {own} lies inside; a range without it is right"
                )
        for other in seen:
            if other.span and other.span.overlaps(item.span):
                wrong = f"is {item.span}, which overlaps {other.owner} ({other.span})"
                yield Problem(item.path, f"{wrong}; ranges apart are right")
        seen.append(item)


def sized(span: Span, path: str, smallest: int) -> Iterator[Problem]:
    if not smallest <= span.size <= LARGEST_POOL:
        yield Problem(path, f"is {span}, {span.size} in all; {smallest} to {LARGEST_POOL} addresses are right")


def vips(lab: Draft) -> Iterator[Problem]:
    spec = lab.spec
    own = spec.machine_network.vips
    primary = pinned.machine_networks(spec)[0].version
    for name, item in (("api", own.api), ("ingress", own.ingress)):
        if item and item[0].version != primary:
            right = f"{family_name(primary)} first is right, as in lab_spec.machine_network"
            yield Problem(f"machine_network.vips.{name}", f"begins with {item[0]}; {right}")
    if own.api and own.ingress and len(own.api) != len(own.ingress):
        right = "as many for ingress as for api are right"
        yield Problem("machine_network.vips.ingress", f"has {len(own.ingress)}, and api has {len(own.api)}; {right}")


def bootstrap(lab: Draft) -> Iterator[Problem]:
    spec = lab.spec
    own = spec.bootstrap
    allowed = {"pool": (), "reserved": ("ip", "mac"), "static": ("ip", "gateway", "dns")}[own.address]
    for name in ("ip", "mac", "gateway", "dns"):
        if getattr(own, name) is not None and name not in allowed:
            modes = "reserved" if name == "mac" else "static" if name != "ip" else "reserved or static"
            yield Problem(f"bootstrap.{name}", f"means nothing with address: {own.address}; address: {modes} uses it")
    if own.address == "static":
        yield from _static(spec)


def _static(spec: LabSpec) -> Iterator[Problem]:
    net = pinned.machine_networks(spec)[0]
    values = (("ip", spec.bootstrap.ip or ()), ("gateway", (spec.bootstrap.gateway,)), ("dns", (spec.bootstrap.dns,)))
    for name, items in values:
        for item in items:
            if item is not None and item.version != net.version:
                right = f"one {family_name(net.version)} address is right"
                yield Problem(f"bootstrap.{name}", f"is {item}; the installer takes the primary family, so {right}")
    if spec.bootstrap.gateway and spec.bootstrap.gateway.version == net.version:
        yield from outside(spec.bootstrap.gateway, net, "bootstrap.gateway", "the machine network")


def prefixes(lab: Draft) -> Iterator[Problem]:
    """Which of two prefixes that contain each other dnsmasq takes would be a matter of luck."""
    spec = lab.spec
    seen = [(MAC_PREFIX, "the bootstrap VM's own pool")] if _derives_bootstrap_pool(spec) else []
    for pool in spec.machine_network.pools:
        for prefix, owner in seen:
            if prefix.startswith(pool.mac_prefix) or pool.mac_prefix.startswith(prefix):
                wrong = f"is {pool.mac_prefix}, which overlaps {prefix} of {owner}"
                yield Problem(f"{pool.at}.mac_prefix", f"{wrong}; prefixes apart are right")
        seen.append((pool.mac_prefix, f"lab_spec.{pool.at}"))


def _derives_bootstrap_pool(spec: LabSpec) -> bool:
    served = any(MAC_PREFIX.startswith(pool.mac_prefix) for pool in spec.machine_network.pools)
    return spec.bootstrap.address == "pool" and not served


def shared_lan(lab: Draft) -> Iterator[Problem]:
    """Whatever would answer machines of others there."""
    own = lab.spec.machine_network
    if not own.shared_lan:
        return
    on = "machine_network.shared_lan"
    if own.topology == "direct":
        yield Problem(on, "is true, but libvirt makes the bridge of topology: direct itself; topology: veth is right")
    if own.dhcp_pool:
        yield Problem("machine_network.dhcp_pool", "would serve any machine of the shared LAN; leave it out")
    for pool in own.pools:
        yield Problem(
            pool.at, f"would serve any machine of the shared LAN with a MAC of {pool.mac_prefix}; leave it out"
        )
    if lab.spec.bootstrap.address == "pool":
        wrong = f"is pool, which would serve any VM of the shared LAN with a MAC of {MAC_PREFIX}"
        yield Problem("bootstrap.address", f"{wrong}; reserved or static is right")


def static_routes(lab: Draft) -> Iterator[Problem]:
    spec = lab.spec
    net = pinned.machine_networks(spec)[0]
    for pool in spec.machine_network.pools:
        for route in pool.static_routes:
            if net.version != V4 or route.to.version != V4 or route.via.version != V4:
                yield Problem(route.at, "is no IPv4 route in an IPv4 network; DHCP hands out no other, so leave it out")
            else:
                yield from outside(route.via, net, f"{route.at}.via", "the machine network")


def time_servers(lab: Draft) -> Iterator[Problem]:
    families = {net.version for net in pinned.machine_networks(lab.spec)}
    for item in lab.spec.machine_network.ntp_servers:
        if item.version not in families:
            wrong = f"holds {item}, which machines without {family_name(item.version)} do not reach"
            yield Problem("machine_network.ntp_servers", f"{wrong}; leave it out")


def mtu(lab: Draft) -> Iterator[Problem]:
    spec = lab.spec
    families = [net.version for net in pinned.machine_networks(spec)]
    if V6 in families and spec.machine_network.mtu < SMALLEST_IPV6_MTU:
        yield Problem("machine_network.mtu", f"is {spec.machine_network.mtu}; IPv6 needs {SMALLEST_IPV6_MTU} or more")
