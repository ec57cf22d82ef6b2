# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which servers images are fetched from: none that clients reach only because this host asks for them.

Whoever commands one VM chooses its image's URL. What this host has on its own addresses, loopback and link-local ones
included, is therefore out of reach unless the configuration allows the network. Judged is each address to which a
name resolves, and the connection is made to that address and not to the name, which may resolve to another one then.
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    from nometal_bmc.config.settings import Network
    from nometal_bmc.media.deadline import Deadline

__all__ = ["Forbidden", "Place", "connected", "places_of"]

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
THIS_NETWORK = ipaddress.ip_network("0.0.0.0/8")  # Linux takes 0.0.0.0 for loopback
IPV4_IN_IPV6 = tuple(map(ipaddress.ip_network, ("::/96", "64:ff9b::/96", "64:ff9b:1::/48")))  # a gateway may unwrap it


class Forbidden(Exception):  # noqa: N818 - reads as what it is
    """Every address of the server is one that images are not fetched from."""


@dataclass(frozen=True)
class Place:
    """An address of a server, as sockets have it."""

    family: int
    address: Any
    is_own: bool
    """Whether it is this host's."""

    def is_open(self, networks: tuple[Network, ...]) -> bool:
        address = _address(self.address)
        return any(address in network for network in networks) or not (self.is_own or _is_special(address))


def places_of(host: str, port: int, networks: tuple[Network, ...]) -> list[Place]:
    """Where a server may be asked, without having asked it; raise Forbidden when that is nowhere."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    places = [Place(family, address, _is_own(family, address)) for family, _kind, _protocol, _name, address in found]
    allowed = [place for place in places if place.is_open(networks)]
    if not allowed:
        raise Forbidden
    return allowed


def connected(places: list[Place], seconds: float, deadline: Deadline) -> socket.socket:
    """A connection to the first that answers."""
    failure = OSError()
    for place in places:
        connection = socket.socket(place.family, socket.SOCK_STREAM)
        try:
            connection.settimeout(seconds)
            with deadline.over(connection):
                connection.connect(place.address)
        except OSError as error:
            connection.close()
            failure = error
        else:
            return connection
    raise failure


def _is_special(address: Address) -> bool:
    if address in THIS_NETWORK or any(address in network for network in IPV4_IN_IPV6):
        return True
    return address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified


def _is_own(family: int, address: Any) -> bool:
    """Whether the kernel would come from the address that it goes to; this sends nothing."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)
            return _address(probe.getsockname()) == _address(address)
    except OSError:  # there is no route
        return False


def _address(of_socket: Any) -> Address:
    """An IPv4 address written as IPv6 is that IPv4 address."""
    address = ipaddress.ip_address(of_socket[0].partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address
