# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The addresses that a specification declares, by family."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import NamedTuple

from ansible_collections.nometal.ipi.plugins.module_utils._core.addresses import Addresses, Span, first_host, of_family
from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Address, Network
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import MAC_PREFIX
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import NEWEST, release_of
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.lab import LabSpec
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.network import DEFAULT_CIDR, Pool, PrefixPool

DUAL_STACK_VIPS_SINCE = (4, 12)


class Claim(NamedTuple):
    """An address that the specification gives to something."""

    address: Address
    path: str
    owner: str


class DeclaredRange(NamedTuple):
    """A range that the specification gives to DHCP; `span` is None if its ends are invalid."""

    span: Span | None
    path: str
    owner: str


def machine_networks(spec: LabSpec) -> tuple[Network, ...]:
    """The primary family first."""
    wanted = spec.machine_network
    if wanted.cidr is None and wanted.cidr_v6 is None:
        return (ipaddress.ip_network(DEFAULT_CIDR),)
    return tuple(net for net in (wanted.cidr, wanted.cidr_v6) if net is not None)


def gateway_of(spec: LabSpec, net: Network) -> Address:
    return of_family(spec.machine_network.gateway or (), net.version) or first_host(net)


def release(spec: LabSpec) -> tuple[int, int] | None:
    """The release to be installed, as numbers; None without an installation."""
    return (release_of(spec.install.version) or NEWEST) if spec.install else None


def vip_families(spec: LabSpec) -> tuple[int, ...]:
    """The families of both VIPs: as declared, else all that the release supports."""
    vips = spec.machine_network.vips
    declared = vips.api or vips.ingress
    if declared:
        return tuple(item.version for item in declared)
    families = tuple(net.version for net in machine_networks(spec))
    return families if (release(spec) or DUAL_STACK_VIPS_SINCE) >= DUAL_STACK_VIPS_SINCE else families[:1]


def claims(spec: LabSpec) -> Iterator[Claim]:
    """Every declared address of the machine network but the gateway."""
    wanted = spec.machine_network
    yield from _each(wanted.vips.api, "machine_network.vips.api", "the API VIP")
    yield from _each(wanted.vips.ingress, "machine_network.vips.ingress", "the ingress VIP")
    yield from _each(spec.bootstrap.ip, "bootstrap.ip", f"the bootstrap VM's {spec.bootstrap.address} address")
    for item in wanted.reservations:
        yield from _each(item.ip, f"{item.at}.ip", f"the reservation {item.name}")
    for name, override in spec.nodes.overrides.items():
        yield from _each(override.ip, f"nodes.overrides.{name}.ip", f"the node {name}")


def _each(addresses: Addresses | None, path: str, owner: str) -> Iterator[Claim]:
    several = addresses is not None and len(addresses) > 1
    for index, item in enumerate(addresses or ()):
        yield Claim(item, f"{path}[{index}]" if several else path, owner)


def ranges(spec: LabSpec) -> Iterator[DeclaredRange]:
    wanted = spec.machine_network
    if wanted.dhcp_pool:
        for span in spans(wanted.dhcp_pool):
            yield DeclaredRange(span, "machine_network.dhcp_pool", "the DHCP pool")
    for pool in wanted.pools:
        for span in spans(pool):
            yield DeclaredRange(span, pool.at, f"the pool of {pool.mac_prefix}")


def spans(pool: Pool | PrefixPool) -> list[Span | None]:
    """One per family; None where an end is missing, or start is after end."""
    families = dict.fromkeys(item.version for item in (*pool.start, *pool.end))
    return [_span(of_family(pool.start, family), of_family(pool.end, family)) for family in families]


def _span(start: Address | None, end: Address | None) -> Span | None:
    return Span(start, end) if start and end and int(start) <= int(end) else None


def span_of(pool: Pool | PrefixPool | None, family: int) -> Span | None:
    usable = [span for span in spans(pool) if span] if pool else []
    return next((span for span in usable if span.start.version == family), None)


def bootstrap_pool(spec: LabSpec, family: int) -> Span | None:
    """The declared range that serves the bootstrap VM's random MAC."""
    serving = (pool for pool in spec.machine_network.pools if MAC_PREFIX.startswith(pool.mac_prefix))
    return next((span for span in (span_of(pool, family) for pool in serving) if span), None)
