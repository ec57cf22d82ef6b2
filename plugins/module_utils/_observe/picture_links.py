# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's links and default routes, as the picture shows them."""

from __future__ import annotations

import socket
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import (
    Address,
    Link,
    read_addresses,
    read_links,
)
from ansible_collections.nometal.ipi.plugins.module_utils._observe.routes import default_routes

PHYSICAL = "physical"
FAMILIES = {"ipv4": socket.AF_INET, "ipv6": socket.AF_INET6}


def shown_links() -> dict[str, dict[str, Any]]:
    """By name: kind, mac, mtu, up, carrier, master, peer, addresses."""
    addresses = read_addresses()
    return {name: link_of(link, addresses) for name, link in read_links().items()}


def link_of(link: Link, addresses: Sequence[Address] = ()) -> dict[str, Any]:
    own = [address for address in addresses if address.link == link.name and not address.interface.is_link_local]
    return {
        "kind": "tap" if link.tap else link.kind or (PHYSICAL if link.hardware == "ether" else link.hardware),
        "mac": link.mac or None,
        "mtu": link.mtu,
        "up": link.up,
        "carrier": link.carrier,
        "master": link.master,
        "peer": link.peer if link.kind == "veth" else None,
        "addresses": [str(address.interface) for address in own],
    }


def shown_uplinks() -> list[dict[str, Any]]:
    """Of each family the default route that is taken."""
    return [
        {"family": family, "device": hop.device, "gateway": hop.gateway or None}
        for family, number in FAMILIES.items()
        for route in default_routes(number)[:1]
        for hop in route.hops
    ]


def concerning(links: Mapping[str, dict[str, Any]], named: Collection[str]) -> dict[str, dict[str, Any]]:
    """Those named, what is on them, what they are on, and the other ends of veths."""
    masters = {link["master"] for name, link in links.items() if name in named}
    return {
        name: link
        for name, link in links.items()
        if name in masters or {name, link["master"], link["peer"]}.intersection(named)
    }
