# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A libvirt network as the lab knows it, and how one becomes another. Pure: no libvirt, no host."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._reconcile import Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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


LIVE_SECTIONS = {
    "ranges": "IP_DHCP_RANGE",
    "reservations": "IP_DHCP_HOST",
    "hosts": "DNS_HOST",
    "srv": "DNS_SRV",
    "txt": "DNS_TXT",
}
"""What libvirt changes in a running network, and what it calls that."""
HOW_TO_ALLOW = "Set `restart: allowed` (with the role: `-e lab_network_restart=allowed`)"
FIELDS_OF_RESTART = tuple(field.name for field in fields(Definition) if field.name not in LIVE_SECTIONS)


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


def plan(current: Network | None, desired: Network | None, *, may_restart: bool) -> Sequence[Step]:
    if desired is not None:
        absent = Network(desired.name, None, None, live=None, autostart=False, hook=False)
        return _plan_presence(current or absent, desired, may_restart)
    return [] if current is None else _plan_removal(current)


def _plan_presence(current: Network, desired: Network, may_restart: bool) -> Sequence[Step]:
    running, wanted = current.running, desired.definition
    differing = _differing(running, wanted, FIELDS_OF_RESTART)
    if differing and not may_restart:
        raise OperatorError(
            f"network {desired.name} runs, and only a restart can change {_changes(running, wanted, differing)}. "
            f"It stays as it is. {HOW_TO_ALLOW}: guests then lose their network for a second or two and get all of "
            "it back."
        )
    # Without its bridge, nothing is plugged in any more: nobody has to allow that it comes back.
    restart = bool(differing) or current.health.bridge == "gone"
    redefined = (current.owner, current.definition) != (desired.owner, desired.definition)
    starts = restart or running is None
    sections = [] if restart else _differing(running, wanted, LIVE_SECTIONS)
    leases = ", ".join(lease.ip for lease in current.stale_leases)
    steps = {
        Step("define", desired.name): redefined,
        Step("install hook of", desired.name): not current.hook,
        Step("destroy", desired.name): restart,
        Step("forget", leases): starts and bool(leases),
        Step("start", desired.name): starts,
        **({} if restart or running is None else _mending(desired.name, running.bridge, current.health)),
        **{Step("update", section): True for section in sections},
        Step("reconnect ports of", desired.name): restart or bool(current.noted_ports),
        Step("autostart" if desired.autostart else "disable autostart of", desired.name): (
            current.autostart != desired.autostart
        ),
        Step("release", leases): not starts and bool(leases),
    }
    return [step for step, needed in steps.items() if needed]


def _mending(name: str, bridge: str, health: Health) -> dict[Step, bool]:
    """While it runs. Addresses come after the bridge, which loses those of IPv6 when it goes down."""
    return {
        Step("restore packet filter rules of", name): bool(health.lost_rules),
        Step("forward packets of", name): bool(health.not_forwarding),
        Step("bring up", bridge): health.bridge == "down",
        **{Step("add address", address): True for address in health.missing_addresses},
        Step("start dnsmasq of", name): not health.dnsmasq,
    }


def _plan_removal(current: Network) -> Sequence[Step]:
    # The definition goes last: as long as it is there, it tells whose the rest is.
    steps = {
        "destroy": current.live is not None,
        "remove hook of": current.hook,
        "forget ports of": bool(current.noted_ports),
        "undefine": current.definition is not None,
    }
    return [Step(verb, current.name) for verb, needed in steps.items() if needed]


def _differing(running: Definition | None, wanted: Definition | None, names: Iterable[str]) -> list[str]:
    if running is None:
        return []
    return [name for name in names if getattr(running, name) != getattr(wanted, name)]


def _changes(running: Definition | None, wanted: Definition | None, names: Iterable[str]) -> str:
    changes = ((name, getattr(running, name), getattr(wanted, name)) for name in names)
    return "; ".join(f"{name} from {_shown(before)} to {_shown(after)}" for name, before, after in changes)


def _shown(value: object) -> str:
    return (", ".join(value) if isinstance(value, tuple) else str(value or "")) or "none"
