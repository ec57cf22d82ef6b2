# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError, refusals_of
from ansible_collections.nometal.ipi.plugins.module_utils._core.host_baseline import HostMemory
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import one_at_a_time
from ansible_collections.nometal.ipi.plugins.module_utils._core.network_hook import ENTRIES, HookEntry
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Resource, Step
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import from_dict
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall import firewalld, iptables, nftables, unit
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.firewalld import (
    Firewalld,
    Opening,
    opening_from,
)
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.firewalld_files import copy_of
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.host import Chain, no_bridges, run
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.lab import Lab

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

RECORD = "# In firewalld: "
COPIES = "firewalld_files"
FRAME = """\
#!/bin/sh
# Made by nometal.ipi for the lab {owner}, and removed with it.
# Lets the lab's packets through this host's firewall, again whenever a libvirt network has started.
{record}\
[ "${{2:-}}" = stopped ] && exit 0
PATH=$PATH:/usr/sbin:/sbin
failed=0
exec 9<"$0"
flock -w 8 9 || exit 1
{commands}\
exit "$failed"
"""


@dataclass(frozen=True)
class Firewall:
    """What of a lab is in the host's firewall. The hook's entry brings its chains back when a network starts."""

    chains: tuple[Chain, ...] = ()
    openings: tuple[Opening, ...] = ()
    hook_entry: str = "absent"
    units: tuple[str, ...] = ()
    """What has systemd bring the chains back when a service of the host has written the packet filter anew."""
    copies: tuple[str, ...] = ()
    """Of firewalld's files, made when the labs' openings were, and needless by now."""


NOTHING = Firewall()


def plan(current: Firewall | None, desired: Firewall | None) -> Sequence[Step]:
    current = current or NOTHING
    return _plan_removal(current) if desired is None else _plan_presence(current, desired)


def _plan_presence(current: Firewall, desired: Firewall) -> Sequence[Step]:
    # What would be unknown, once the entry is written anew, goes first.
    outdated = _outdated(current.chains, desired.chains)
    staying = {chain for chain in current.chains if chain.place not in outdated}
    entry_differs = current.hook_entry != desired.hook_entry
    return [
        *(Step("close", item) for item in current.openings if item not in desired.openings),
        *(Step("remove", place) for place in outdated),
        *([Step("write", "hook entry")] if entry_differs else []),
        *([Step("run", "hook entry")] if set(desired.chains) - staying else []),
        *(Step("open", item) for item in desired.openings if item not in current.openings),
        *(Step("disable", name) for name in current.units if "@." not in name and name not in desired.units),
        *(
            Step("write" if name == unit.TEMPLATE else "enable", name)
            for name in desired.units
            if name not in current.units
        ),
    ]


def _outdated(current: Sequence[Chain], desired: Sequence[Chain]) -> list[str]:
    calls = {(chain.place, chain.caller) for chain in desired}
    places = {chain.place for chain in desired}
    return list(
        dict.fromkeys(
            chain.place
            for chain in current
            if chain.place not in places or (chain.called and (chain.place, chain.caller) not in calls)
        )
    )


def _plan_removal(current: Firewall) -> Sequence[Step]:
    # The entry knows what is in firewalld, so it outlives that; it would bring chains back, so it goes before them.
    return [
        *(Step("close", item) for item in current.openings),
        *(Step("disable", name) for name in current.units if "@." not in name),
        *([Step("delete", unit.TEMPLATE)] if any("@." in name for name in current.units) else []),
        *([] if current.hook_entry == "absent" else [Step("delete", "hook entry")]),
        *(Step("remove", place) for place in dict.fromkeys(chain.place for chain in current.chains)),
        *(Step("restore", place) for place in current.copies),
    ]


class FirewallPort:
    """The firewall of this host by all means that it has: iptables, nftables, firewalld."""

    def __init__(self, lab: Lab, memory: HostMemory, *, goes: bool = False) -> None:
        self._lab = lab
        self._memory = memory
        self._goes = goes
        self._entry = HookEntry(f"{lab.owner}.firewall")
        self._iptables = {tool.program: tool for tool in iptables.installed()}
        native = [tool for tool in self._iptables.values() if tool.uses_nftables]
        self._nftables = (
            nftables.Nftables({iptables.NFTABLES_FAMILIES[tool.program] for tool in native})
            if nftables.installed()
            else None
        )
        self._firewalld = Firewalld() if firewalld.installed() else None

    def conflicts(self) -> list[str]:
        problems: list[str] = []
        others = no_bridges(self._lab.bridges)
        if others:
            verb = "exists and is not a bridge" if len(others) == 1 else "exist and are not bridges"
            problems.append(f"{', '.join(others)} {verb}; the firewall stays as it is: name the lab's own bridges.")
        if self._firewalld:
            problems += refusals_of(self._firewalld.refuse_conflicts)
        # Last: what is missing is no conflict, and in check mode ends the search for conflicts.
        if not problems and not self._iptables and not self._nftables:
            raise NotThereYetError("Neither iptables nor nft is installed: role nometal.ipi.host_prep installs one.")
        return problems

    @cached_property
    def wanted(self) -> Firewall:
        chains = [
            chain
            for name, tool in self._iptables.items()
            for chain in tool.wanted(self._lab, alone=not self._nftables and name not in iptables.LEGACY_TABLES)
        ]
        chains += self._nftables.wanted(self._lab) if self._nftables else []
        openings = self._firewalld.wanted(self._lab) if self._firewalld else []
        return Firewall(tuple(sorted(chains)), tuple(openings), "present", unit.wanted())

    def read(self) -> Firewall | None:
        chains = [chain for tool in self._iptables.values() for chain in tool.read(self._lab)]
        chains += self._nftables.read(self._lab) if self._nftables else []
        text = self._entry.read()
        state = "absent" if text is None else "present" if text == self._text() else "outdated"
        openings = self._openings(self._entry.text() or "")
        found = Firewall(tuple(sorted(chains)), tuple(openings), state, self._units(), tuple(self._copies()))
        return None if found == NOTHING else found

    def _units(self) -> tuple[str, ...]:
        """They are not this lab's to remove as long as others need them."""
        others = {path.name for path in ENTRIES.glob("*.firewall")} - {self._entry.name}
        return () if self._goes and others else unit.read()

    def _openings(self, entry: str) -> list[Opening]:
        if not self._firewalld:
            return []
        recorded = [opening_from(line[len(RECORD) :]) for line in entry.splitlines() if line.startswith(RECORD)]
        return self._firewalld.read([*self._firewalld.wanted(self._lab), *recorded])

    def _copies(self) -> list[str]:
        return self._firewalld.copies(self._memory.recall().get(COPIES, {})) if self._firewalld else []

    def apply(self, step: Step) -> None:
        if step.target in (unit.TEMPLATE, "hook entry"):
            self._apply_to_file(step)
        elif step.verb == "remove":
            self._remove(step.target)
        elif step.verb in ("enable", "disable"):
            {"enable": unit.enable, "disable": unit.disable}[step.verb](step.target)
        elif self._firewalld:
            self._apply_to_firewalld(step, self._firewalld)

    def _apply_to_firewalld(self, step: Step, daemon: Firewalld) -> None:
        if step.verb == "open":
            self._memory.note({COPIES: dict.fromkeys(copy_of(step.target.place).missing(), "missing")})
            daemon.add(step.target)
        elif step.verb == "close":
            daemon.remove(step.target)
            for place in self._copies():
                daemon.restore(place)
        elif step.verb == "restore":
            daemon.restore(step.target)

    def _apply_to_file(self, step: Step) -> None:
        {
            "write hook entry": lambda: self._entry.write(self._text()),
            "run hook entry": lambda: run(str(ENTRIES / self._entry.name)),
            "delete hook entry": self._entry.remove,
            f"write {unit.TEMPLATE}": unit.write,
            f"delete {unit.TEMPLATE}": unit.delete,
        }[str(step)]()

    def _remove(self, place: str) -> None:
        chain = next(chain for chain in (self.read() or NOTHING).chains if chain.place == place)
        tool = self._iptables.get(chain.means) or self._nftables
        if tool:
            tool.remove(chain)

    def _text(self) -> str:
        """The entry: commands that do no harm when all is there already."""
        firewall = self.wanted
        parts = [iptables.CALL_FUNCTION] if self._iptables else []
        for program, tool in self._iptables.items():
            parts.append(tool.script([chain for chain in firewall.chains if chain.means == program]))
        if self._nftables:
            parts.append(self._nftables.script([chain for chain in firewall.chains if chain.means == nftables.MEANS]))
        record = "".join(f"{RECORD}{opening}\n" for opening in firewall.openings)
        return FRAME.format(owner=self._lab.owner, record=record, commands="".join(parts))


class LabFirewall(Resource["Firewall | None", FirewallPort]):
    alone = partial(one_at_a_time, "lab_firewall")

    def desired(self) -> Firewall | None:
        memory = HostMemory(Path(self.params["memory"]))
        self.port = FirewallPort(from_dict(Lab, self.params), memory, goes=not self.is_wanted)
        return self.port.wanted if self.is_wanted else None

    def open(self) -> AbstractContextManager[FirewallPort]:
        return nullcontext(self.port)

    def conflicts(self) -> list[str]:
        return self.port.conflicts() if self.is_wanted else []

    def plan(self, current: Firewall | None, desired: Firewall | None) -> Sequence[Step]:
        return plan(current, desired)
