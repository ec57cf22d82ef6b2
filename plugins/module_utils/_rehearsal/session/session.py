# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playing a rehearsal, and undoing it: whatever happens, the lab is left as it was found."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._agent.redfish import BmcFailed, Redfish
from ansible_collections.nometal.ipi.plugins.module_utils._bmc import credentials
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import BOOTSTRAP, Observations
from ansible_collections.nometal.ipi.plugins.module_utils._core import files, removal, wait
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.events import EventLog
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import from_dict, to_dict
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Firmware
from ansible_collections.nometal.ipi.plugins.module_utils._observe import disk_users, node_vms
from ansible_collections.nometal.ipi.plugins.module_utils._observe.node_vms import NodeVm
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session import (
    bootstrap_vm,
    host_view,
    waiting,
    watching,
)
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.bootstrap_vm import BootstrapVm, Traces
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.consoles import Consoles
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.line import Line
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.nvram import NvramKeeper
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.script import (
    Secrets,
    Surroundings,
    is_our_medium,
    script,
)
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.watching import Watch
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network import leases
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.wipe import empty_drive, make_blank, switch_off

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


LOOKS, SETTLE_SECONDS = 2, 0.5
"""What BMCs were told just before the bootstrap VM went may take a moment."""
JOURNAL = "journal.json"
KNOWN = ("nvram", ".journal.json.new")
"""What a rehearsal keeps of a lab, beside its journal."""
SILENCE_SECONDS = 60
"""More than the bootstrap VM waits for any of its nodes: then it has something to say."""
STARTS = ("boots from its medium", "boots from its disk")
"""States of nodes that have just been switched on; checks are called like them."""


@dataclass(frozen=True)
class Places:
    """Where on the host things are."""

    image: Path
    bmc_home: Path = Path("/var/lib/nometal/bmc")
    home: Path = Path("/var/lib/nometal/rehearsal")


class Stage:
    """One lab on its host, on which rehearsals are played."""

    def __init__(self, lab: Lab, places: Places, connection: Any, patience: float = 1.0) -> None:
        self._lab = lab
        self._patience = patience
        self._places = places
        self._connection = connection
        self._home = places.home / lab.name
        self._journal = self._home / JOURNAL
        self._nvram = NvramKeeper(self._home / "nvram")
        self._bootstrap = bootstrap_vm.Paths(lab.bootstrap_domain, lab.name)
        self.consoles = Consoles(lab)

    # What is there

    def nodes(self) -> list[NodeVm]:
        return node_vms.look(self._connection, [vars(node) for node in self._lab.nodes])

    def obstacles(self) -> tuple[list[str], list[str]]:
        """Nodes that are missing, and nodes that are in use: nothing of theirs is touched."""
        found = self.nodes()
        there = {vm.name for vm in found}
        missing = [f"{node.name} has no VM" for node in self._lab.nodes if node.name not in there]
        missing += [f"{vm.name} lacks its disk {path}" for vm in found for path in vm.lost]
        return missing, [*(f"{vm.name} {vm.in_use}" for vm in found if vm.in_use), *self._depended_on(found)]

    def _depended_on(self, found: list[NodeVm]) -> Iterator[str]:
        """What is written to a disk is lost to images that are based on it."""
        disks = {path: vm.name for vm in found for path in vm.disks}
        uses, doubts = disk_users.dependents(self._connection, disks, [vm.vm_name for vm in found])
        yield from (f"{disks[use.file]} has the disk {use.file}, which is {use.how}" for use in uses)
        yield from (f"of the nodes' disks, one may be in use: {doubt}" for doubt in doubts)

    @property
    def traces(self) -> Traces:
        """Of the bootstrap VM, as they are now."""
        return Traces(self._connection, self._bootstrap)

    @property
    def is_dirty(self) -> bool:
        """Whether an earlier rehearsal was killed."""
        return self._home.exists() or self.traces.is_there

    @property
    def as_noted(self) -> Stage:
        """Of the lab as it was specified when a rehearsal of it was killed."""
        try:
            noted = from_dict(Lab, json.loads(self._journal.read_text(encoding="utf-8")))
        except (OSError, ValueError, OperatorError):
            return self
        return Stage(noted, self._places, self._connection)

    # Undoing

    def clear(self) -> list[str]:
        """Undoes a rehearsal that has ended or was killed. Nodes with a system are left alone. Returns what stays."""
        macs = self.traces.macs()
        kept = self.traces.remove()
        for _look in range(LOOKS if self._journal.exists() else 0):
            touched = [vm for vm in self.nodes() if not vm.has_system]
            for vm in touched:
                self._clear_node(vm)
            macs += [mac for vm in touched for mac in vm.macs]
            wait.CLOCK.sleep(SETTLE_SECONDS)
        for network in self._lab.networks:
            leases.release(self._connection, network.name, macs)
        kept += removal.remove_known(self._home, KNOWN, self._journal.name)
        files.remove_empty(self._home.parent)  # unless other labs have theirs there
        return kept

    def _clear_node(self, vm: NodeVm) -> None:
        if vm.running:
            switch_off(self._connection, vm.vm_name)
        self._clear_bmc(vm)
        for path, content in vm.disks.items():
            if content == node_vms.OURS:
                make_blank(path)
        self._nvram.put_back(vm)

    def _clear_bmc(self, vm: NodeVm) -> None:
        """By its BMC, which has medium and boot order, unless that is out of order."""
        is_ours = bool(vm.medium) and _is_ours(vm.medium)
        with suppress(BmcFailed, OSError, KeyError, OperatorError):
            bmc = self._bmc(vm)
            if is_ours and is_our_medium(self._lab.name, bmc.medium()):
                bmc.eject()
            bmc.forget_overrides()
        if is_ours and any(left.medium for left in self.nodes() if left.name == vm.name):
            empty_drive(self._connection, vm.vm_name)

    def _bmc(self, vm: NodeVm) -> Redfish:
        return Redfish(self._bmcs[vm.name], "")

    @cached_property
    def _bmcs(self) -> dict[str, dict[str, Any]]:
        """As the guests get them."""
        whole = script(self._lab, "", ("",), self._secrets(), Surroundings())
        return {entry["name"]: entry["bmc"] for entry in whole["nodes"]}

    def _secrets(self) -> Secrets:
        file = credentials.file_of(self._places.bmc_home, self._lab.name)
        logins = credentials.read(file)
        if not logins:
            raise OperatorError(f"{file} is not there: playbooks/bmc.yml gives the VMs their BMCs.")
        ca = credentials.ca_of(self._places.bmc_home, self._lab.name)
        return Secrets(
            logins={name: {"username": login.username, "password": login.password} for name, login in logins.items()},
            ca=ca.read_text(encoding="ascii") if self._lab.bmc.tls and ca.exists() else "",
        )

    # Playing

    def play(self, observed: Observations, event_log: EventLog, watch: Callable[[], None]) -> None:
        """Watch is called once everything runs. What goes wrong in the guests is among what was observed."""
        secrets = self._secrets()
        self._note_touched()
        play = token_hex(4)
        vm = self._bootstrap_vm()
        event_log.note(BOOTSTRAP, "boots")
        try:
            line = Line(bootstrap_vm.start(self._connection, vm, self._places.image))
        except libvirt.libvirtError as error:
            observed.host["boots"] = str(error)
            observed.stop("the bootstrap VM cannot be started")
            return
        try:
            strangers = host_view.strangers(self._connection, self._lab)
            around = Surroundings(strangers, host_view.outside(self._lab))
            told = script(self._lab, play, vm.macs, secrets, around, patience=self._patience)
            self._listen(line, observed, event_log, told, watch)
        finally:
            line.close()

    def _note_touched(self) -> None:
        files.own_directory(self._home)
        self.consoles.begin()
        for vm in self.nodes():
            self._nvram.keep(vm)
        files.write_whole(self._journal, json.dumps(to_dict(self._lab)), 0o600)

    def _bootstrap_vm(self) -> BootstrapVm:
        lab = self._lab
        provisioning = [lab.provisioning_network.bridge] if lab.provisioning_network else []
        first = lab.bootstrap.mac or bootstrap_vm.random_mac()
        return BootstrapVm(
            paths=self._bootstrap,
            domain_type=bootstrap_vm.domain_type(self._connection, [node.vm_name for node in lab.nodes]),
            uefi=any(node.firmware != Firmware.BIOS for node in lab.nodes),
            macs=[first, *(bootstrap_vm.random_mac() for _bridge in provisioning)],
            bridges=[lab.bridge, *provisioning],
        )

    def _listen(
        self, line: Line, observed: Observations, event_log: EventLog, told: dict[str, Any], watch: Callable[[], None]
    ) -> None:
        """Guests of which nothing is heard are waited for as long as they do something, but not for ever."""
        looks = Watch(lambda guest: watching.signs(self._connection, guest))
        awaited = watching.Guests(self._lab, self.consoles, self._patience, looks)
        watched, silence = False, told["seconds"] + SILENCE_SECONDS * self._patience
        until_silent = wait.Timer(silence)
        for event in line.events(wait.Timer(waiting.LONGEST_SECONDS * self._patience)):
            until_silent = wait.Timer(silence) if event else until_silent
            awaited.hear(event)
            if event.get("event") == "asks":
                line.tell(told)
            self._note(event, observed, event_log, told["play"])
            watched = watched or self._watched(event, watch)
            lost = awaited.given_up()
            observed.host.setdefault("lost", {}).update(lost)
            if observed.finished or observed.broken or BOOTSTRAP in lost or until_silent.is_over:
                return
            for who, why in lost.items():
                line.tell({"lost": self._lab.node(who).uuid, "why": why})

    def _note(self, event: dict[str, Any], observed: Observations, event_log: EventLog, play: str) -> None:
        observed.add(event)
        if event.get("event") == "state":
            event_log.note(event["who"], event["state"])
            self._note_start(event["who"], event["state"], observed)
        elif event.get("event") == "step" and not event["ok"]:
            event_log.note(event["who"], f"{event['step']}: {event['said']}", trouble=True)
        elif event.get("topic") == "clocks":
            observed.host["clock"] = host_view.clock()
        elif event.get("topic") == "taken":
            observed.host["virtual addresses"] = host_view.virtual_addresses(self._lab, play)

    def _note_start(self, who: str, state: str, observed: Observations) -> None:
        if state in STARTS and who != BOOTSTRAP:
            vm_name = self._lab.node(who).vm_name
            observed.host.setdefault("starts", {})[who, state] = node_vms.start_of(self._connection, vm_name)

    @staticmethod
    def _watched(event: dict[str, Any], watch: Callable[[], None]) -> bool:
        """When the first node looks around, everything runs and is there to be seen."""
        if event.get("event") == "report" and event["place"] == "medium":
            watch()
            return True
        return False


def _is_ours(medium: str) -> bool:
    return not Path(medium).exists() or node_vms.content(medium) == node_vms.OURS
