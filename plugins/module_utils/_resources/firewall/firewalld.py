# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Forward
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.firewalld_files import (
    DIRECTORIES,
    copy_of,
    places_of,
)
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.host import program, run, succeeds
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.rules import NTP, Ports, ranges

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.lab import Address, Lab, Network

ZONE = "zone=libvirt"
ROUTED_ZONE = "zone=libvirt-routed"
PLACES = {ZONE: ZONE, ROUTED_ZONE: "policy=libvirt-to-host"}  # where rules for packets to the host go
NOW, ALWAYS = "now", "always"
COMMANDS = {NOW: ("firewall-cmd",), ALWAYS: ("firewall-cmd", "--permanent")}
WHILE_STOPPED = {ALWAYS: ("firewall-offline-cmd",)}


@dataclass(frozen=True)
class Opening:
    """What the lab has in a zone, or in a policy, of firewalld: a bridge, or a rule about one of its addresses."""

    scope: str
    place: str
    kind: str
    value: str

    def __str__(self) -> str:
        return f"{self.scope} {self.place} {self.kind}={self.value}"


def opening_from(text: str) -> Opening:
    scope, place, rest = text.split(" ", 2)
    kind, value = rest.split("=", 1)
    return Opening(scope, place, kind, value)


class Firewalld:
    """firewalld's permanent configuration and, while it runs, the present one.

    Reloading it would lose what others have set for the present only, so nothing is made that needs that: no zone of
    the lab's own, but rules in libvirt's zones. Those open DHCP, DNS and ICMP by themselves.
    """

    def __init__(self) -> None:
        self._commands = COMMANDS if succeeds("firewall-cmd", "--state") else WHILE_STOPPED
        self._zones = run(*self._commands[ALWAYS], "--get-zones").split()

    def wanted(self, lab: Lab) -> list[Opening]:
        if "libvirt" not in self._zones:
            return []
        return [
            Opening(scope, *rest)
            for scope in self._commands
            for rest in dict.fromkeys([*self._bridges(lab), *self._rules(lab), *self._clients(lab)])
        ]

    def refuse_conflicts(self) -> None:
        if "libvirt" not in self._zones and self._commands is not WHILE_STOPPED:
            raise NotThereYetError(
                "firewalld runs without libvirt's zone: install libvirt, then reload firewalld (firewall-cmd --reload)."
            )

    def _bridges(self, lab: Lab) -> Iterator[tuple[str, str, str]]:
        """Those that libvirt itself puts into no zone. The zone of a bridge that others use is theirs to choose."""
        for network in lab.networks:
            if network.forward == Forward.OPEN:
                yield self._zone_of(network), "interface", network.bridge
        for bridge in () if lab.shares_lan else lab.plain_bridges:
            yield ZONE, "interface", bridge

    def _rules(self, lab: Lab) -> Iterator[tuple[str, str, str]]:
        for network in lab.networks:
            for address in network.addresses:
                for ports in ranges({("udp", NTP), *lab.ports}):
                    yield PLACES[self._zone_of(network)], "rich-rule", rich_rule(address, ports)

    def _clients(self, lab: Lab) -> Iterator[tuple[str, str, str]]:
        """In all zones by which packets may come from elsewhere: which it is, routes may change."""
        rules = [
            rich_rule(address, ports, client)
            for address in lab.addresses
            for client in lab.clients_of(address)
            for ports in ranges(lab.ports)
        ]
        for zone in self._zones_in_use() if rules else ():
            yield from ((f"zone={zone}", "rich-rule", rule) for rule in rules)

    def _zones_in_use(self) -> list[str]:
        """With links or sources, and the default; not libvirt's, nor what firewalld has for the present only."""
        scope = NOW if NOW in self._commands else ALWAYS
        shown = run(*self._commands[scope], "--list-all-zones")
        default = run(*self._commands[scope], "--get-default-zone").strip()
        return [
            zone
            for zone in zones_in_use(shown, default)
            if zone in self._zones and f"zone={zone}" not in (ZONE, ROUTED_ZONE)
        ]

    def _zone_of(self, network: Network) -> str:
        is_routed = network.forward in (Forward.ROUTE, Forward.OPEN) and "libvirt-routed" in self._zones
        return ROUTED_ZONE if is_routed else ZONE

    def read(self, known: Collection[Opening]) -> list[Opening]:
        """Those of the known ones that are there, now or always: firewalld's rules carry no mark of an owner."""
        # Known as permanent only, from when firewalld was stopped, they are in force since it has started.
        everywhere = dict.fromkeys(
            Opening(scope, opening.place, opening.kind, opening.value) for scope in self._commands for opening in known
        )
        places = self._places({(opening.scope, copy_of(opening.place).kind) for opening in everywhere})
        lists = {(opening.scope, opening.place, opening.kind) for opening in everywhere}
        there = {Opening(*where, value) for where in lists if where[:2] in places for value in self._listed(*where)}
        return [opening for opening in everywhere if opening in there]

    def _places(self, kinds: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        """With their scopes. Zones of others may go at any time, and the lab's rules with them."""
        return {
            (scope, f"{kind}={name}")
            for scope, kind in kinds
            for name in run(*self._commands[scope], f"--get-{DIRECTORIES[kind]}").split()
        }

    def _listed(self, scope: str, place: str, kind: str) -> list[str]:
        shown = run(*self._commands[scope], f"--{place}", f"--list-{kind}s")
        return shown.split() if kind == "interface" else shown.splitlines()

    def add(self, opening: Opening) -> None:
        self._change("add", opening)

    def remove(self, opening: Opening) -> None:
        self._change("remove", opening)

    def copies(self, noted: Collection[str]) -> list[str]:
        """The places of which firewalld has a copy that serves no purpose any more."""
        return [
            place
            for place in dict.fromkeys([*PLACES, *PLACES.values(), *places_of(noted)])
            if copy_of(place).is_needless(noted)
        ]

    def restore(self, place: str) -> None:
        copy = copy_of(place)
        if self._commands is WHILE_STOPPED:
            copy.path.unlink(missing_ok=True)  # the command for that would make a copy of zone public
        elif copy.path.exists():
            run(*self._commands[ALWAYS], f"--load-{copy.kind}-defaults={copy.name}")
        copy.former.unlink(missing_ok=True)

    def _change(self, verb: str, opening: Opening) -> None:
        run(*self._commands[opening.scope], f"--{opening.place}", f"--{verb}-{opening.kind}={opening.value}")


def installed() -> bool:
    return bool(program("firewall-cmd") and program("firewall-offline-cmd"))


def zones_in_use(shown: str, default: str) -> list[str]:
    """Of what --list-all-zones shows."""
    found, zone = [default], ""
    for line in shown.splitlines():
        key, _colon, value = line.strip().partition(":")
        if line and not line[0].isspace():
            zone = line.split()[0]
        elif key in ("interfaces", "sources") and value.strip():
            found.append(zone)
    return list(dict.fromkeys(found))


def rich_rule(address: Address, ports: Ports, source: str = "") -> str:
    """As firewalld shows it."""
    whom = f'source address="{source}" ' if source else ""
    port = f"{ports.first}-{ports.last}" if ports.last > ports.first else str(ports.first)
    return (
        f'rule family="{address.family}" {whom}destination address="{address.gateway}" '
        f'port port="{port}" protocol="{ports.protocol}" accept'
    )
