# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A libvirt network as the lab knows it, and how one becomes another. Pure: no libvirt, no host."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
from ansible_collections.nometal.ipi.plugins.module_utils._lab.network import Definition, Health, Network

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


LIVE_SECTIONS = {
    "ranges": "IP_DHCP_RANGE",
    "reservations": "IP_DHCP_HOST",
    "hosts": "DNS_HOST",
    "srv": "DNS_SRV",
    "txt": "DNS_TXT",
}
"""What libvirt changes in a running network, and what it calls that."""
HOW_TO_ALLOW = "Set `restart: allowed` (with the role: `-e lab_network_restart=allowed`)"
FIELDS_OF_RESTART = tuple(field.name for field in fields(Definition) if field.name not in LIVE_SECTIONS)


def plan(current: Network | None, desired: Network | None, *, may_restart: bool) -> Sequence[Step]:
    if desired is not None:
        absent = Network(desired.name, None, None, live=None, autostart=False, hook=False)
        return _plan_presence(current or absent, desired, may_restart)
    return [] if current is None else _plan_removal(current)


def _plan_presence(current: Network, desired: Network, may_restart: bool) -> Sequence[Step]:
    running, wanted = current.running, desired.definition
    differing = _differing(running, wanted, FIELDS_OF_RESTART)
    if differing and not may_restart:
        raise OperatorError(
            f"network {desired.name} runs, and only a restart can change {_changes(running, wanted, differing)}. "
            f"It stays as it is. {HOW_TO_ALLOW}: guests then lose their network for a second or two and get all of "
            "it back."
        )
    # Without its bridge, nothing is plugged in any more: that it comes back needs no leave.
    restart = bool(differing) or current.health.bridge == "gone"
    redefined = (current.owner, current.definition) != (desired.owner, desired.definition)
    starts = restart or running is None
    sections = [] if restart else _differing(running, wanted, LIVE_SECTIONS)
    leases = tuple(lease.ip for lease in current.stale_leases)
    steps = {
        Step("define", desired.name): redefined,
        Step("install hook of", desired.name): not current.hook,
        Step("destroy", desired.name): restart,
        Step("forget", leases): starts and bool(leases),
        Step("start", desired.name): starts,
        **({} if restart or running is None else _repairs(desired.name, running.bridge, current.health)),
        **{Step("update", section): True for section in sections},
        Step("reconnect ports of", desired.name): restart or bool(current.noted_ports),
        Step("autostart" if desired.autostart else "disable autostart of", desired.name): (
            current.autostart != desired.autostart
        ),
        Step("release", leases): not starts and bool(leases),
    }
    return [step for step, needed in steps.items() if needed]


def _repairs(name: str, bridge: str, health: Health) -> dict[Step, bool]:
    """While it runs. Addresses come after the bridge, which loses those of IPv6 when it goes down."""
    return {
        Step("restore packet filter rules of", name): bool(health.lost_rules),
        Step("forward packets of", name): bool(health.not_forwarding),
        Step("bring up", bridge): health.bridge == "down",
        **{Step("add address", address): True for address in health.missing_addresses},
        Step("start dnsmasq of", name): not health.dnsmasq,
    }


def _plan_removal(current: Network) -> Sequence[Step]:
    # The definition goes last: as long as it is there, it tells whose the rest is.
    steps = {
        "destroy": current.live is not None,
        "remove hook of": current.hook,
        "forget ports of": bool(current.noted_ports),
        "undefine": current.definition is not None,
    }
    return [Step(verb, current.name) for verb, needed in steps.items() if needed]


def _differing(running: Definition | None, wanted: Definition | None, names: Iterable[str]) -> list[str]:
    if running is None:
        return []
    return [name for name in names if getattr(running, name) != getattr(wanted, name)]


def _changes(running: Definition | None, wanted: Definition | None, names: Iterable[str]) -> str:
    changes = ((name, getattr(running, name), getattr(wanted, name)) for name in names)
    return "; ".join(f"{name} from {_shown(before)} to {_shown(after)}" for name, before, after in changes)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (", ".join(value) if isinstance(value, tuple) else str(value or "")) or "none"
