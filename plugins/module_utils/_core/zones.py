# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ipaddress
import re

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import LONGEST_DOMAIN

LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?")
SMALLEST_ZONE = {4: 24, 6: 124}
BITS_OF_LABEL = {4: 8, 6: 4}


def domain(text: str) -> str:
    """As the servers spell it. A single label could be a whole top-level domain of the internet."""
    name = text.lower().rstrip(".")
    labels = name.split(".")
    if len(labels) == 1 or len(name) > LONGEST_DOMAIN or not all(LABEL.fullmatch(label) for label in labels):
        raise OperatorError(f"domains: must be a domain name of two labels or more (got {text!r}).")
    return name


def server(text: str) -> str:
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        raise OperatorError(f"servers: must be an IP address (got {text!r}).") from error
    meant = getattr(address, "ipv4_mapped", None) or address
    # On loopback the host would ask itself, maybe for ever.
    if meant.is_loopback or meant.is_multicast or meant.is_unspecified or meant.is_link_local:
        raise OperatorError(
            f"servers: {text} cannot be a lab's name server, since it is loopback, multicast, link-local or "
            "unspecified: give the one in the lab's network, such as that of its bridge."
        )
    return str(address)


def reverse_zones(text: str) -> tuple[str, ...]:
    """Zones are cut at the dots: a subnet is one or several of them, or part of one."""
    try:
        subnet = ipaddress.ip_network(text)
    except ValueError as error:
        raise OperatorError(f"subnets: must be a subnet (got {text!r}): {error}.") from error
    bits, smallest = BITS_OF_LABEL[subnet.version], SMALLEST_ZONE[subnet.version]
    if subnet.prefixlen < bits:
        raise OperatorError(f"subnets: {text} is too large to be a lab's.")
    if subnet.prefixlen > smallest:
        return (_zone(subnet.supernet(new_prefix=smallest), smallest // bits),)
    prefix = -(-subnet.prefixlen // bits) * bits
    return tuple(_zone(part, prefix // bits) for part in subnet.subnets(new_prefix=prefix))


def _zone(subnet: ipaddress.IPv4Network | ipaddress.IPv6Network, labels: int) -> str:
    pointer = subnet.network_address.reverse_pointer.split(".")
    return ".".join(pointer[-labels - 2 :])
