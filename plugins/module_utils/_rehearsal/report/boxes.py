# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is written in the boxes of the picture of a lab. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import BOOTSTRAP
from ansible_collections.nometal.ipi.plugins.module_utils._core.wording import counted, line_of, listed
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report import troubles
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report.svg import Box
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.report.troubles import BMC, UPLINK, spot

MOST_VMS = 24
"""Above that, VMs that are well share a box."""
MOST_ENDPOINTS = 4
MOST_CHECKS_NAMED = 4
FORWARD = {"nat": "NAT", "route": "routed", "open": "open"}
BAD, OFF, UP, NONE = "bad", "off", "up", ""

Network = Optional[Mapping[str, Any]]


@dataclass(frozen=True)
class Unit:
    """A VM, or many; and its wires, to the bridge above and to that below."""

    box: Box
    wire: str = NONE
    lower_wire: str = NONE


class Subject:
    """The picture together with what the checks say of it."""

    def __init__(self, report: Mapping[str, Any]) -> None:
        self.picture: Mapping[str, Any] = report["picture"]
        checks = report["checks"]
        self.host = line_of(self.picture["host"])
        self.machine = self._network("machine")
        self.provisioning = self._network("provisioning")
        bridges = [name for name in self.picture["bridges"] if name != (self.provisioning or {}).get("bridge")]
        self.bridge = str([*bridges, (self.machine or {}).get("bridge", "no bridge")][0])
        self._addresses = {
            check["who"]: [*map(line_of, check.get("facts", {}).get("addresses", []))]
            for check in checks
            if check["check"] == "address"
        }
        self._labels = _labels(self.picture, checks)

    def labels(self, place: str) -> Sequence[str]:
        return self._labels.get(place, ())

    def addresses(self, who: str) -> list[str]:
        """As the checks have seen them: a host does not know its guests' addresses."""
        return self._addresses.get(who, [])

    def link(self, name: str | None) -> Mapping[str, Any]:
        link: Mapping[str, Any] = self.picture["links"].get(name or "", {})
        return link

    @property
    def joined(self) -> bool:
        """The libvirt network is on the installer's bridge itself."""
        return self.machine is not None and self.machine["bridge"] == self.bridge

    @property
    def veth_pair(self) -> Mapping[str, Any] | None:
        pairs: Sequence[Mapping[str, Any]] = self.picture["veth_pairs"]
        return next((pair for pair in pairs if self.bridge in [end["bridge"] for end in pair["ends"]]), None)

    @property
    def forward(self) -> str:
        if self.machine is None or self.machine["state"] != "active":
            return ""
        if self.machine["routes_ipv6"]:
            return "NAT, IPv4 only"
        return FORWARD.get(line_of(self.machine["forward"]), "")

    def _network(self, role: str) -> Network:
        return next((network for network in self.picture["networks"] if network["role"] == role), None)


def _labels(picture: Mapping[str, Any], checks: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for trouble in troubles.in_picture(picture):
        found[trouble.spot].append(trouble.text)
    for place, failed in troubles.in_checks(picture, checks).items():
        found[place] += failed if place == BMC else [listed(failed, MOST_CHECKS_NAMED)]
    return found


def uplink(subject: Subject) -> Box:
    devices = list(dict.fromkeys(each["device"] for each in subject.picture["uplinks"]))
    if not devices:
        return Box("no uplink", [("plain", "the host has no default route")], subject.labels(UPLINK), "off")
    addresses = [("mono", address) for device in devices for address in subject.link(device).get("addresses", [])]
    return Box(", ".join(devices), [("plain", "the way out"), *addresses], subject.labels(UPLINK))


def network(subject: Subject, found: Network) -> Box:
    if found is None:
        return Box("no libvirt network", style="off")
    link = subject.link(found["bridge"])
    known = f"libvirt network {found['name']}"
    # Where it is the installer's bridge itself, that one has a box of its own.
    joined = found is subject.machine and subject.joined
    lines = [
        ("plain", found["state"] if joined else f"{known}, {found['state']}"),
        *(("mono", address) for address in link.get("addresses", [])),
        ("plain", ", ".join(_services(found, link))),
    ]
    labels = [*subject.labels(spot("network", found["name"])), *subject.labels(spot("bridge", found["bridge"]))]
    return Box(known if joined else found["bridge"] or known, [line for line in lines if line[1]], labels)


def _services(found: Mapping[str, Any], link: Mapping[str, Any]) -> Iterator[str]:
    if found["dnsmasq"]:
        yield "dnsmasq"
    if link:
        yield f"MTU {link['mtu']}"
    if found["forward"] == "isolated":
        yield "no way out"


def bmc(subject: Subject) -> Box:
    endpoints = subject.picture["bmc"]
    if not endpoints:
        return Box("no BMC service", style="off")
    lines = [("mono", troubles.place_of(endpoint)) for endpoint in endpoints[:MOST_ENDPOINTS]]
    more = len(endpoints) - MOST_ENDPOINTS
    holders = list(dict.fromkeys(name for endpoint in endpoints for name in endpoint["by"]))
    about = [*([f"and {more} more"] if more > 0 else []), *([f"held by {listed(holders, 2)}"] if holders else [])]
    return Box("BMC service", [*lines, *(("plain", text) for text in about)], subject.labels(BMC))


def about_pair(subject: Subject) -> str:
    mtus = {str(subject.link(end["name"]).get("mtu", "")) for end in (subject.veth_pair or {}).get("ends", [])} - {""}
    return f"veth pair, MTU {' and '.join(sorted(mtus))}" if mtus else "veth pair"


def bridge(subject: Subject) -> Box:
    link = subject.link(subject.bridge)
    strangers = _strangers(subject)
    about = "the network's own bridge" if subject.joined else "bridge"
    lines = [("plain", f"{about}, MTU {link['mtu']}" if link else about)]
    lines += [] if subject.joined else [("mono", address) for address in link.get("addresses", [])]
    lines += [("plain", f"also on it: {listed(strangers, 6)}")] if strangers else []
    return Box(subject.bridge, lines, subject.labels(spot("bridge", subject.bridge)), "bar")


def _strangers(subject: Subject) -> list[str]:
    """Ports of the bridge that are neither the lab's VMs' nor its veth's."""
    picture = subject.picture
    own = {nic["tap"] for vm in picture["vms"].values() for nic in vm["nics"]}
    own |= {end["name"] for pair in picture["veth_pairs"] for end in pair["ends"]}
    return sorted(
        name for name, link in picture["links"].items() if link["master"] == subject.bridge and name not in own
    )


def units(subject: Subject) -> Iterator[Unit]:
    vms = subject.picture["vms"]
    shown = _shown(subject, list(vms))
    yield from (_unit(subject, who, vms[who]) for who in shown)
    if len(shown) < len(vms):
        yield _others(subject, [vm for who, vm in vms.items() if who not in shown])


def _shown(subject: Subject, everybody: list[str]) -> list[str]:
    if len(everybody) <= MOST_VMS:
        return everybody
    first = [who for who in everybody if who == BOOTSTRAP or _of_vm(subject, who)]
    well = [who for who in everybody if who not in first]
    chosen = {*first, *well[: max(MOST_VMS - 1 - len(first), 0)]}
    return [who for who in everybody if who in chosen]


def _others(subject: Subject, vms: Sequence[Mapping[str, Any]]) -> Unit:
    running = any(vm["state"] == "running" for vm in vms)
    wire = UP if running else OFF
    box = Box(f"{len(vms)} more nodes", [("plain", "nothing is wrong with them")], style="" if running else OFF)
    return Unit(box, wire, wire if subject.provisioning else NONE)


def _of_vm(subject: Subject, who: str) -> list[str]:
    return [*subject.labels(spot("vm", who)), *subject.labels(spot("nic", who))]


def _unit(subject: Subject, who: str, vm: Mapping[str, Any]) -> Unit:
    taps = [nic["tap"] for nic in vm["nics"] if nic["tap"]]
    lower = (subject.provisioning or {}).get("bridge")
    above = [nic for nic in vm["nics"] if lower is None or nic["bridge"] != lower]
    below = [nic for nic in vm["nics"] if lower is not None and nic["bridge"] == lower]
    lines = [
        ("plain", ", ".join([_state_of(who, vm), *taps])),
        *(("mono", nic["mac"] or "no MAC") for nic in above),
        *(("mono", address) for address in subject.addresses(who)),
        *(("mono second", f"\u2193{nic['mac'] or 'no MAC'}") for nic in below),
    ]
    title = "bootstrap VM" if who == BOOTSTRAP else who
    style = "" if vm["state"] == "running" else "off"
    box = Box(title, lines, _of_vm(subject, who), style)
    return Unit(box, _wire(subject, vm, above), _wire(subject, vm, below))


def _state_of(who: str, vm: Mapping[str, Any]) -> str:
    return "gone, as it should be" if vm["state"] == "missing" and who == BOOTSTRAP else str(vm["state"])


def _wire(subject: Subject, vm: Mapping[str, Any], nics: Sequence[Mapping[str, Any]]) -> str:
    if not nics:
        return NONE
    if vm["state"] != "running":
        return OFF
    return BAD if any(list(troubles.of_nic(nic, subject.picture)) for nic in nics) else UP


def about(subject: Subject) -> str:
    """For those who do not see it."""
    return f"The lab on host {subject.host}: {counted(len(subject.picture['vms']), 'VM')} on bridge {subject.bridge}"
