# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong, by the place where a picture shows it: as the picture tells, and as the checks tell. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import BOOTSTRAP, FAILED, HOST
from ansible_collections.nometal.ipi.plugins.module_utils._core.wording import listed

BMC_CHECKS = ("BMC answers", "BMC login", "wrong password refused", "other VMs hidden", "power and media")
MOST_NAMED = 3
UPLINK, BMC = "uplink", "bmc"


@dataclass(frozen=True)
class Trouble:
    """`thing` and `text` make a sentence; where the thing has its name already, the text will do."""

    spot: str
    thing: str
    text: str

    def __str__(self) -> str:
        return f"{self.thing} {self.text}"


def spot(kind: str, name: str) -> str:
    return f"{kind} {name}"


def in_picture(picture: Mapping[str, Any]) -> list[Trouble]:
    """By what the picture itself shows."""
    return [
        *_networks(picture),
        *_bridges(picture),
        *(trouble for pair in picture["veth_pairs"] for trouble in _veth_pair(picture, pair)),
        *_bmc(picture["bmc"]),
        *(trouble for who, vm in picture["vms"].items() for trouble in _vm(picture, who, vm)),
    ]


def in_checks(picture: Mapping[str, Any], checks: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """By spot, the names of failed checks; those of BMCs with the nodes that they concern."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for check in checks:
        if check["state"] == FAILED:
            found[_spot_of(picture, check)][check["check"]].append(check["who"])
    return {
        place: [f"{name}: {listed(nodes, MOST_NAMED)}" if place == BMC else name for name, nodes in names.items()]
        for place, names in found.items()
    }


def _spot_of(picture: Mapping[str, Any], check: Mapping[str, Any]) -> str:
    name, who = check["check"], check["who"]
    if who == HOST:
        on_bridge = name == "installer's bridge" and picture["bridges"]
        return spot("bridge", picture["bridges"][0]) if on_bridge else HOST
    if who == BOOTSTRAP and name == "way out":
        return UPLINK
    return BMC if name in BMC_CHECKS else spot("vm", who)


def _networks(picture: Mapping[str, Any]) -> Iterator[Trouble]:
    for network in picture["networks"]:
        for text in _of_network(network, picture["links"]):
            yield Trouble(spot("network", network["name"]), f"libvirt network {network['name']}", text)


def _of_network(network: Mapping[str, Any], links: Mapping[str, Any]) -> Iterator[str]:
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


def _bridges(picture: Mapping[str, Any]) -> Iterator[Trouble]:
    of_networks = {network["bridge"] for network in picture["networks"]}
    for bridge in picture["bridges"]:
        # Networks tell themselves what is wrong with their bridges, and are well without a port.
        for text in [] if bridge in of_networks else _of_bridge(picture["links"].get(bridge)):
            yield Trouble(spot("bridge", bridge), bridge, text)


def _of_bridge(link: Mapping[str, Any] | None) -> Iterator[str]:
    if link is None:
        yield "is not there"
    elif link["kind"] != "bridge":
        yield f"is no bridge but {link['kind']}"
    elif not link["up"]:
        yield "is down"
    elif not link["carrier"]:
        yield "has no carrier"


def _veth_pair(picture: Mapping[str, Any], pair: Mapping[str, Any]) -> Iterator[Trouble]:
    names = [end["name"] for end in pair["ends"]]
    for end, far in zip(pair["ends"], reversed(names)):
        for text in _of_end(end, far, pair["mtu"], picture["links"]):
            yield Trouble(spot("link", end["name"]), end["name"], text)


def _of_end(end: Mapping[str, Any], far: str, mtu: int | None, links: Mapping[str, Any]) -> Iterator[str]:
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


def _bmc(endpoints: Sequence[Mapping[str, Any]]) -> Iterator[Trouble]:
    silent = [place_of(endpoint) for endpoint in endpoints if endpoint["listening"] is False]
    if silent:
        yield Trouble(BMC, "BMC service:", f"nobody listens on {listed(silent, MOST_NAMED)}")


def place_of(endpoint: Mapping[str, Any]) -> str:
    address = f"[{endpoint['address']}]" if ":" in endpoint["address"] else endpoint["address"]
    return f"{address}:{endpoint['port']}/{endpoint['protocol']}"


def _vm(picture: Mapping[str, Any], who: str, vm: Mapping[str, Any]) -> Iterator[Trouble]:
    name = "bootstrap VM" if who == BOOTSTRAP else who
    if vm["state"] == "missing" and who != BOOTSTRAP:  # which is gone when its work is done
        yield Trouble(spot("vm", who), name, "is not there: libvirt has no such VM")
    elif vm["state"] in ("paused", "crashed"):
        yield Trouble(spot("vm", who), name, f"is {vm['state']}")
    for nic in vm["nics"] if vm["state"] == "running" else []:
        for text in of_nic(nic, picture):
            yield Trouble(spot("nic", who), f"{name}:", text)


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
