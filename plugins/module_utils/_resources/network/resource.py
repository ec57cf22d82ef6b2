# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks from a module's arguments: read, made, changed, and removed with others of their owner."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError, refuse_all
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import one_at_a_time
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import Problems
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Resource, joined
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import Section
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import from_dict, lines_of
from ansible_collections.nometal.ipi.plugins.module_utils._lab.network import (
    Definition,
    DnsHost,
    Network,
    Range,
    Reservation,
    Srv,
    Txt,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Forward
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network import dnsmasq
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network import rules as network_rules
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.conflicts import Leaving, refuse_to_unplug
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.declared import Declared, Dhcp, Removed
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.port import NetworkPort, names_owned_by
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.state import plan

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step


def network_from(params: dict[str, Any]) -> Network:
    """Or everything that is wrong with them, in one message."""
    problems = Problems.none()
    declared = Section(Declared, ignores_others=True).parse(params, "", problems)
    wrong = lines_of(problems) or list(network_rules.problems(declared))
    if wrong:
        refuse_all([f"network {params['name']} is invalid:", *(f"- {line}" for line in wrong)])
    return Network(declared.name, declared.owner, _definition(declared), autostart=declared.autostart)


def _definition(declared: Declared) -> Definition:
    dhcp, dns, interfaces = declared.dhcp, declared.dns, declared.interfaces
    ranges = [Range(span.start, span.end) for span in dhcp.ranges]
    return Definition(
        bridge=declared.bridge,
        forward=str(declared.forward),
        mtu=declared.mtu,
        domain=declared.domain,
        addresses=tuple(map(str, interfaces)),
        forwarders=dns.forwarders,
        options=(
            *(dnsmasq.reverse_lines(interfaces) if declared.domain else ()),
            *dnsmasq.wildcard_lines(dns.wildcards),
            *dnsmasq.ntp_lines(declared.ntp_servers),
            *dnsmasq.pool_lines(dhcp.pools, interfaces, isolated=declared.forward == Forward.ISOLATED),
            *(dnsmasq.known_only_lines(declared.bridge, interfaces) if dhcp.known_only else ()),
            *([dnsmasq.NO_PING] if dhcp.ranges or dhcp.pools else []),
        ),
        ranges=tuple(sorted(dnsmasq.with_room(ranges, network_rules.leases_beside_ranges(declared)))),
        reservations=tuple(sorted(_reservations(dhcp))),
        hosts=tuple(sorted(DnsHost(host.ip, host.names) for host in dns.hosts)),
        srv=tuple(sorted({Srv(**vars(service)) for service in dns.records.srv})),
        txt=tuple(sorted({Txt(text.name, _quoted(text.value)) for text in dns.records.txt})),
    )


def _reservations(dhcp: Dhcp) -> Iterator[Reservation]:
    for machine in dhcp.reservations:
        for ip in machine.ips:
            yield Reservation(ip, (machine.duid or "") if ":" in ip else machine.mac, machine.name)


def _quoted(text: str) -> str:
    """Since libvirt writes it into dnsmasq's file as it is, where commas would cut it in pieces."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class LabNetwork(Resource["Network | None", NetworkPort]):
    def __init__(self, params: dict[str, Any], *, check_mode: bool, removed: Collection[str] = ()) -> None:
        super().__init__(params, check_mode=check_mode)
        self._leaving = Leaving(removed, params["leaving"])

    def desired(self) -> Network | None:
        if not self.is_wanted:
            from_dict(Removed, self.params)
        self._desired = network_from(self.params) if self.is_wanted else None
        return self._desired

    @contextmanager
    def open(self) -> Iterator[NetworkPort]:
        params = self.params
        with connect(params["libvirt_uri"]) as connection:
            yield NetworkPort(
                connection, params["name"], params["lab"], self._desired, uuid=params["uuid"], adopt=params["adopt"]
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
        if params["name"] is None:
            from_dict(Removed, params)
            names = _others(params, params["keep"], check_mode=check_mode)
            return joined(_remove(params, names, check_mode=check_mode))
    elif params["exclusive"]:
        return _make_alone(params, check_mode=check_mode)
    return LabNetwork.run(params, check_mode=check_mode)


def _others(params: dict[str, Any], keep: list[str], *, check_mode: bool) -> list[str]:
    """The owner's networks to remove. A lab whose specification has changed knows no longer what it called them."""
    try:
        with connect(params["libvirt_uri"]) as connection:
            names = [name for name in names_owned_by(connection, params["lab"]) if name not in keep]
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
    network_from(params)  # nothing is removed for one that cannot be made
    names = _others(params, [params["name"], *params["keep"]], check_mode=check_mode)
    if names and not check_mode:
        LabNetwork(params, check_mode=True, removed=names).reconcile()  # nor for one that would be refused
    removed = _remove(params, names, check_mode=check_mode)
    return joined([*removed, LabNetwork(params, check_mode=check_mode, removed=names).reconcile()])
