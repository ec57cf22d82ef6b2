# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the module's arguments to the network that they declare."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core import types as kinds
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.network import Definition, Network, Reservation
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network import dnsmasq
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network import rules as network_rules
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.declared import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.declared import Declared

NAME_PATTERN = "[A-Za-z0-9][-A-Za-z0-9_.]{0,99}"


def network_from(params: dict[str, Any]) -> Network:
    """Or everything that is wrong with them, in one message."""
    reader = Reader()
    declared = reader.read(params)
    problems = reader.problems or list(network_rules.problems(declared))
    if problems:
        listed = "\n".join(f"- {problem}" for problem in problems)
        raise OperatorError(f"network {params['name']} cannot be like this:\n{listed}")
    definition = _definition(declared, params["bridge"], params["forward"])
    return Network(params["name"], params["owner"], definition, autostart=params["autostart"])


def refuse_name(name: str) -> None:
    """Files are called after the network, also when it is to be gone."""
    if not re.fullmatch(NAME_PATTERN, name):
        raise OperatorError(f"name is {name!r}; letters, digits, dot, hyphen and underscore are right.")


def refuse_owner(owner: str) -> None:
    try:
        kinds.dns_label(owner)
    except ValueError as error:
        raise OperatorError(f"owner {error}.") from error


def _definition(declared: Declared, bridge: str, forward: str) -> Definition:
    leases = network_rules.leases_beside_ranges(declared)
    return Definition(
        bridge=bridge,
        forward=forward,
        mtu=declared.mtu,
        domain=declared.domain,
        addresses=tuple(map(str, declared.interfaces)),
        forwarders=declared.forwarders,
        options=(
            *(dnsmasq.reverse_lines(declared.interfaces) if declared.domain else ()),
            *dnsmasq.wildcard_lines(declared.wildcards),
            *dnsmasq.ntp_lines(declared.ntp_servers),
            *dnsmasq.pool_lines(declared.pools, declared.interfaces, isolated=forward == "isolated"),
            *(dnsmasq.known_only_lines(bridge, declared.interfaces) if declared.known_only else ()),
            *([dnsmasq.NO_PING] if declared.ranges or declared.pools else []),
        ),
        ranges=tuple(sorted(dnsmasq.with_room(declared.ranges, leases))),
        reservations=tuple(sorted(_reservations(declared))),
        hosts=tuple(sorted(declared.hosts)),
        srv=tuple(sorted(set(declared.srv))),
        txt=tuple(sorted(set(declared.txt))),
    )


def _reservations(declared: Declared) -> Iterator[Reservation]:
    for machine in declared.machines:
        for ip in machine.ips:
            yield Reservation(ip, (machine.duid or "") if ":" in ip else machine.mac, machine.name)
