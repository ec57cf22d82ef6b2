# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is true of every model, whatever it was made of."""

from __future__ import annotations

import ipaddress
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

PLAIN = (dict, list, str, int, bool, type(None), float)
SECRET_WORDS = ("password", "pullsecret", "PRIVATE KEY")
Range = tuple[Any, Any, str]


def violations(lab: dict[str, Any]) -> list[str]:
    return [
        *_shared("address", addresses(lab)),
        *_shared("MAC", macs(lab)),
        *_shared("UUID", uuids(lab)),
        *_shared("name", (item["fqdn"] for item in _machine(lab)["dhcp"]["reservations"])),
        *_shared("VM name", (node["vm_name"] for node in lab["nodes"])),
        *_shared("disk", (disk["name"] for node in lab["nodes"] for disk in node["disks"])),
        *_shared("serial", (disk["serial"] for node in lab["nodes"] for disk in node["disks"])),
        *_shared("BMC address", (node["bmc"]["address"] for node in lab["nodes"])),
        *_shared("interface", interfaces(lab)),
        *_shared("DNS address", (host["ip"] for host in _machine(lab)["dns"]["hosts"])),
        *_shared("network name", (network["name"] for network in lab["networks"])),
        *(f"interface {name} is too long" for name in interfaces(lab) if len(name) > 15),
        *_misplaced(lab),
        *_wrong_ranges(lab),
        *_wrong_totals(lab),
        *(f"{path} is {type(value).__name__}" for path, value in _leaves(lab) if type(value) not in PLAIN),
        *([] if json.loads(json.dumps(lab)) == lab else ["the model is not JSON"]),
        *(f"a secret: {word}" for word in SECRET_WORDS if word in json.dumps(lab)),
    ]


def _machine(lab: dict[str, Any]) -> dict[str, Any]:
    machine: dict[str, Any] = lab["networks"][0]
    return machine


def _shared(what: str, values: Iterable[str]) -> Iterator[str]:
    yield from (f"{what} {value} is shared" for value, count in Counter(values).items() if count > 1)


def addresses(lab: dict[str, Any]) -> list[str]:
    """Everything that has an address, once: nodes and bootstrap VM stand among the reservations too."""
    known = {node["name"] for node in lab["nodes"]} | {"bootstrap"}
    own = lab["provisioning_network"] or {}
    return [
        *(item["gateway"] for item in _machine(lab)["addresses"]),
        *lab["vips"]["api"],
        *lab["vips"]["ingress"],
        *lab["bootstrap"]["ips"],
        *(ip for node in lab["nodes"] for ip in node["ips"]),
        *(ip for item in _machine(lab)["dhcp"]["reservations"] if item["name"] not in known for ip in item["ips"]),
        *(own[key] for key in ("host_ip", "bootstrap_ip", "cluster_ip") if own),
    ]


def macs(lab: dict[str, Any]) -> list[str]:
    nodes = {node["name"] for node in lab["nodes"]}
    return [
        *(nic["mac"] for node in lab["nodes"] for nic in node["nics"]),
        *(item["mac"] for item in _machine(lab)["dhcp"]["reservations"] if item["name"] not in nodes),
    ]


def uuids(lab: dict[str, Any]) -> list[str]:
    parts = [*lab["nodes"], *lab["networks"], lab["storage_pool"], lab]
    return [part["uuid"] for part in parts]


def interfaces(lab: dict[str, Any]) -> list[str]:
    ends = [end["name"] for pair in lab["veth_pairs"] for end in (pair["a"], pair["b"])]
    return [*{lab["bridge"], *(network["bridge"] for network in lab["networks"])}, *ends]


def _networks(lab: dict[str, Any]) -> dict[int, Any]:
    return {net.version: net for net in map(ipaddress.ip_network, lab["machine_networks"])}


def _ranges(lab: dict[str, Any]) -> list[Range]:
    dhcp = _machine(lab)["dhcp"]
    spans = [(item["start"], item["end"], "range") for item in dhcp["ranges"]]
    spans += [(item["start"], item["end"], item["mac_prefix"]) for item in dhcp["pools"]]
    return [(ipaddress.ip_address(start), ipaddress.ip_address(end), what) for start, end, what in spans]


def _misplaced(lab: dict[str, Any]) -> Iterator[str]:
    own = lab["provisioning_network"] or {}
    elsewhere = {own[key] for key in ("host_ip", "bootstrap_ip", "cluster_ip") if own}
    for text in set(addresses(lab)) - elsewhere:
        item = ipaddress.ip_address(text)
        net = _networks(lab)[item.version]
        if item not in net or item == net.network_address or (item.version == 4 and item == net.broadcast_address):
            yield f"{item} is no host in {net}"
        yield from (
            f"{item} lies in {what}"
            for start, end, what in _ranges(lab)
            if start.version == item.version and start <= item <= end
        )


def _wrong_ranges(lab: dict[str, Any]) -> Iterator[str]:
    ranges = _ranges(lab)
    for number, (start, end, what) in enumerate(ranges):
        net = _networks(lab)[start.version]
        if start > end or start not in net or end not in net or start == net.network_address:
            yield f"{what} {start}-{end} is no range in {net}"
        for other_start, other_end, other in ranges[:number]:
            if other_start.version == start.version and start <= other_end and other_start <= end:
                yield f"{what} and {other} overlap"
    families = {start.version for start, _end, _what in ranges}
    if families != set(_networks(lab)):
        yield "a family has no DHCP range"


def _wrong_totals(lab: dict[str, Any]) -> Iterator[str]:
    for key in ("nodes", "vcpus", "memory_mib", "disk_bytes"):
        if sum(host[key] for host in lab["totals"]["hypervisors"].values()) != lab["totals"]["lab"][key]:
            yield f"the totals of {key} do not add up"
    if lab["totals"]["lab"]["nodes"] != len(lab["nodes"]):
        yield "a node is not counted"


def _leaves(value: Any, path: str = "lab") -> Iterator[tuple[str, Any]]:
    yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _leaves(item, f"{path}.{key}")
        yield f"{path} key", key
