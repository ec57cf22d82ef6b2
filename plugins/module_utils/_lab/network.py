# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A libvirt network as it is declared, and as a host has it."""

from __future__ import annotations

from dataclasses import dataclass

AS_DEFINED = "as defined"
"""What a running network usually is: it would be tedious to read everything twice in each diff."""


@dataclass(frozen=True, order=True)
class Range:
    start: str
    end: str


@dataclass(frozen=True, order=True)
class Reservation:
    """One address of one machine, which is known by its MAC for IPv4 and by its DUID for IPv6."""

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
    """All of a network that is declared. What others have added to it is not seen here, and stays."""

    bridge: str
    forward: str
    mtu: int
    domain: str | None
    addresses: tuple[str, ...]
    """The host's own, with the prefix: 192.168.126.1/24."""
    forwarders: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    """Lines for dnsmasq, for what libvirt has no words."""
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
    """What the host has of a running network, which may be less than libvirt believes."""

    bridge: str = "up"
    """Or down, or gone."""
    missing_addresses: tuple[str, ...] = ()
    """Or there, and of no use."""
    dnsmasq: bool = True
    lost_rules: tuple[str, ...] = ()
    """Chains of the packet filter in which libvirt's rules for it are missing."""
    not_forwarding: tuple[str, ...] = ()
    """Switches of the kernel, as in /proc/sys, that are off, so that packets do not pass between it and the outside."""


@dataclass(frozen=True)
class Network:
    """A network on a host: what is written down, what runs, and what a network leaves lying about."""

    name: str
    owner: str | None
    definition: Definition | None
    live: Definition | str | None = AS_DEFINED
    """None: it is stopped."""
    autostart: bool = True
    hook: bool = True
    """Puts running guests back on the bridge and makes its IPv6 address usable, whoever restarts the network."""
    noted_ports: tuple[str, ...] = ()
    """They were on the bridge when an interrupted run of ours stopped the network."""
    stale_leases: tuple[Lease, ...] = ()
    """They keep a reservation from its address, or are of subnets that the network is about to leave."""
    health: Health = Health()

    @property
    def running(self) -> Definition | None:
        return self.live if isinstance(self.live, Definition) else self.definition if self.live else None
