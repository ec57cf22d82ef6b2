# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What only the host can see: its own way out, its own view of the lab's names and addresses, who else is here."""

from __future__ import annotations

import http.client
import json
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ansible_collections.nometal.ipi.plugins.module_utils._agent import lookups, pings
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import (
    HOST,
    Check,
    compared,
    verdict,
)
from ansible_collections.nometal.ipi.plugins.module_utils._observe import installer_view
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect
from ansible_collections.nometal.ipi.plugins.module_utils._observe.routes import default_routes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab

RESOLVERS = (Path("/run/systemd/resolve/resolv.conf"), Path("/etc/resolv.conf"))
ANY_NAME = "localhost"
"""Every name server has an answer to it."""
PROBE_SECONDS = 1.0


def strangers(connection: Any, lab: Lab) -> list[str]:
    own = {node.uuid for node in lab.nodes}
    return sorted(uuid for domain in connection.listAllDomains() if (uuid := domain.UUIDString()) not in own)


def outside(lab: Lab) -> list[dict[str, str]]:
    """What answers this host beyond itself: routers and name servers. The VMs must get the same answers."""
    ways = [{"kind": "ping", "address": router} for router in _routers(lab)]
    ways += [{"kind": "DNS", "address": server, "name": ANY_NAME} for server in _name_servers(lab)]
    with ThreadPoolExecutor(len(ways) or 1) as pool:
        return [way for way, came in zip(ways, pool.map(_answers, ways)) if came]


def _answers(way: dict[str, str]) -> bool:
    if way["kind"] == "ping":
        return pings.ping(way["address"], PROBE_SECONDS).milliseconds is not None
    return lookups.answers_dns(way["address"], ANY_NAME, PROBE_SECONDS)


def _routers(lab: Lab) -> list[str]:
    found = []
    for family, kernel_family in (("ipv4", socket.AF_INET), ("ipv6", socket.AF_INET6)):
        if family in lab.bootstrap_families:
            found += [hop.gateway for route in default_routes(kernel_family) for hop in route.hops]
    return [address for address in found if address and not address.startswith("fe80:")]


def _name_servers(lab: Lab) -> list[str]:
    text = next((path.read_text(encoding="utf-8") for path in RESOLVERS if path.exists()), "")
    servers = re.findall(r"(?m)^nameserver\s+([0-9a-fA-F.:]+)\s*$", text)
    return [
        server
        for server in servers
        if not server.startswith(("127.", "::1")) and ("ipv6" if ":" in server else "ipv4") in lab.bootstrap_families
    ]


def checks(lab: Lab) -> Iterator[Check]:
    """Before anything runs."""
    yield _installer_bridge(lab)
    yield _names(lab)


def _installer_bridge(lab: Lab) -> Check:
    with connect(installer_view.URI) as connection:
        view = installer_view.look(connection)
    bridges = [lab.bridge, *([lab.provisioning_network.bridge] if lab.provisioning_network else [])]
    missing = [bridge for bridge in bridges if not view.finds(bridge)]
    finding = f"libvirt does not show {', '.join(missing)}: no port of it is up" if missing else ""
    found = "; ".join(view.explain(bridge) for bridge in bridges if bridge not in missing)
    return verdict(
        "installer's bridge", HOST, finding, f"libvirt shows {' and '.join(bridges)}", found, missing=missing
    )


def _names(lab: Lab) -> Check:
    name = f"api.{lab.domain}"
    found: set[str] = set()
    with suppress(OSError):
        found = {str(info[4][0]) for info in socket.getaddrinfo(name, None)}
    check = compared("names on the host", HOST, lab.vips.api, found, names=[name], addresses=sorted(found))
    return replace(check, expected=f"{name} is {check.expected}")


def virtual_addresses(lab: Lab, play: str) -> Check:
    """While the bootstrap VM has them."""
    wrong = {url: error for url in lab.urls if (error := _trouble_at(url, play))}
    said = "; ".join(f"{url}: {error}" for url, error in wrong.items())
    return verdict("virtual addresses", HOST, said, f"{', '.join(lab.urls)} lead to the bootstrap VM", urls=[*wrong])


def _trouble_at(url: str, play: str) -> str:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=5)
    try:
        connection.request("GET", "/")
        told = json.loads(connection.getresponse().read())
    except (OSError, ValueError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__
    finally:
        connection.close()
    return "" if told.get("play") == play else "something else answers"


def clock() -> float:
    return time.time()
