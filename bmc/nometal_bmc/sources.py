# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom limits count: the network that a client comes from."""

from __future__ import annotations

import ipaddress

__all__ = ["source_of"]

IPV6_NETWORK_BITS = 64


def source_of(address: str) -> str:
    """An IPv4 address itself; of IPv6 the /64, since a client there has as many addresses as it likes."""
    if ":" not in address:
        return address
    return str(ipaddress.ip_network((address.partition("%")[0], IPV6_NETWORK_BITS), strict=False))
