# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who listens on ports of this host."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs, Port
from ansible_collections.nometal.ipi.plugins.module_utils._observe import libvirt_files
from ansible_collections.nometal.ipi.plugins.module_utils._observe.host import names_in, text_if_there, text_of

PROC = Path("/proc")
IP_FREEBIND, IPV6_FREEBIND = 15, 78  # bind to an address that the host will only have later
LISTENING = {"tcp": "0A", "udp": "07"}


@dataclass(frozen=True)
class Holder:
    """A process that listens; `marks` is what it can be known by: its command line and its control group."""

    name: str
    pid: int
    marks: str

    def __str__(self) -> str:
        return f"{self.name} (pid {self.pid})"


@dataclass(frozen=True)
class Taken:
    port: Port
    holders: tuple[Holder, ...]
    own_networks: tuple[str, ...] = ()
    """What libvirt calls the lab's networks now, which the lab may call otherwise by then."""


def measure_ports(needs: Needs) -> tuple[Taken, ...]:
    busy = [port for port in needs.ports if not _can_be_bound(port)]
    uuids = {network.uuid for network in needs.networks}
    own = tuple(network.name for network in libvirt_files.networks() if network.uuid in uuids) if busy else ()
    return tuple(Taken(port, tuple(_holders(port)), own) for port in busy)


def _can_be_bound(port: Port) -> bool:
    family = socket.AF_INET6 if ":" in port.address else socket.AF_INET
    kind = socket.SOCK_STREAM if port.protocol == "tcp" else socket.SOCK_DGRAM
    with socket.socket(family, kind) as probe:
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
        else:
            probe.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
        if kind == socket.SOCK_STREAM:  # closed connections still linger on the port and are no listener
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((port.address, port.number))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True


def _holders(port: Port) -> Iterator[Holder]:
    sockets = {f"socket:[{inode}]" for inode in _inodes(port)}
    for pid in filter(str.isdigit, names_in(PROC)):
        if sockets & set(_open_files(PROC / pid / "fd")):
            marks = text_if_there(PROC / pid / "cmdline").replace("\0", " ") + text_if_there(PROC / pid / "cgroup")
            yield Holder(text_if_there(PROC / pid / "comm"), int(pid), marks)


def _inodes(port: Port) -> Iterator[str]:
    for table in (port.protocol, f"{port.protocol}6"):
        for line in text_of(PROC / "net" / table).splitlines()[1:]:
            fields = line.split()
            address, number = fields[1].split(":")
            if int(number, 16) == port.number and fields[3] == LISTENING[port.protocol] and _meets(address, port):
                yield fields[9]


def _meets(hexadecimal: str, port: Port) -> bool:
    """Whether a socket on that address of /proc/net (words in host order) is in the way of the port."""
    words = [bytes.fromhex(hexadecimal[at : at + 8])[::-1] for at in range(0, len(hexadecimal), 8)]
    bound, wanted = ipaddress.ip_address(b"".join(words)), ipaddress.ip_address(port.address)
    return bound.is_unspecified or wanted.is_unspecified or bound == wanted


def _open_files(directory: Path) -> Iterator[str]:
    try:
        for entry in os.scandir(directory):
            yield str(Path(entry.path).readlink())
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return  # the process has ended meanwhile, or is not ours to look into
