# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is written in the boxes of the picture of a lab. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import BOOTSTRAP
from ansible_collections.nometal.ipi.plugins.module_utils._core.wording import listed
from ansible_collections.nometal.ipi.plugins.plugin_utils.rehearsal_report import findings
from ansible_collections.nometal.ipi.plugins.plugin_utils.rehearsal_report.findings import BMC, UPLINK

MOST_VMS = 24
"""Above that, VMs that are well share a box."""
MOST_ENDPOINTS = 4
MOST_CHECKS_NAMED = 4
FORWARD = {"nat": "NAT", "route": "routed", "open": "open"}
BAD, OFF, UP, NONE = "bad", "off", "up", ""


def _forward(network: Mapping[str, Any]) -> str:
    if network["routes_ipv6"]:
        return "NAT, IPv4 only"
    return FORWARD.get(network["forward"], "")


@dataclass(frozen=True)
class Box:
    title: str
    lines: Sequence[tuple[str, str]] = ()
    """Style and text of each."""
    labels: Sequence[str] = ()
    """What is wrong with it."""
    style: str = ""
    wire: str = NONE
    """Of a VM, to the bridge above it; the other one leads to that below."""
    lower_wire: str = NONE


class Lab:
    """The picture together with what the checks say of it."""

    def __init__(self, picture: Mapping[str, Any], checks: Sequence[Mapping[str, Any]]) -> None:
        self.picture = picture
        by_role = {network["role"]: network for network in reversed(picture["networks"])}
        self.machine, self.provisioning = by_role.get("machine", {}), by_role.get("provisioning", {})
        bridges = [name for name in picture["bridges"] if name != self.provisioning.get("bridge")]
        self.bridge: str = [*bridges, self.machine.get("bridge", "no bridge")][0]
        self.joined: bool = self.machine.get("bridge") == self.bridge
        """The libvirt network is on the installer's bridge itself."""
        pairs = (pair["ends"] for pair in picture["veth_pairs"])
        self.veth_pair = next((ends for ends in pairs if self.bridge in [end["bridge"] for end in ends]), None)
        active = self.machine.get("state") == "active"
        self.forward = _forward(self.machine) if active else ""
        # As the checks have seen them: a host does not know its guests' addresses.
        self.addresses = {
            check["who"]: check.get("facts", {}).get("addresses", []) for check in checks if check["check"] == "address"
        }
        self._labels: dict[str, list[str]] = defaultdict(list)
        for finding in findings.in_picture(picture):
            self._labels[finding.place].append(finding.text)
        for place, failed in findings.in_checks(picture, checks).items():
            self._labels[place] += failed if place == BMC else [listed(failed, MOST_CHECKS_NAMED)]

    def labels(self, *places: str) -> list[str]:
        return [label for place in places for label in self._labels.get(place, ())]

    def link(self, name: str) -> Mapping[str, Any]:
        link: Mapping[str, Any] = self.picture["links"].get(name, {})
        return link


def uplink(lab: Lab) -> Box:
    devices = list(dict.fromkeys(each["device"] for each in lab.picture["uplinks"]))
    if not devices:
        return Box("no uplink", [("plain", "the host has no default route")], lab.labels(UPLINK), "off")
    addresses = [("mono", address) for device in devices for address in lab.link(device).get("addresses", [])]
    return Box(", ".join(devices), [("plain", "the way out"), *addresses], lab.labels(UPLINK))


def network(lab: Lab, found: Mapping[str, Any]) -> Box:
    if not found:
        return Box("no libvirt network", style="off")
    link, known = lab.link(found["bridge"]), f"libvirt network {found['name']}"
    # Where it is the installer's bridge itself, that one has a box of its own.
    joined = found is lab.machine and lab.joined
    services = {
        "dnsmasq": found["dnsmasq"],
        f"MTU {link.get('mtu')}": link,
        "isolated": found["forward"] == "isolated",
    }
    lines = [
        ("plain", found["state"] if joined else f"{known}, {found['state']}"),
        *(("mono", address) for address in link.get("addresses", [])),
        ("plain", ", ".join(name for name, is_there in services.items() if is_there)),
    ]
    labels = lab.labels(f"network {found['name']}", f"bridge {found['bridge']}")
    return Box(known if joined else found["bridge"] or known, [line for line in lines if line[1]], labels)


def bmc(lab: Lab) -> Box:
    endpoints = lab.picture["bmc"]
    if not endpoints:
        return Box("no BMC service", style="off")
    lines = [("mono", findings.place_of(endpoint)) for endpoint in endpoints[:MOST_ENDPOINTS]]
    more = len(endpoints) - MOST_ENDPOINTS
    holders = list(dict.fromkeys(name for endpoint in endpoints for name in endpoint["by"]))
    about = [*([f"and {more} more"] if more > 0 else []), *([f"held by {listed(holders, 2)}"] if holders else [])]
    return Box("BMC service", [*lines, *(("plain", text) for text in about)], lab.labels(BMC))


def about_pair(lab: Lab) -> str:
    mtus = {str(lab.link(end["name"]).get("mtu", "")) for end in lab.veth_pair or []} - {""}
    return f"veth pair, MTU {' and '.join(sorted(mtus))}" if mtus else "veth pair"


def bridge(lab: Lab) -> Box:
    link, picture = lab.link(lab.bridge), lab.picture
    own = {nic["tap"] for vm in picture["vms"].values() for nic in vm["nics"]}
    own |= {end["name"] for pair in picture["veth_pairs"] for end in pair["ends"]}
    others = sorted(name for name, port in picture["links"].items() if port["master"] == lab.bridge and name not in own)
    about = "the network's own bridge" if lab.joined else "bridge"
    lines = [("plain", f"{about}, MTU {link['mtu']}" if link else about)]
    lines += [] if lab.joined else [("mono", address) for address in link.get("addresses", [])]
    lines += [("plain", f"also on it: {listed(others, 6)}")] if others else []
    return Box(lab.bridge, lines, lab.labels(f"bridge {lab.bridge}"), "bar")


def vms(lab: Lab) -> Iterator[Box]:
    everybody = lab.picture["vms"]
    shown = _shown(lab, list(everybody))
    yield from (_vm(lab, who, everybody[who]) for who in shown)
    others = [vm for who, vm in everybody.items() if who not in shown]
    if others:
        wire, style = (UP, "") if any(vm["state"] == "running" for vm in others) else (OFF, OFF)
        lines = [("plain", "nothing is wrong with them")]
        yield Box(f"{len(others)} more nodes", lines, (), style, wire, wire if lab.provisioning else NONE)


def _shown(lab: Lab, everybody: list[str]) -> list[str]:
    if len(everybody) <= MOST_VMS:
        return everybody
    first = [who for who in everybody if who == BOOTSTRAP or lab.labels(f"vm {who}", f"nic {who}")]
    well = [who for who in everybody if who not in first]
    chosen = {*first, *well[: max(MOST_VMS - 1 - len(first), 0)]}
    return [who for who in everybody if who in chosen]


def _vm(lab: Lab, who: str, vm: Mapping[str, Any]) -> Box:
    gone = vm["state"] == "missing" and who == BOOTSTRAP
    lower = lab.provisioning.get("bridge")
    below = [nic for nic in vm["nics"] if lower and nic["bridge"] == lower]
    above = [nic for nic in vm["nics"] if nic not in below]
    taps = [nic["tap"] for nic in vm["nics"] if nic["tap"]]
    lines = [
        ("plain", ", ".join(["gone, as it should be" if gone else vm["state"], *taps])),
        *(("mono", nic["mac"] or "no MAC") for nic in above),
        *(("mono", address) for address in lab.addresses.get(who, [])),
        *(("mono second", f"\u2193{nic['mac'] or 'no MAC'}") for nic in below),
    ]
    title, style = "bootstrap VM" if who == BOOTSTRAP else who, "" if vm["state"] == "running" else OFF
    wires = [_wire(lab, vm["state"], nics) for nics in (above, below)]
    return Box(title, lines, lab.labels(f"vm {who}", f"nic {who}"), style, *wires)


def _wire(lab: Lab, state: str, nics: Sequence[Mapping[str, Any]]) -> str:
    if not nics:
        return NONE
    if state != "running":
        return OFF
    return BAD if any(True for nic in nics for _text in findings.of_nic(nic, lab.picture)) else UP
