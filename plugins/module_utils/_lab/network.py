# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A libvirt network, declared or current on a host."""

from __future__ import annotations

from dataclasses import dataclass

AS_DEFINED = "as defined"
"""Shown in diffs for a running network that matches its definition."""


@dataclass(frozen=True, order=True)
class Range:
    start: str
    end: str


@dataclass(frozen=True, order=True)
class Reservation:
    """One address of a machine, identified by its MAC for IPv4 and its DUID for IPv6."""

    ip: str
    id: str
    name: str


@dataclass(frozen=True, order=True)
class DnsHost:
    ip: str
    names: tuple[str, ...]


@dataclass(frozen=True, order=True)
class Srv:
    domain: str
    service: str
    protocol: str
    target: str
    port: int
    priority: int
    weight: int


@dataclass(frozen=True, order=True)
class Txt:
    name: str
    value: str


@dataclass(frozen=True)
class Definition:
    """The declared part of a network, without what others have added, which is kept."""

    bridge: str
    forward: str
    mtu: int
    domain: str | None
    addresses: tuple[str, ...]
    """The host's own, with the prefix: 192.168.126.1/24."""
    routes_ipv6: bool = False
    """With `nat`, of IPv4 alone: IPv6 is routed then, and what comes from outside is let in."""
    forwarders: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    """Lines for dnsmasq, for options that libvirt does not have."""
    ranges: tuple[Range, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    hosts: tuple[DnsHost, ...] = ()
    srv: tuple[Srv, ...] = ()
    txt: tuple[Txt, ...] = ()


@dataclass(frozen=True, order=True)
class Lease:
    ip: str
    id: str
    iaid: str = ""
    """Only IPv6 has it."""
    client_id: str = ""
    """Only IPv4, where the client sends one beside its MAC."""


@dataclass(frozen=True)
class Health:
    """The state of a running network on the host, which libvirt may not know."""

    bridge: str = "up"
    """`up`, `down` or `gone`."""
    missing_addresses: tuple[str, ...] = ()
    """Missing or unusable."""
    dnsmasq: bool = True
    lost_rules: tuple[str, ...] = ()
    """Chains of the packet filter in which libvirt's rules for it are missing."""
    not_forwarding: tuple[str, ...] = ()
    """Switches of the kernel, as in /proc/sys, that are off, so that packets do not pass between it and the outside."""


@dataclass(frozen=True)
class Network:
    """A network on a host: its definition, its state and its leftovers."""

    name: str
    owner: str | None
    definition: Definition | None
    live: Definition | str | None = AS_DEFINED
    """None: it is stopped."""
    autostart: bool = True
    hook: bool = True
    """Whether the hook is installed that reconnects guests and enables IPv6 after a restart of the network."""
    noted_ports: tuple[str, ...] = ()
    """Ports on the bridge when an interrupted run stopped the network."""
    stale_leases: tuple[Lease, ...] = ()
    """Leases that block a reservation, or are in subnets that will be removed."""
    health: Health = Health()

    @property
    def running(self) -> Definition | None:
        return self.live if isinstance(self.live, Definition) else self.definition if self.live else None
