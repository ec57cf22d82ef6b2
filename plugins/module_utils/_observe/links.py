# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's links, their addresses, and who is beyond them. Routes are in routes.py."""

from __future__ import annotations

import ipaddress
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import USUAL_MTU
from ansible_collections.nometal.ipi.plugins.module_utils._observe import netlink

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

GET_LINKS, GET_ADDRESSES, GET_NEIGHBOURS = 18, 22, 30
LINK = struct.Struct("=BxHiII")  # family, hardware, index, flags, changed flags
MAC, NAME, MTU, LOWER, MASTER, DETAILS, ALIAS, EXTENSIONS, NAMESPACE = 1, 3, 4, 5, 10, 18, 20, 29, 37
WITHOUT_STATISTICS = 8
DETAILS_KIND, DETAILS_DATA = 1, 2
FORWARD_DELAY = 1  # of a bridge
TUN_TYPE, TAP = 3, b"\x02"
UP, LOWER_UP = 0x1, 0x10000
HARDWARE = {1: "ether", 772: "loopback"}

ADDRESS = struct.Struct("=BBBBI")  # family, prefix length, flags, scope, index
ADDRESS_OF_PEER, ADDRESS_LOCAL, ADDRESS_FLAGS = 1, 2, 8
TENTATIVE = 0x40

NEIGHBOUR = struct.Struct("=B3xiHBB")  # family, index, state, flags, type
NEIGHBOUR_ADDRESS, NEIGHBOUR_MAC = 1, 2
WITHOUT_ARP = 0x40


@dataclass(frozen=True)
class Link:
    """A network interface as the kernel describes it, with names in place of its numbers."""

    name: str
    kind: str | None = None
    """None: it is not a virtual one. `tun` is also what VMs are plugged in by."""
    mtu: int = USUAL_MTU
    up: bool = True
    carrier: bool = True
    master: str | None = None
    """The bridge that it is on."""
    peer: str | None = None
    """The other end of a veth in this network namespace, or what the link is on."""
    mac: str = ""
    alias: str | None = None
    forward_delay: int | None = None
    answers: bool = False
    """Of a bridge: to IPv6 on it, or to ARP for the host's addresses elsewhere."""
    tap: bool = False
    hardware: str = "ether"


@dataclass(frozen=True)
class Address:
    link: str
    interface: ipaddress.IPv4Interface | ipaddress.IPv6Interface
    tentative: bool = False
    """IPv6 looks for duplicates of it, and it cannot be used yet."""


@dataclass(frozen=True)
class Neighbour:
    """Who has answered the host."""

    address: str
    mac: str
    link: str


def read_links() -> dict[str, Link]:
    extensions = netlink.attribute(EXTENSIONS, netlink.NUMBER.pack(WITHOUT_STATISTICS))
    found = {}
    for body in netlink.dump(GET_LINKS, LINK.pack(0, 0, 0, 0, 0) + extensions):
        _family, hardware, index, flags, _changed = LINK.unpack_from(body)
        found[index] = (hardware, flags, netlink.attributes(body[LINK.size :]))
    names = {index: netlink.text_in(seen[NAME]) for index, (_hardware, _flags, seen) in found.items()}
    return {names[index]: _link(names[index], *seen, names) for index, seen in found.items()}


def read_addresses() -> list[Address]:
    return list(map(_address, netlink.dump(GET_ADDRESSES, ADDRESS.pack(0, 0, 0, 0, 0))))


def read_neighbours() -> list[Neighbour]:
    return list(_neighbours())


def macs_of_neighbours() -> dict[str, str]:
    """By address."""
    return {neighbour.address: neighbour.mac for neighbour in _neighbours()}


def ports_of(bridge: str, links: Mapping[str, Link]) -> list[str]:
    return sorted(link.name for link in links.values() if link.master == bridge)


def silencing_settings(bridge: str) -> list[Path]:
    settings = (f"ipv6/conf/{bridge}/disable_ipv6", f"ipv4/conf/{bridge}/arp_ignore")
    # The kernel may have been started without IPv6.
    return [path for setting in settings for path in [Path("/proc/sys/net") / setting] if path.exists()]


def _link(name: str, hardware: int, flags: int, seen: dict[int, bytes], names: dict[int, str]) -> Link:
    details = netlink.attributes(seen.get(DETAILS, b""))
    kind = netlink.text_in(details.get(DETAILS_KIND)) or None
    # The number of a link in another network namespace is no number of ours.
    peer = None if NAMESPACE in seen else names.get(netlink.number_in(seen.get(LOWER)))
    return Link(
        name=name,
        kind=kind,
        mtu=netlink.number_in(seen.get(MTU)),
        up=bool(flags & UP),
        carrier=bool(flags & LOWER_UP),
        master=names.get(netlink.number_in(seen.get(MASTER))),
        peer=peer,
        mac=netlink.mac_in(seen.get(MAC)),
        alias=netlink.text_in(seen.get(ALIAS)) or None,
        hardware=HARDWARE.get(hardware, "unknown"),
        **_of_kind(kind, name, netlink.attributes(details.get(DETAILS_DATA, b""))),
    )


def _of_kind(kind: str | None, name: str, data: dict[int, bytes]) -> dict[str, Any]:
    if kind == "bridge":
        return {"forward_delay": netlink.number_in(data.get(FORWARD_DELAY)), "answers": _answers(name)}
    return {"tap": data.get(TUN_TYPE) == TAP} if kind == "tun" else {}


def _answers(bridge: str) -> bool:
    return any(setting.read_text(encoding="ascii").strip() == "0" for setting in silencing_settings(bridge))


def _address(body: bytes) -> Address:
    _family, prefix, few_flags, _scope, index = ADDRESS.unpack_from(body)
    seen = netlink.attributes(body[ADDRESS.size :])
    flags = netlink.number_in(seen[ADDRESS_FLAGS]) if ADDRESS_FLAGS in seen else few_flags
    own = seen.get(ADDRESS_LOCAL) or seen[ADDRESS_OF_PEER]
    return Address(netlink.link_numbered(index), ipaddress.ip_interface((own, prefix)), bool(flags & TENTATIVE))


def _neighbours() -> Iterator[Neighbour]:
    for body in netlink.dump(GET_NEIGHBOURS, NEIGHBOUR.pack(0, 0, 0, 0, 0)):
        family, index, state, _flags, _kind = NEIGHBOUR.unpack_from(body)
        seen = netlink.attributes(body[NEIGHBOUR.size :])
        # The kernel has a MAC address of those alone that have answered.
        if family in (socket.AF_INET, socket.AF_INET6) and NEIGHBOUR_MAC in seen and not state & WITHOUT_ARP:
            address, mac = (seen.get(key) for key in (NEIGHBOUR_ADDRESS, NEIGHBOUR_MAC))
            yield Neighbour(netlink.address_in(address), netlink.mac_in(mac), netlink.link_numbered(index))
