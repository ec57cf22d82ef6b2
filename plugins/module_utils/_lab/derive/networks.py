# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The networks of the model, as arguments of libvirt_bridge_net and veth_pair."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.addresses import V6, Span, family_name
from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Address, Network
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import USUAL_MTU
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive import declared
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.dns import full_name
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.lab import Lab
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import MAC_PREFIX
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.network import StaticRoute
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Forward, NetworkRole, Topology

DUID_LL = "00:03:00:01"
"""RFC 8415: a DUID of the link-layer address alone, as RHCOS uses it."""


def networks(lab: Lab) -> list[dict[str, Any]]:
    return [_machine_network(lab), *_provisioning_network(lab)]


def veth_pairs(lab: Lab) -> list[dict[str, Any]]:
    """With topology direct the pair is absent: a lab whose topology was changed may still have it."""
    own = lab.spec.machine_network
    network_end, node_end = lab.identity.veth_ends
    return [
        {
            "name": network_end,
            "a": {"name": network_end, "bridge": lab.identity.network_bridge},
            "b": {"name": node_end, "bridge": own.bridge},
            "mtu": own.mtu,
            "shared": own.shared_lan,
            "state": "absent" if own.topology == Topology.DIRECT else "present",
        }
    ]


def installer_bridges(lab: Lab) -> list[str]:
    """The bridges in install-config.yaml."""
    provisioning = lab.spec.provisioning_network
    return [lab.spec.machine_network.bridge, *([provisioning.bridge] if provisioning else [])]


def machine_network_name(lab: Lab) -> str:
    """With topology direct, the network has the name of its bridge, by which the installer finds it."""
    own = lab.spec.machine_network
    return own.bridge if own.topology == Topology.DIRECT else lab.identity.prefix


def _machine_network(lab: Lab) -> dict[str, Any]:
    own = lab.spec.machine_network
    direct = own.topology == Topology.DIRECT
    return {
        "role": NetworkRole.MACHINE,
        "name": machine_network_name(lab),
        "uuid": lab.identity.uuid_of("network/machine"),
        "bridge": own.bridge if direct else lab.identity.network_bridge,
        "forward": own.forward,
        "mtu": own.mtu,
        "domain": lab.domain,
        "autostart": True,
        "addresses": [_address(family.network, family.gateway) for family in lab.families],
        "dhcp": {
            "ranges": [] if own.shared_lan else [_range(family.dhcp_pool) for family in lab.families],
            "reservations": list(_reservations(lab)),
            "pools": [*_own_pools(lab), *_bootstrap_pools(lab)],
            "known_only": own.shared_lan,
        },
        "dns": _dns(lab),
        "ntp_servers": [str(item) for item in own.ntp_servers],
    }


def _provisioning_network(lab: Lab) -> Iterator[dict[str, Any]]:
    own, plan = lab.spec.provisioning_network, lab.provisioning
    if own is None or plan is None:
        return
    yield {
        "role": NetworkRole.PROVISIONING,
        "name": own.bridge,
        "uuid": lab.identity.uuid_of("network/provisioning"),
        "bridge": own.bridge,
        "forward": Forward.ISOLATED,
        "mtu": USUAL_MTU,
        "domain": None,
        "autostart": True,
        "addresses": [_address(plan.network, plan.host)],
        "dhcp": {"ranges": [], "reservations": [], "pools": [], "known_only": False},
        "dns": {"hosts": [], "wildcards": [], "forwarders": [], "records": {"srv": [], "txt": []}},
        "ntp_servers": [],
    }


def _address(net: Network, gateway: Address) -> dict[str, Any]:
    return {
        "cidr": str(net),
        "gateway": str(gateway),
        "prefix": net.prefixlen,
        "family": family_name(net.version).lower(),
    }


def _range(span: Span) -> dict[str, Any]:
    return {"start": str(span.start), "end": str(span.end), "family": family_name(span.start.version).lower()}


def _reservations(lab: Lab) -> Iterator[dict[str, Any]]:
    for node in lab.nodes:
        yield _reservation(lab, node.name, node.mac, lab.ips(node))
    if lab.bootstrap_mac:
        yield _reservation(lab, "bootstrap", lab.bootstrap_mac, [str(item) for item in lab.bootstrap_ips])
    for item in lab.spec.machine_network.reservations:
        yield _reservation(lab, item.name, item.mac, [str(ip) for ip in lab.own(item.ip)])


def _reservation(lab: Lab, name: str, mac: str, ips: list[str]) -> dict[str, Any]:
    speaks_v6 = any(family.network.version == V6 for family in lab.families)
    return {
        "name": name,
        "fqdn": lab.fqdn(name),
        "mac": mac,
        "duid": f"{DUID_LL}:{mac}" if speaks_v6 else None,
        "ips": ips,
    }


def _own_pools(lab: Lab) -> Iterator[dict[str, Any]]:
    for pool in lab.spec.machine_network.pools:
        for span in declared.spans(pool):
            if span:
                yield _pool(pool.mac_prefix, span, pool.static_routes)


def _bootstrap_pools(lab: Lab) -> Iterator[dict[str, Any]]:
    for family in lab.families:
        own = declared.bootstrap_pool(lab.spec, family.network.version)
        if family.bootstrap_pool and family.bootstrap_pool != own:
            yield _pool(MAC_PREFIX, family.bootstrap_pool, ())


def _pool(prefix: str, span: Span, routes: tuple[StaticRoute, ...]) -> dict[str, Any]:
    usable = routes if span.start.version != V6 else ()
    return {
        "mac_prefix": prefix,
        **_range(span),
        "static_routes": [{"to": str(route.to), "via": str(route.via)} for route in usable],
    }


def _dns(lab: Lab) -> dict[str, Any]:
    own = lab.spec.machine_network.dns
    names = {full_name(lab.spec, name): record for name, record in own.records.items()}
    return {
        "hosts": _by_address(_host_names(lab)),
        "wildcards": list(_wildcards(lab)),
        "forwarders": [str(item) for item in own.forwarders],
        "records": {
            "srv": [_srv(name, service) for name, record in names.items() for service in record.srv],
            "txt": [{"name": name, "value": text} for name, record in names.items() for text in record.txt],
        },
    }


def _by_address(pairs: Iterator[tuple[str, str]]) -> list[dict[str, Any]]:
    """libvirt needs each address once, with all its names."""
    hosts: dict[str, list[str]] = {}
    for ip, name in pairs:
        names = hosts.setdefault(ip, [])
        if name not in names:
            names.append(name)
    return [{"ip": ip, "names": names} for ip, names in hosts.items()]


def _host_names(lab: Lab) -> Iterator[tuple[str, str]]:
    for family in lab.families:
        if family.api:
            yield str(family.api), lab.fqdn("api")
            yield str(family.api), lab.fqdn("api-int")
    for node in lab.nodes:
        yield from ((ip, lab.fqdn(node.name)) for ip in lab.ips(node))
    yield from ((str(ip), lab.fqdn("bootstrap")) for ip in lab.bootstrap_ips)
    for item in lab.spec.machine_network.reservations:
        yield from ((str(ip), lab.fqdn(item.name)) for ip in lab.own(item.ip))
    for name, record in lab.spec.machine_network.dns.records.items():
        if not name.startswith("*."):
            yield from ((str(ip), full_name(lab.spec, name)) for ip in record.addresses)


def _wildcards(lab: Lab) -> Iterator[dict[str, Any]]:
    for family in lab.families:
        if family.ingress:
            yield {"domain": lab.fqdn("apps"), "ip": str(family.ingress)}
    for name, record in lab.spec.machine_network.dns.records.items():
        if name.startswith("*."):
            yield from ({"domain": name[2:], "ip": str(ip)} for ip in record.addresses)


def _srv(name: str, service: Any) -> dict[str, Any]:
    own, protocol, domain = name.split(".", 2)
    return {
        "service": own.lstrip("_"),
        "protocol": protocol.lstrip("_"),
        "domain": domain,
        "target": service.target,
        "port": service.port,
        "priority": service.priority,
        "weight": service.weight,
    }
