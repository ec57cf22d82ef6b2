# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Joining the networks that a guest finds: by DHCP and router advertisements, or with the address that it is given."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

from . import dhcp4, dhcp6, links

LEASE_SECONDS = 12.0
ROUTER_SECONDS = 6.0


def join(families: list[str], listen_on: float = 0.0) -> list[dict[str, Any]]:
    """Ask on every card at once; what came of it, card by card."""
    cards = links.cards()
    with ThreadPoolExecutor(max(1, 2 * len(cards))) as pool:
        asked = [pool.submit(join_one, link, mac, families, listen_on) for link, mac in cards.items()]
        return [question.result() for question in asked]


def join_with(link: str, addresses: list[dict[str, Any]]) -> None:
    """A static address, and the way out that goes with it."""
    links.start(link)
    for entry in addresses:
        links.add_address(link, entry["address"], entry["prefix"])
        if entry.get("gateway"):
            links.add_route(link, "default", entry["gateway"])


def join_one(link: str, mac: str, families: list[str], listen_on: float) -> dict[str, Any]:
    links.start(link)
    with ThreadPoolExecutor(2) as pool:
        four = pool.submit(_four, link, mac, listen_on) if "ipv4" in families else None
        six = pool.submit(_six, link, mac, listen_on) if "ipv6" in families else None
        lease4, offers4 = four.result() if four else (None, [])
        lease6, offers6, router = six.result() if six else (None, [], False)
    return {
        "link": link,
        "mac": mac,
        "mtu": links.mtu(link),
        "addresses": links.addresses(link),
        "router_advertised": router,
        "dhcp4": asdict(lease4) if lease4 else None,
        "dhcp6": asdict(lease6) if lease6 else None,
        "servers4": sorted({offer.server for offer in offers4}),
        "servers6": sorted({offer.answered_from for offer in offers6}),
    }


def _four(link: str, mac: str, listen_on: float) -> tuple[dhcp4.Lease | None, list[dhcp4.Lease]]:
    lease, offers = dhcp4.ask(link, mac, LEASE_SECONDS, listen_on)
    if lease:
        if lease.mtu:
            links.set_mtu(link, lease.mtu)
        links.add_address(link, lease.address, lease.prefix)
        # RFC 3442: where there are classless routes, nobody looks at the router.
        for to, via in lease.routes or [["default", router] for router in lease.routers[:1]]:
            links.add_route(link, to, via)
    return lease, offers


def _six(link: str, mac: str, listen_on: float) -> tuple[dhcp6.Lease | None, list[dhcp6.Lease], bool]:
    if not links.link_local(link):
        return None, [], False
    router = links.router_advertised(link, ROUTER_SECONDS)
    lease, offers = dhcp6.ask(link, mac, LEASE_SECONDS, listen_on)
    if lease:
        links.add_address(link, lease.address, 128)
    return lease, offers, router
