# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a lab needs of its host's firewall, in no firewall's language."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Forward

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.lab import Address, Lab, Network

DNS, NTP = 53, 123
DHCP = {"ipv4": 67, "ipv6": 547}
SOLICITATION, ADVERTISEMENT = "nd-router-solicit", "nd-router-advert"
ALL_NODES = "ff02::1"
ICMP = {"ipv4": "icmp", "ipv6": "ipv6-icmp"}


@dataclass(frozen=True)
class Rule:
    """`answers`: only packets of connections that are there already. No family: both."""

    verdict: str
    family: str = ""
    incoming: str = ""
    outgoing: str = ""
    source: str = ""
    destination: str = ""
    protocol: str = ""
    first_port: int = 0
    last_port: int = 0
    answers: bool = False
    mac: str = ""
    """Of the sender."""
    icmp: str = ""

    def concerns(self, family: str) -> bool:
        return self.family in ("", family)


@dataclass(frozen=True)
class Ports:
    protocol: str
    first: int
    last: int


def admitted(lab: Lab) -> list[Rule]:
    """To the host, from the lab. Where a plain bridge belongs to others, the host tells its neighbours there, too,
    that it has the lab's addresses: these are let in, and nothing else of the host's."""
    networks = [
        rule
        for family in lab.families
        for network in lab.networks
        for rule in _admitted_to(Rule("accept", family, network.bridge), lab)
    ]
    plain = [
        rule
        for bridge in lab.plain_bridges
        for address in lab.addresses
        # On a LAN that is shared, only those with addresses of the lab.
        for source in [address.cidr if lab.shares_lan else ""]
        for rule in _admitted_to(
            Rule("accept", address.family, bridge, source=source, destination=address.gateway), lab
        )
    ]
    return [*networks, *plain, *of_clients(lab, "accept")]


def of_clients(lab: Lab, verdict: str) -> Iterator[Rule]:
    """Of the BMCs' clients outside the lab, which reach nothing else of it."""
    for address in lab.addresses:
        for client in lab.clients_of(address):
            whom = Rule(verdict, address.family, source=client, destination=address.gateway)
            for ports in ranges(lab.ports):
                yield replace(whom, protocol=ports.protocol, first_port=ports.first, last_port=ports.last)


def _admitted_to(whom: Rule, lab: Lab) -> Iterator[Rule]:
    yield replace(whom, protocol=ICMP[whom.family])
    for ports in services(lab, whom.family):
        yield replace(whom, protocol=ports.protocol, first_port=ports.first, last_port=ports.last)


def forwarded(lab: Lab) -> list[Rule]:
    """Through the host: never more than libvirt lets through itself."""
    return [*_across(lab)] + [
        rule for network in lab.networks for address in network.addresses for rule in _forwarded_for(network, address)
    ]


def _across(lab: Lab) -> Iterator[Rule]:
    for bridge in lab.bridges:
        across = Rule("accept", incoming=bridge, outgoing=bridge)
        if bridge in lab.plain_bridges and lab.shares_lan:
            for address in lab.addresses:
                yield replace(across, family=address.family, source=address.cidr)
                yield replace(across, family=address.family, destination=address.cidr)
        else:
            yield across


def _forwarded_for(network: Network, address: Address) -> Iterator[Rule]:
    if network.forward != Forward.ISOLATED:
        yield Rule("accept", address.family, incoming=network.bridge, source=address.cidr)
        only_answers = network.forward == Forward.NAT
        yield Rule("accept", address.family, outgoing=network.bridge, destination=address.cidr, answers=only_answers)


def guarded(lab: Lab) -> list[Rule]:
    """The host answers on the lab's addresses whichever way a packet came: from elsewhere it must not get there."""
    own = [Rule("return", family, incoming=link) for family in lab.families for link in ("lo", *lab.bridges_of_its_own)]
    own += [
        Rule("return", address.family, incoming=bridge, source=address.cidr)
        for address in lab.addresses
        for bridge in lab.bridges
        if bridge not in lab.bridges_of_its_own
    ]
    return (
        [*solicited(lab)]
        + own
        + [*of_clients(lab, "return")]
        + [
            Rule(
                "drop",
                address.family,
                destination=address.gateway,
                protocol=ports.protocol,
                first_port=ports.first,
                last_port=ports.last,
            )
            for address in lab.addresses
            for ports in services(lab, address.family)
        ]
    )


def solicited(lab: Lab) -> Iterator[Rule]:
    """On a LAN that is shared, the router answers solicitations of the lab's machines alone."""
    for network in _advertising_on_lan(lab):
        asking = Rule("return", "ipv6", network.bridge, protocol=ICMP["ipv6"], icmp=SOLICITATION)
        yield from (replace(asking, mac=mac) for mac in network.known or ())
        yield replace(asking, verdict="drop")


def advertised(lab: Lab) -> list[Rule]:
    """Nor does it advertise itself to all."""
    return [
        Rule(
            "drop",
            "ipv6",
            outgoing=network.bridge,
            destination=ALL_NODES,
            protocol=ICMP["ipv6"],
            icmp=ADVERTISEMENT,
        )
        for network in _advertising_on_lan(lab)
    ]


def _advertising_on_lan(lab: Lab) -> Iterator[Network]:
    for network in lab.networks:
        if network.known is not None and any(address.family == "ipv6" for address in network.addresses):
            yield network


def untracked(lab: Lab) -> list[Rule]:
    """The lab's frames across a plain bridge: where br_netfilter shows them to the firewall, they would get the NAT, or
    the lack of it, that is for the routed packets which they become behind the veth pair. The lab's alone, by address:
    the bridge may belong to others, with connections of the host's own."""
    return [
        rule
        for bridge in lab.plain_bridges
        for address in lab.addresses
        for whom in [Rule("notrack", address.family, bridge)]
        for rule in (replace(whom, source=address.cidr), replace(whom, destination=address.cidr))
    ]


def services(lab: Lab, family: str) -> list[Ports]:
    """What the lab's networks reach on the host."""
    return ranges({("udp", DNS), ("tcp", DNS), ("udp", NTP), ("udp", DHCP[family]), *lab.ports})


def ranges(single: Collection[tuple[str, int]]) -> list[Ports]:
    """Neighbouring ports together: there can be a BMC port for each node."""
    merged: list[Ports] = []
    for protocol, port in sorted(set(single)):
        if merged and merged[-1].protocol == protocol and merged[-1].last == port - 1:
            merged[-1] = Ports(protocol, merged[-1].first, port)
        else:
            merged.append(Ports(protocol, port, port))
    return merged
