# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the host sees of a cluster's virtual addresses: whether something answers there, and which machine has them."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import macs_of_neighbours

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

API_PORT = 6443
CONNECT_SECONDS = 3.0


@dataclass(frozen=True)
class SeenVip:
    error: OSError | None
    """Of a connection to its port."""
    mac: str
    """Of the host's neighbour that has it; empty if none has."""


def look(asked: Sequence[tuple[str, int]]) -> list[SeenVip]:
    """At addresses and ports. A neighbour's MAC address is known once it was connected to, also if it refuses."""
    with ThreadPoolExecutor() as pool:
        errors = list(pool.map(_error_at, asked))
    macs = macs_of_neighbours()
    return [SeenVip(error, macs.get(address, "")) for (address, _port), error in zip(asked, errors)]


def look_for_api(addresses: Iterable[str]) -> dict[str, SeenVip]:
    """By address."""
    wanted = list(addresses)
    return dict(zip(wanted, look([(address, API_PORT) for address in wanted])))


def _error_at(asked: tuple[str, int]) -> OSError | None:
    try:
        socket.create_connection(asked, CONNECT_SECONDS).close()
    except OSError as error:
        return error
    return None
