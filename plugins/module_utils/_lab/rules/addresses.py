# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the machine network and the addresses in it."""

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
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Address, Network
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import LARGEST_DHCP_RANGE, SMALLEST_IPV6_MTU
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import (
    already_used,
    got,
    must_be,
    must_not_overlap,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive import declared
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.parsed_lab import ParsedLab
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import MAC_PREFIX
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.lab import LabSpec
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BootstrapAddress, Topology

SMALLEST_POOL = 2  # an installation that is started again leaves its first lease behind
INVALID_RANGE = "start and end must be of one family, and start must not be after end"

CLUSTER_NETWORKS = ("10.128.0.0/14", "fd01::/48")
SERVICE_NETWORKS = ("172.30.0.0/16", "fd02::/112")
OVN_NETWORKS = ("100.64.0.0/16", "100.88.0.0/16", "fd97::/64", "fd98::/64")


def networks(lab: ParsedLab) -> Iterator[Finding]:
    spec = lab.spec
    for net in declared.machine_networks(spec):
        yield from against_cluster(spec, net, key_of(net))


def against_cluster(spec: LabSpec, net: Network, path: str) -> Iterator[Finding]:
    """The cluster could not reach a network that overlaps one of its own internal networks."""
    for owner, inner in _inner_networks(spec):
        if inner.version == net.version and inner.overlaps(net):
            text = must_not_overlap(f"{inner}, the cluster's {owner} network", net)
            yield Finding("network.overlaps-cluster", path, text)


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


def gateway(lab: ParsedLab) -> Iterator[Finding]:
    spec = lab.spec
    for item in spec.machine_network.gateway or ():
        yield from _outside(spec, item, "machine_network.gateway")


def claims(lab: ParsedLab) -> Iterator[Finding]:
    spec = lab.spec
    taken: dict[Address, declared.Claim] = {}
    gateways = [declared.gateway_of(spec, net) for net in declared.machine_networks(spec)]
    for claim in declared.claims(spec):
        yield from _outside(spec, claim.address, claim.path)
        if claim.address in gateways:
            yield Finding("address.used", claim.path, already_used("the gateway", claim.address))
        for item in declared.ranges(spec):
            if item.span and claim.address in item.span:
                yield in_range(claim.address, item.owner, item.span, claim.path)
        earlier = taken.setdefault(claim.address, claim)
        if earlier is not claim:
            owner = f"{earlier.owner} (lab_spec.{earlier.path})"
            yield Finding("address.used", claim.path, already_used(owner, claim.address))


def in_range(item: Address, owner: str, span: Span, path: str) -> Finding:
    return Finding("address.in-range", path, must_be(f"outside {owner}, {span}", item))


def _outside(spec: LabSpec, item: Address, path: str) -> Iterator[Finding]:
    net = next((net for net in declared.machine_networks(spec) if net.version == item.version), None)
    if net is None:
        family = family_name(item.version)
        text = f"the machine network has no {family}: leave it out or set lab_spec.{key_of(item)} {got(item)}"
        yield Finding("address.family", path, text)
    else:
        yield from outside(item, net, path, "the machine network")


def outside(item: Address, net: Network, path: str, owner: str) -> Iterator[Finding]:
    is_broadcast = item == net.broadcast_address and item.version == V4
    if item not in net or item == net.network_address or is_broadcast:
        text = must_be(f"an address of a host in {owner} {net}: {first_host(net)} to {last_host(net)}", item)
        yield Finding("address.outside", path, text)


def ranges(lab: ParsedLab) -> Iterator[Finding]:
    spec = lab.spec
    seen: list[declared.DeclaredRange] = []
    for item in declared.ranges(spec):
        if item.span is None:
            yield Finding("range.invalid", item.path, INVALID_RANGE)
            continue
        yield from _outside(spec, item.span.start, f"{item.path}.start")
        yield from _outside(spec, item.span.end, f"{item.path}.end")
        yield from sized(item.span, item.path, SMALLEST_POOL)
        for net in declared.machine_networks(spec):
            own = declared.gateway_of(spec, net)
            if own in item.span:
                yield Finding("range.has-gateway", item.path, f"must not include the gateway {own} {got(item.span)}")
        for other in seen:
            if other.span and other.span.overlaps(item.span):
                text = must_not_overlap(f"{other.owner}, {other.span}", item.span)
                yield Finding("range.overlaps", item.path, text)
        seen.append(item)


def sized(span: Span, path: str, smallest: int) -> Iterator[Finding]:
    if not smallest <= span.size <= LARGEST_DHCP_RANGE:
        yield Finding("range.size", path, f"must have {smallest} to {LARGEST_DHCP_RANGE} addresses {got(span.size)}")


def vips(lab: ParsedLab) -> Iterator[Finding]:
    spec = lab.spec
    own = spec.machine_network.vips
    primary = declared.machine_networks(spec)[0].version
    for name, item in (("api", own.api), ("ingress", own.ingress)):
        if item and item[0].version != primary:
            text = f"must have the {family_name(primary)} address first, as lab_spec.machine_network has {got(item[0])}"
            yield Finding("vips.order", f"machine_network.vips.{name}", text)
    if own.api and own.ingress and len(own.api) != len(own.ingress):
        text = f"must have as many addresses as vips.api, {len(own.api)} {got(len(own.ingress))}"
        yield Finding("vips.number", "machine_network.vips.ingress", text)


def bootstrap(lab: ParsedLab) -> Iterator[Finding]:
    spec = lab.spec
    own = spec.bootstrap
    allowed = {
        BootstrapAddress.POOL: (),
        BootstrapAddress.RESERVED: ("ip", "mac"),
        BootstrapAddress.STATIC: ("ip", "gateway", "dns"),
    }[own.address]
    for name in ("ip", "mac", "gateway", "dns"):
        if getattr(own, name) is not None and name not in allowed:
            modes = "reserved" if name == "mac" else "static" if name != "ip" else "reserved or static"
            text = f"must be left out unless bootstrap.address is {modes} {got(own.address)}"
            yield Finding("bootstrap.unused", f"bootstrap.{name}", text)
    if own.address == BootstrapAddress.STATIC:
        yield from _static(spec)


def _static(spec: LabSpec) -> Iterator[Finding]:
    net = declared.machine_networks(spec)[0]
    values = (("ip", spec.bootstrap.ip or ()), ("gateway", (spec.bootstrap.gateway,)), ("dns", (spec.bootstrap.dns,)))
    for name, items in values:
        for item in items:
            if item is not None and item.version != net.version:
                text = must_be(f"one {family_name(net.version)} address: the installer uses the primary family", item)
                yield Finding("bootstrap.family", f"bootstrap.{name}", text)
    if spec.bootstrap.gateway and spec.bootstrap.gateway.version == net.version:
        yield from outside(spec.bootstrap.gateway, net, "bootstrap.gateway", "the machine network")


def prefixes(lab: ParsedLab) -> Iterator[Finding]:
    """With two prefixes of which one contains the other, dnsmasq may use either."""
    spec = lab.spec
    seen = [(MAC_PREFIX, "the bootstrap VM's own pool")] if _derives_bootstrap_pool(spec) else []
    for pool in spec.machine_network.pools:
        for prefix, owner in seen:
            if prefix.startswith(pool.mac_prefix) or pool.mac_prefix.startswith(prefix):
                text = must_not_overlap(f"{prefix} of {owner}", pool.mac_prefix)
                yield Finding("pools.prefix-overlaps", f"{pool.at}.mac_prefix", text)
        seen.append((pool.mac_prefix, f"lab_spec.{pool.at}"))


def _derives_bootstrap_pool(spec: LabSpec) -> bool:
    served = any(MAC_PREFIX.startswith(pool.mac_prefix) for pool in spec.machine_network.pools)
    return spec.bootstrap.address == BootstrapAddress.POOL and not served


def shared_lan(lab: ParsedLab) -> Iterator[Finding]:
    """Refuse whatever would answer other machines of the LAN."""
    own = lab.spec.machine_network
    if not own.shared_lan:
        return
    on = "machine_network.shared_lan"
    if own.topology == Topology.DIRECT:
        text = must_be("false with topology: direct, whose bridge libvirt makes: use topology: veth", True)
        yield Finding("shared-lan.direct", on, text)
    if own.dhcp_pool:
        text = "must be left out: it would serve any machine of the shared LAN"
        yield Finding("shared-lan.dhcp-pool", "machine_network.dhcp_pool", text)
    for pool in own.pools:
        text = f"must be left out: it would serve any machine of the shared LAN with a MAC of {pool.mac_prefix}"
        yield Finding("shared-lan.pool", pool.at, text)
    if lab.spec.bootstrap.address == BootstrapAddress.POOL:
        right = f"reserved or static: a pool would serve any VM of the shared LAN with a MAC of {MAC_PREFIX}"
        yield Finding("shared-lan.bootstrap-pool", "bootstrap.address", must_be(right, "pool"))


def static_routes(lab: ParsedLab) -> Iterator[Finding]:
    spec = lab.spec
    net = declared.machine_networks(spec)[0]
    for pool in spec.machine_network.pools:
        for route in pool.static_routes:
            if net.version != V4 or route.to.version != V4 or route.via.version != V4:
                text = f"must be an IPv4 route in an IPv4 network, or left out: DHCP has no other {got(route.to)}"
                yield Finding("pools.route-family", route.at, text)
            else:
                yield from outside(route.via, net, f"{route.at}.via", "the machine network")


def time_servers(lab: ParsedLab) -> Iterator[Finding]:
    families = {net.version for net in declared.machine_networks(lab.spec)}
    for item in lab.spec.machine_network.ntp_servers:
        if item.version not in families:
            text = f"not reachable without {family_name(item.version)} in the machine network: leave it out {got(item)}"
            yield Finding("network.ntp-family", "machine_network.ntp_servers", text)


def mtu(lab: ParsedLab) -> Iterator[Finding]:
    spec = lab.spec
    families = [net.version for net in declared.machine_networks(spec)]
    if V6 in families and spec.machine_network.mtu < SMALLEST_IPV6_MTU:
        text = must_be(f"{SMALLEST_IPV6_MTU} or more with IPv6", spec.machine_network.mtu)
        yield Finding("network.mtu", "machine_network.mtu", text)
