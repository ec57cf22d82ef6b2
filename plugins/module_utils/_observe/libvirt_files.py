# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What libvirt has on this host, from its own files: they tell without a daemon and without bindings."""

from __future__ import annotations

import ipaddress
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Network as IpNetwork
from ansible_collections.nometal.ipi.plugins.module_utils._observe.host import UnmeasurableError, names_in

NETWORKS = Path("/etc/libvirt/qemu/networks")
RUNNING_NETWORKS = Path("/run/libvirt/network")
DOMAINS = Path("/etc/libvirt/qemu")
POOLS = Path("/etc/libvirt/storage")
MARK = "{urn:nometal:ipi}"


@dataclass(frozen=True)
class LibvirtNetwork:
    name: str
    uuid: str
    bridge: str
    subnets: tuple[IpNetwork, ...]
    active: bool
    owner: str = ""
    """The lab that it was made for."""


@dataclass(frozen=True)
class LibvirtObject:
    kind: str
    name: str
    uuid: str
    owner: str = ""


@dataclass(frozen=True)
class Pool:
    name: str
    uuid: str
    path: str


def pools() -> tuple[Pool, ...]:
    """Those that are directories."""
    found = _elements(POOLS, "pool")
    return tuple(
        Pool(_text(node, "name"), _text(node, "uuid"), _text(node, "target/path"))
        for node in found
        if node.get("type") == "dir"
    )


def networks() -> tuple[LibvirtNetwork, ...]:
    defined = {network.name: network for network in _networks_in(NETWORKS, active=False)}
    running = {network.name: network for network in _networks_in(RUNNING_NETWORKS, active=True)}
    return tuple({**defined, **running}.values())


def objects() -> tuple[LibvirtObject, ...]:
    return tuple(
        LibvirtObject(kind, _text(node, "name"), _text(node, "uuid"), _owner(node))
        for kind, directory in (("network", NETWORKS), ("domain", DOMAINS), ("pool", POOLS))
        for node in _elements(directory, kind)
    )


def _networks_in(directory: Path, *, active: bool) -> Iterator[LibvirtNetwork]:
    for node in _elements(directory, "network"):
        bridge = node.find("bridge")
        yield LibvirtNetwork(
            name=_text(node, "name"),
            uuid=_text(node, "uuid"),
            bridge=bridge.get("name", "") if bridge is not None else "",
            subnets=tuple(_subnet(ip) for ip in node.findall("ip") if ip.get("address")),
            active=active,
            owner=_owner(node),
        )


def _elements(directory: Path, kind: str) -> Iterator[ET.Element]:
    for name in names_in(directory):
        if name.endswith(".xml"):
            root = _root(directory / name)
            # A running network's file wraps it into its status.
            yield from [root] if root.tag == kind else root.findall(kind)


def _root(path: Path) -> ET.Element:
    try:
        return ET.parse(path).getroot()  # noqa: S314  libvirt's own files, only root can write them
    except ET.ParseError as error:
        raise UnmeasurableError(f"{path}: {error}") from error


def _text(node: ET.Element, tag: str) -> str:
    return (node.findtext(tag) or "").strip()


def _owner(node: ET.Element) -> str:
    marks = (mark.get("owner", "") for mark in node.iterfind(f"metadata/{MARK}*"))
    return next((owner for owner in marks if owner), "")


def _subnet(ip: ET.Element) -> IpNetwork:
    size = ip.get("prefix") or ip.get("netmask") or ("64" if ip.get("family") == "ipv6" else "24")
    return ipaddress.ip_network(f"{ip.get('address')}/{size}", strict=False)
