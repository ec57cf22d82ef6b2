# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks from a module's arguments: read, made, changed, and removed with others of their owner."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core import types as kinds
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError, OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import one_at_a_time
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Resource, joined
from ansible_collections.nometal.ipi.plugins.module_utils._lab.network import Definition, Network, Reservation
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Forward
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network import dnsmasq
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network import rules as network_rules
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.conflicts import Leaving, refuse_to_unplug
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.declared import Reader
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.port import NetworkPort, names_owned_by
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.state import plan

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
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
        kinds.cluster_name(owner)
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
            *dnsmasq.pool_lines(declared.pools, declared.interfaces, isolated=forward == Forward.ISOLATED),
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


class LabNetwork(Resource["Network | None", NetworkPort]):
    def __init__(self, params: dict[str, Any], *, check_mode: bool, removed: Collection[str] = ()) -> None:
        super().__init__(params, check_mode=check_mode)
        self._leaving = Leaving(removed, params["leaving"])

    def desired(self) -> Network | None:
        refuse_name(self.params["name"] or "")
        self._desired = network_from(self.params) if self.is_wanted else None
        return self._desired

    @contextmanager
    def open(self) -> Iterator[NetworkPort]:
        params = self.params
        with connect(params["libvirt_uri"]) as connection:
            yield NetworkPort(
                connection, params["name"], params["owner"], self._desired, uuid=params["uuid"], adopt=params["adopt"]
            )

    def conflicts(self) -> Sequence[str]:
        self.port.refuse_conflicts(self._leaving)
        return ()

    def plan(self, current: Network | None, desired: Network | None) -> Sequence[Step]:
        return plan(current, desired, may_restart=self.params["restart"] == "allowed")


def run(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    with one_at_a_time("libvirt_bridge_net", check_mode=check_mode):
        return act(params, check_mode=check_mode)


def act(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    if params["state"] == "absent":
        refuse_owner(params["owner"])
        if params["name"] is None:
            names = _others(params, params["keep"], check_mode=check_mode)
            return joined(_remove(params, names, check_mode=check_mode))
    elif params["exclusive"]:
        return _make_alone(params, check_mode=check_mode)
    return LabNetwork.run(params, check_mode=check_mode)


def _others(params: dict[str, Any], keep: list[str], *, check_mode: bool) -> list[str]:
    """The owner's networks to remove. A lab whose specification has changed knows no longer what it called them."""
    try:
        with connect(params["libvirt_uri"]) as connection:
            names = [name for name in names_owned_by(connection, params["owner"]) if name not in keep]
            if keep and params["restart"] == "refused":
                refuse_to_unplug(connection, Leaving(names, params["leaving"]), keep)
            return names
    except NotThereYetError:
        if not check_mode:
            raise
        return []


def _remove(params: dict[str, Any], names: list[str], *, check_mode: bool) -> list[dict[str, Any]]:
    return [LabNetwork.run({**params, "name": name, "state": "absent"}, check_mode=check_mode) for name in names]


def _make_alone(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    refuse_name(params["name"])
    network_from(params)  # nothing is removed for one that cannot be made
    names = _others(params, [params["name"], *params["keep"]], check_mode=check_mode)
    if names and not check_mode:
        LabNetwork(params, check_mode=True, removed=names).reconcile()  # nor for one that would be refused
    removed = _remove(params, names, check_mode=check_mode)
    return joined([*removed, LabNetwork(params, check_mode=check_mode, removed=names).reconcile()])
