# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's links and default routes, as `ip` tells them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run

PHYSICAL = "physical"


def read_links() -> dict[str, dict[str, Any]]:
    """By name: kind, mac, mtu, up, carrier, master, peer, addresses."""
    shown = [item for item in json.loads(run("ip", "-json", "-details", "address", "show")) if item.get("ifname")]
    return {item["ifname"]: link_of(item) for item in shown}


def link_of(shown: Mapping[str, Any]) -> dict[str, Any]:
    about = shown.get("linkinfo", {})
    flags = shown.get("flags", [])
    addresses = [item for item in shown.get("addr_info", []) if "local" in item and item.get("scope") != "link"]
    return {
        "kind": about.get("info_data", {}).get("type") or about.get("info_kind") or _kind_of_hardware(shown),
        "mac": shown.get("address"),
        "mtu": shown.get("mtu"),
        "up": "UP" in flags,
        "carrier": "LOWER_UP" in flags,
        "master": shown.get("master"),
        # "link" is a name of this network namespace only without a namespace's number.
        "peer": shown.get("link") if about.get("info_kind") == "veth" and "link_netnsid" not in shown else None,
        "addresses": [f"{item['local']}/{item['prefixlen']}" for item in addresses],
    }


def _kind_of_hardware(shown: Mapping[str, Any]) -> str:
    return PHYSICAL if shown.get("link_type") == "ether" else str(shown.get("link_type", "unknown"))


def read_uplinks() -> list[dict[str, Any]]:
    """Of each family the default route that is taken."""
    return [uplink for family in ("ipv4", "ipv6") for uplink in _uplinks(family)]


def _uplinks(family: str) -> list[dict[str, Any]]:
    option = {"ipv4": "-4", "ipv6": "-6"}[family]
    routes = json.loads(run("ip", "-json", option, "route", "show", "default") or "[]")
    best: dict[str, Any] = min(routes, key=lambda route: route.get("metric", 0), default={})
    hops = best.get("nexthops") or [best]
    return [
        {"family": family, "device": hop["dev"], "gateway": hop.get("gateway") or hop.get("via", {}).get("host")}
        for hop in hops
        if "dev" in hop
    ]


def concerning(links: Mapping[str, dict[str, Any]], named: Collection[str]) -> dict[str, dict[str, Any]]:
    """Those named, what is on them, what they are on, and the other ends of veths."""
    masters = {link["master"] for name, link in links.items() if name in named}
    return {
        name: link
        for name, link in links.items()
        if name in masters or {name, link["master"], link["peer"]}.intersection(named)
    }
