# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the host itself sees: the API's address and name, and how hard it works."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import read_neighbours

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

API_PORT = 6443
CONNECT_SECONDS, NAME_SECONDS = 3, 6
MEMORY = Path("/proc/meminfo")
PRESSURE = Path("/proc/pressure")
PARTS = ("cpu", "memory", "io")


@dataclass(frozen=True)
class HostSeen:
    load: float = 0.0
    """Of the last minute."""
    cores: int = 1
    memory_available: float = 1.0
    """A share."""
    pressure: Mapping[str, float] = field(default_factory=dict)
    """Percent of the last minute in which something waited; of those kinds that the kernel tells."""
    api: Mapping[str, str] = field(default_factory=dict)
    """By virtual address, why the API is not reached there; empty when it is."""
    api_refused: Sequence[str] = ()
    """Virtual addresses at which there is somebody, but no API."""
    api_macs: Mapping[str, str] = field(default_factory=dict)
    """By virtual address, which of the host's neighbours holds it; of those that one holds."""
    api_name: str = ""
    api_addresses: Sequence[str] = ()
    """What the host's resolver says to that name."""


def look(domain: str, api_vips: Sequence[str]) -> HostSeen:
    name = f"api.{domain}" if domain else ""
    errors = {vip: error_at(vip, API_PORT) for vip in api_vips}  # and then they are neighbours
    macs = {neighbour.address: neighbour.mac for neighbour in read_neighbours()}
    return HostSeen(
        load=os.getloadavg()[0],
        cores=os.cpu_count() or 1,
        memory_available=_memory_available(),
        pressure={part: some for part in PARTS if (some := _pressure(part)) is not None},
        api={vip: _said(error) for vip, error in errors.items()},
        api_refused=[vip for vip, error in errors.items() if isinstance(error, ConnectionRefusedError)],
        api_macs={vip: macs[vip] for vip in api_vips if vip in macs},
        api_name=name,
        api_addresses=_addresses(name) if name else (),
    )


def error_at(address: str, port: int) -> OSError | None:
    try:
        socket.create_connection((address, port), CONNECT_SECONDS).close()
    except OSError as error:
        return error
    return None


def _said(error: OSError | None) -> str:
    return (error.strerror or str(error) or type(error).__name__) if error else ""


def _addresses(name: str) -> list[str]:
    """A resolver with a dead name server keeps whoever asks it for long."""
    found: set[str] = set()

    def ask() -> None:
        with suppress(OSError, UnicodeError):
            found.update(str(answer[4][0]) for answer in socket.getaddrinfo(name, None))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(NAME_SECONDS)
    return sorted(found)


def _memory_available() -> float:
    with suppress(OSError, ValueError, KeyError, ZeroDivisionError):
        lines = (line.split(":") for line in MEMORY.read_text(encoding="ascii").splitlines())
        figures = {name: int(value.split()[0]) for name, value in lines}
        return figures["MemAvailable"] / figures["MemTotal"]
    return 1.0


def _pressure(part: str) -> float | None:
    with suppress(OSError, ValueError, StopIteration):
        line = (PRESSURE / part).read_text(encoding="ascii").splitlines()[0]
        return float(next(word for word in line.split() if word.startswith("avg60="))[len("avg60=") :])
    return None
