# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guests from which a word is awaited: what the host sees of them, and when they are given up."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import BOOTSTRAP
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session import waiting
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.consoles import Consoles, Guest
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.script import boot_seconds
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.waiting import Limits, Signs, Wait

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None

if TYPE_CHECKING:
    from collections.abc import Callable

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab

AWAITED = ("boots from its medium", "looks around", "writes its disk", "boots from its disk")
"""States of nodes in which the bootstrap VM waits for their word."""
LOOK_SECONDS = 2.0
NANO = 1e9


@dataclass
class Watch:
    """Whoever begins to wait for a guest's word says so, and so does who has it."""

    signs_of: Callable[[Guest], Signs | None]
    clock: Callable[[], float] = time.monotonic
    _waits: dict[str, tuple[Guest, Limits, Wait]] = field(default_factory=dict)
    _looked: float = 0.0

    def begin(self, who: str, guest: Guest, limits: Limits) -> None:
        self._waits[who] = (guest, limits, waiting.begun(self.clock(), self.signs_of(guest)))

    def end(self, who: str) -> None:
        self._waits.pop(who, None)

    def given_up(self) -> dict[str, str]:
        """Those that need not be waited for any more, and why. They are looked at every few seconds."""
        now = self.clock()
        if now - self._looked < LOOK_SECONDS:
            return {}
        self._looked = now
        for who, (guest, limits, wait) in self._waits.items():
            self._waits[who] = (guest, limits, waiting.continued(wait, now, self.signs_of(guest)))
        reasons = {who: waiting.over(wait, now, limits) for who, (_guest, limits, wait) in self._waits.items()}
        lost = {who: reason for who, reason in reasons.items() if reason}
        for who in lost:
            self.end(who)
        return lost


class Guests:
    """Those of one lab, by what the bootstrap VM says of itself and of the nodes."""

    def __init__(self, lab: Lab, consoles: Consoles, patience: float, watch: Watch) -> None:
        self._consoles, self._watch = consoles, watch
        self._limits = waiting.limits(patience, boot_seconds(lab))
        watch.begin(BOOTSTRAP, consoles.guest(BOOTSTRAP), waiting.limits(patience))

    def hear(self, event: dict[str, Any]) -> None:
        who = event.get("who", "")
        if who:
            self._watch.end(BOOTSTRAP)
        if event.get("event") == "state" and event["state"] in AWAITED and who != BOOTSTRAP:
            self._watch.begin(who, self._consoles.guest(who), self._limits)
        elif event.get("event") == "state" or not event.get("ok", True):
            self._watch.end(who)

    def given_up(self) -> dict[str, str]:
        return self._watch.given_up()


def signs(connection: Any, guest: Guest) -> Signs | None:
    """None of one that is off. Its console is there after its end, too, and says nothing of what it does now."""
    try:
        domain = connection.lookupByName(guest.domain)
        kinds = libvirt.VIR_DOMAIN_STATS_VCPU | libvirt.VIR_DOMAIN_STATS_BLOCK
        flags = libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT
        found = connection.domainListGetStats([domain], kinds, flags) if domain.isActive() else []
    except libvirt.libvirtError:  # it has gone meanwhile, or qemu is too busy to answer
        found = []
    return read_from(found[0][1], _size(guest.console)) if found else None


def read_from(stats: dict[str, Any], output: int) -> Signs:
    def total(begin: str, *ends: str) -> int:
        return sum(value for key, value in stats.items() if key.startswith(begin) and key.endswith(ends))

    return Signs(
        output=output,
        moved=total("block.", ".rd.bytes", ".wr.bytes"),
        computed=total("vcpu.", ".time") / NANO,
        starved=total("vcpu.", ".delay") / NANO,
    )


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0
