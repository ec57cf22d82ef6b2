# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Network links, by the program `ip`."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import suppress
from typing import Any

IP = "/sbin/ip"
READY_SECONDS = 5


def ip(*words: str) -> str:
    done = subprocess.run([IP, *words], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def shown(*words: str) -> list[dict[str, Any]]:
    return json.loads(ip("-json", *words) or "[]")


def cards() -> dict[str, str]:
    """The MAC address of each network card, by the name of its link."""
    return {link["ifname"]: link["address"] for link in shown("link") if link.get("link_type") == "ether"}


def start(link: str) -> None:
    ip("link", "set", link, "up")


def set_mtu(link: str, mtu: int) -> None:
    ip("link", "set", link, "mtu", str(mtu))


def mtu(link: str) -> int:
    return shown("link", "show", link)[0]["mtu"]


def add_address(link: str, address: str, prefix: int) -> None:
    ip("address", "replace", f"{address}/{prefix}", "dev", link)


def add_route(link: str, to: str, via: str) -> None:
    with suppress(OSError):  # a gateway that cannot be reached shows in the checks
        ip("route", "replace", to, "via", via, "dev", link)


def addresses(link: str) -> list[str]:
    """Those that others can use."""
    found = [info for entry in shown("address", "show", "dev", link) for info in entry.get("addr_info", [])]
    return [info["local"] for info in found if info.get("scope") == "global"]


def neighbours(link: str) -> dict[str, str]:
    """MAC addresses by address, of those who have been spoken with."""
    found = shown("neighbour", "show", "dev", link)
    return {entry["dst"]: entry["lladdr"] for entry in found if "lladdr" in entry}


def routes() -> list[list[str]]:
    """Destination and gateway of each."""
    found = shown("route") + shown("-6", "route")
    return [[route["dst"], route["gateway"]] for route in found if "gateway" in route]


def link_local(link: str) -> bool:
    """Whether it has, or gets soon, the address from which IPv6 begins."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        found = [info for entry in shown("-6", "address", "show", "dev", link) for info in entry.get("addr_info", [])]
        if any(info.get("scope") == "link" and not info.get("tentative") for info in found):
            return True
        time.sleep(0.1)
    return False


def router_advertised(link: str, seconds: float) -> bool:
    """Whether a router says, within some seconds, that it is there."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        # Before DHCP there is no route but the link's own. A router that leads nowhere, as in an isolated network,
        # still says which addresses are on the link.
        if any(not route["dst"].startswith("fe80:") for route in shown("-6", "route", "show", "dev", link)):
            return True
        time.sleep(0.1)
    return False
