# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What on the host stands in a network's way, said before anything is changed."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._host.routes import (
    advertising_devices,
    in_the_way,
    routes,
)
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt import network_health as health
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt import network_ports as ports
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt import network_xml as xml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.network import Definition, Network

SYSCTLS = Path("/proc/sys/net/ipv6/conf")
LISTENS_ALTHOUGH_FORWARDING = "2"


def refuse(connection: Any, current: Network | None, desired: Network, uuid: str | None) -> None:
    wanted = desired.running
    if wanted is None:
        return
    running = current.running if current else None
    problems = [
        *_libvirts(connection, desired.name, wanted, uuid),
        *_links(running, wanted),
        *_routes(running, wanted),
        *(_dnsmasq(desired.name) if running else []),
    ]
    if problems:
        raise OperatorError(f"network {desired.name}, nothing was changed: " + "; ".join(problems))


def _libvirts(connection: Any, name: str, wanted: Definition, uuid: str | None) -> Iterator[str]:
    for network in connection.listAllNetworks():
        if network.name() == name:
            continue
        if network.UUIDString() == uuid:
            yield f"its uuid {uuid} is network {network.name()}'s: remove that one first, if this is to take its place"
        elif xml.definition_of(network.XMLDesc()).bridge == wanted.bridge:
            yield f"bridge {wanted.bridge} is network {network.name()}'s: name another bridge"


def _dnsmasq(name: str) -> Iterator[str]:
    impostor = health.impostor(name)
    if impostor:
        yield (
            f"its dnsmasq has died, and libvirt would take {impostor} for it and end that: restart libvirtd, which "
            "then looks anew and starts dnsmasq"
        )


def _links(running: Definition | None, wanted: Definition) -> Iterator[str]:
    bridge = wanted.bridge
    if (running and running.bridge == bridge) or not ports.link_exists(bridge):
        return
    if ports.is_bridge(bridge):
        yield f"bridge {bridge} exists and is no libvirt network's: remove it, or name another bridge"
    else:
        yield f"{bridge} exists and is no bridge: name another bridge"


def _routes(running: Definition | None, wanted: Definition) -> Iterator[str]:
    """Only for what is new: a route that came later does not keep a running network from being looked after."""
    new = [address for address in wanted.addresses if not running or address not in running.addresses]
    own_links = {wanted.bridge, *([running.bridge] if running else [])}
    known = [route for route in routes() if route.device not in own_links] if new else []
    for address in new:
        subnet = ipaddress.ip_interface(address).network
        for route in in_the_way(subnet, known):
            yield f"addresses: {subnet} is routed already: {route}. Give the network another cidr"
    if any(":" in address for address in new):
        yield from _deaf_devices()


def _deaf_devices() -> Iterator[str]:
    for device in advertising_devices():
        try:
            listens = (SYSCTLS / device / "accept_ra").read_text(encoding="ascii").strip()
        except FileNotFoundError:
            continue
        if listens != LISTENS_ALTHOUGH_FORWARDING:
            yield (
                "libvirt starts no IPv6 network: the host has IPv6 routes from router advertisements on "
                f"{device} and would lose them when it forwards IPv6. Let it listen all the same with "
                f"`sysctl net.ipv6.conf.{device}.accept_ra=2`, which role nometal.ipi.host_prep does for good"
            )
