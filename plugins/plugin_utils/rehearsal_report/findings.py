# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong, by the place where a picture shows it: as the picture tells, and as the checks tell. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import BOOTSTRAP, FAILED, HOST
from ansible_collections.nometal.ipi.plugins.module_utils._core.wording import listed

BMC_CHECKS = ("BMC answers", "BMC login", "wrong password refused", "other VMs hidden", "power and media")
MOST_NAMED = 3
UPLINK, BMC = "uplink", "bmc"


@dataclass(frozen=True)
class Finding:
    """`thing` and `text` make a sentence; where the thing has its name already, the text will do."""

    place: str
    thing: str
    text: str

    def __str__(self) -> str:
        return f"{self.thing} {self.text}"


def in_picture(picture: Mapping[str, Any]) -> list[Finding]:
    """By what the picture itself shows."""
    links, networks = picture["links"], picture["networks"]
    of_networks = {network["bridge"] for network in networks}
    ends = [(*pair["ends"], pair["mtu"]) for pair in picture["veth_pairs"]]
    found: list[tuple[str, str, Iterable[str]]] = [
        *((f"network {each['name']}", f"libvirt network {each['name']}", _network(each, links)) for each in networks),
        # Networks tell themselves what is wrong with their bridges, and are well without a port.
        *((f"bridge {name}", name, _bridge(links.get(name))) for name in picture["bridges"] if name not in of_networks),
        *(
            (f"link {end['name']}", end["name"], _veth(end, far["name"], mtu, links))
            for one, other, mtu in ends
            for end, far in ((one, other), (other, one))
        ),
        (BMC, "BMC service:", _bmc(picture["bmc"])),
    ]
    for who, vm in picture["vms"].items():
        name, running = "bootstrap VM" if who == BOOTSTRAP else who, vm["state"] == "running"
        nics = [text for nic in vm["nics"] if running for text in of_nic(nic, picture)]
        found += [(f"vm {who}", name, _vm(who, vm["state"])), (f"nic {who}", f"{name}:", nics)]
    return [Finding(place, thing, text) for place, thing, texts in found for text in texts]


def in_checks(picture: Mapping[str, Any], checks: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """By place, the names of failed checks; those of BMCs with the nodes that they concern."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for check in checks:
        if check["state"] == FAILED:
            found[_place_of(picture, check)][check["check"]].append(check["who"])
    return {
        place: [f"{name}: {listed(nodes, MOST_NAMED)}" if place == BMC else name for name, nodes in names.items()]
        for place, names in found.items()
    }


def _place_of(picture: Mapping[str, Any], check: Mapping[str, Any]) -> str:
    name, who = check["check"], check["who"]
    if who == HOST:
        on_bridge = name == "installer's bridge" and picture["bridges"]
        return f"bridge {picture['bridges'][0]}" if on_bridge else HOST
    if who == BOOTSTRAP and name == "way out":
        return UPLINK
    return BMC if name in BMC_CHECKS else f"vm {who}"


def _network(network: Mapping[str, Any], links: Mapping[str, Any]) -> Iterator[str]:
    bridge, link = network["bridge"], links.get(network["bridge"])
    if network["state"] != "active":
        yield {"missing": "is not there", "inactive": "is not active"}[network["state"]]
    elif link is None:
        yield f"has lost its bridge {bridge}"
    elif not link["up"]:
        yield f"has its bridge {bridge} down"
    if network["missing_addresses"]:
        yield f"lacks {listed(network['missing_addresses'], MOST_NAMED)} on its bridge"
    if network["dnsmasq"] is False:
        yield "has no dnsmasq: no DHCP, no DNS"


def _bridge(link: Mapping[str, Any] | None) -> Iterator[str]:
    if link is None:
        yield "is not there"
    elif link["kind"] != "bridge":
        yield f"must be a bridge, is {link['kind']}"
    elif not link["up"]:
        yield "is down"
    elif not link["carrier"]:
        yield "has no carrier"


def _veth(end: Mapping[str, Any], far: str, mtu: int | None, links: Mapping[str, Any]) -> Iterator[str]:
    link, other = links.get(end["name"]), links.get(far)
    if link is None:
        yield "is not there"
        return
    if link["peer"] != far:
        yield f"leads to {link['peer'] or 'elsewhere'}, not to {far}"
    if not link["up"]:
        yield "is down"
    elif not link["carrier"] and other and other["up"]:
        yield "has no carrier"
    if end["bridge"] and link["master"] != end["bridge"]:
        yield f"is on {link['master'] or 'no bridge'}, not on {end['bridge']}"
    if mtu and link["mtu"] != mtu:
        yield f"has MTU {link['mtu']}, not {mtu}"


def _bmc(endpoints: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    silent = [place_of(endpoint) for endpoint in endpoints if endpoint["listening"] is False]
    if silent:
        yield f"nothing listens on {listed(silent, MOST_NAMED)}"


def place_of(endpoint: Mapping[str, Any]) -> str:
    address = f"[{endpoint['address']}]" if ":" in endpoint["address"] else endpoint["address"]
    return f"{address}:{endpoint['port']}/{endpoint['protocol']}"


def _vm(who: str, state: str) -> Iterator[str]:
    if state == "missing" and who != BOOTSTRAP:  # which is gone when its work is done
        yield "is not there: libvirt has no such VM"
    elif state in ("paused", "crashed"):
        yield f"is {state}"


def of_nic(nic: Mapping[str, Any], picture: Mapping[str, Any]) -> Iterator[str]:
    own = {*picture["bridges"], *(network["bridge"] for network in picture["networks"])}
    tap, bridge = nic["tap"], nic["bridge"]
    if bridge not in own:
        yield f"{nic['mac']} is on {bridge or 'no bridge'}, which is not the lab's"
    if nic["unplugged"]:
        yield f"{nic['mac']} is unplugged (link state down)"
    if picture["links"]:  # without them, nothing can be said of taps
        yield from _of_tap(tap, picture["links"].get(tap or ""), bridge, picture["links"].get(bridge or ""))


def _of_tap(tap: str | None, link: Any, bridge: str | None, below: Any) -> Iterator[str]:
    if link is None:
        yield f"tap {tap} is missing" if tap else "no tap"
        return
    if not link["up"]:
        yield f"tap {tap} is down"
    if link["master"] != bridge:
        yield f"tap {tap} is on {link['master'] or 'no bridge'}, not on {bridge or 'any'}"
    elif below and link["mtu"] != below["mtu"]:
        yield f"tap {tap} has MTU {link['mtu']}, its bridge {below['mtu']}"
