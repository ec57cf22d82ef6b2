# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What on the host stands in a network's way, said before anything is changed."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._observe import network_health as health
from ansible_collections.nometal.ipi.plugins.module_utils._observe import network_xml as xml
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import ports_of, read_links
from ansible_collections.nometal.ipi.plugins.module_utils._observe.routes import advertising_devices, in_the_way, routes
from ansible_collections.nometal.ipi.plugins.module_utils._observe.wiring import MARK
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.state import HOW_TO_ALLOW

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.network import Definition, Network

SYSCTLS = Path("/proc/sys/net/ipv6/conf")
LISTENS_ALTHOUGH_FORWARDING = "2"
RUNNING = 1  # libvirt's VIR_CONNECT_LIST_DOMAINS_ACTIVE


@dataclass(frozen=True)
class Leaving:
    """What is gone by the time that a network is made. In check mode it is there still, and yet in no one's way."""

    networks: Collection[str] = ()
    links: Collection[str] = ()


def refuse(
    connection: Any, current: Network | None, desired: Network, uuid: str | None, leaving: Leaving = Leaving()
) -> None:
    wanted = desired.running
    if wanted is None:
        return
    running = current.running if current else None
    others = [network for network in connection.listAllNetworks() if network.name() != desired.name]
    former = {_bridge_of(network) for network in others if network.name() in leaving.networks}
    own = {*former, *([running.bridge] if running else [])}
    problems = [
        *_libvirts([network for network in others if network.name() not in leaving.networks], wanted, uuid),
        *([] if wanted.bridge in own else _link(connection, wanted.bridge, leaving.links)),
        *_routes(running, wanted, {wanted.bridge, *own}),
        *(_deaf_devices() if _has_to_forward_ipv6(current, wanted) else []),
        *(_dnsmasq(desired.name) if running else []),
    ]
    if problems:
        raise OperatorError(f"network {desired.name} is refused: " + "; ".join(problems))


def refuse_to_unplug(connection: Any, leaving: Leaving, keep: Collection[str]) -> None:
    for name in leaving.networks:
        network = connection.networkLookupByName(name)
        there = _plugged_in(connection, network.bridgeName(), leaving.links) if network.isActive() else {}
        if there:
            way_out = _way_for_guests(connection, keep) if any(there.values()) else ""
            raise OperatorError(
                f"network {name} is no longer wanted, but {_shown(there)} on its bridge would be unplugged. "
                f"It stays. {way_out}{HOW_TO_ALLOW} to have it removed all the same."
            )


def _way_for_guests(connection: Any, keep: Collection[str]) -> str:
    if {network.name() for network in connection.listAllNetworks()}.issuperset(keep):
        return "Run stage `nodes`, which takes it from the VMs, switch them off, run stages `network` and `bmc`. Or: "
    # Stage `nodes` wants a network that is yet to be made.
    return "Switch the VMs off, and run stages `network`, `nodes` and `bmc`. Or: "


def _plugged_in(connection: Any, bridge: str, leaving: Collection[str]) -> dict[str, str]:
    """By port: the VM that it is of, if it is one's."""
    there = [port for port in ports_of(bridge, read_links()) if port not in leaving]
    domains = connection.listAllDomains(RUNNING) if there else []
    guests = {port: domain.name() for domain in domains for port in xml.ports_of_guest(domain.XMLDesc())}
    return {port: guests.get(port, "") for port in there}


def _shown(there: dict[str, str]) -> str:
    return ", ".join(f"{port} of VM {guest}" if guest else port for port, guest in there.items())


def _libvirts(others: Iterable[Any], wanted: Definition, uuid: str | None) -> Iterator[str]:
    for network in others:
        if network.UUIDString() == uuid:
            yield f"its uuid {uuid} is network {network.name()}'s: remove that one first, if this is to take its place"
        elif _bridge_of(network) == wanted.bridge:
            yield f"bridge {wanted.bridge} is network {network.name()}'s: name another bridge"


def _bridge_of(network: Any) -> str:
    return xml.definition_of(network.XMLDesc()).bridge


def _dnsmasq(name: str) -> Iterator[str]:
    impostor = health.impostor(name)
    if impostor:
        yield (
            f"its dnsmasq has died, and libvirt would take {impostor} for it and end that: restart libvirtd, which "
            "then looks anew and starts dnsmasq"
        )


def _link(connection: Any, bridge: str, leaving: Collection[str]) -> Iterator[str]:
    link = read_links().get(bridge)
    if link is None:
        return
    if link.kind != "bridge":
        yield f"{bridge} exists and is not a bridge: name another bridge"
    elif bridge not in leaving or link.alias != MARK:
        yield f"bridge {bridge} exists and belongs to no libvirt network: remove it, or name another bridge"
    else:
        there = _plugged_in(connection, bridge, leaving)
        if there:
            yield f"bridge {bridge} has to go first, but has {_shown(there)} on it: switch the VMs off"


def _routes(running: Definition | None, wanted: Definition, own_links: Collection[str]) -> Iterator[str]:
    """Only for what is new: a route that came later does not keep a running network from being looked after."""
    new = [address for address in wanted.addresses if not running or address not in running.addresses]
    known = [route for route in routes() if route.device not in own_links] if new else []
    for address in new:
        subnet = ipaddress.ip_interface(address).network
        for route in in_the_way(subnet, known):
            yield f"addresses: {subnet} is routed already: {route}. Give the network another cidr"


def _has_to_forward_ipv6(current: Network | None, wanted: Definition) -> bool:
    """Because it is new to the network, or because it has been switched off meanwhile."""
    running = current.running if current else None
    before = running.addresses if running else ()
    is_off = current is not None and any("/ipv6/" in switch for switch in current.health.not_forwarding)
    return is_off or any(":" in address and address not in before for address in wanted.addresses)


def _deaf_devices() -> Iterator[str]:
    for device in advertising_devices():
        try:
            listens = (SYSCTLS / device / "accept_ra").read_text(encoding="ascii").strip()
        except FileNotFoundError:
            continue
        if listens != LISTENS_ALTHOUGH_FORWARDING:
            yield (
                "IPv6 forwarding is not switched on: the host has IPv6 routes from router advertisements on "
                f"{device} and would lose them when it forwards IPv6. Let it listen all the same with "
                f"`sysctl net.ipv6.conf.{device}.accept_ra=2`, which role nometal.ipi.host_prep does for good"
            )
