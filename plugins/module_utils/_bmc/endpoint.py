# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a BMC service listens, and the account by which people and this collection ask it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import HIGHEST_PORT, LOWEST_UNPRIVILEGED_PORT
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import must_be
from ansible_collections.nometal.ipi.plugins.module_utils._core.scalars import Whole
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import Text, key

OPERATOR = "operator"


def _address(value: str) -> str:
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        raise ValueError(must_be("an IP address of the lab's host", value)) from None
    if address.is_unspecified or address.is_multicast:
        raise ValueError(must_be("one address of the lab, or the whole world would be served", value))
    if address.is_link_local:
        raise ValueError(must_be("an address of the lab, not one that each link may have", value))
    return str(address)


ADDRESS = Text("IP address", _address, "192.168.126.1")
PORT = Whole(LOWEST_UNPRIVILEGED_PORT, HIGHEST_PORT, "port")


@dataclass(frozen=True)
class Endpoint:
    address: str = key(ADDRESS, "The address.", required=True)
    port: int = key(PORT, "The port, which needs no privileges.", required=True)

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"
