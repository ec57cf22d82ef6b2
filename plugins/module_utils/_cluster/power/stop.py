# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stopping the nodes of an installed cluster."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Protocol

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api import objects
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.errors import ApiError
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power import judgements
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.power import Result
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import BareMetalHost
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.cluster import Cluster, Member
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.nodes import Node
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.power import Lab

BACK_UP, CORDON, DRAIN, PAUSE, SHUT_DOWN = "back up", "cordon", "drain", "pause", "shut down"
ETCD, CLUSTER = "etcd", "cluster"
WITHOUT_API = (
    "Without the API no certificates are looked at, etcd is not backed up, no node is cordoned and drained, and metal3 "
    "may switch nodes on again that are stopped."
)
MAY_BE_CORDONED = "Nodes may be cordoned, and their hosts paused: `make start` releases them."
FORCE = "To stop the nodes nevertheless, set cluster_stop_force=true."
GOES_ON = "Continuing a stop that was interrupted after nodes were switched off."
NO_NODE_TO_BACK_UP_BY = "etcd is not backed up: no node of the control plane is ready."
SKIP_BACKUP = "To stop without a backup of etcd, set cluster_stop_backup=false."


class Backup(Protocol):
    def take(self, node: str) -> str: ...


@dataclass(frozen=True)
class Options:
    days: float = 1.0
    """For which the cluster is to be away."""
    force: bool = False
    drain_seconds: int = 60


@dataclass
class ClusterStop:
    lab: Lab
    cluster: Cluster
    options: Options
    holders: Callable[[], Collection[str]]
    """MAC addresses of the nodes that hold an address of the API."""
    backup: Backup | None = None
    """None: etcd is not backed up."""
    now: Callable[[], float] = time.time
    _has_changed: bool = False
    """Whether the API was asked to change anything."""

    def run(self) -> dict[str, Any]:
        result = Result()
        on = self.lab.switching.those_on(self.lab.nodes)
        if not on:
            return self.lab.stop()
        try:
            members = self.cluster.members()
            self._check(members, on, result)
            self._prepare(members, on, result)
        except ApiError as error:
            self._go_without(error, on, result)
        self.lab.shut_down(on, result, self.holders() if len(on) > 1 else ())
        return result.to_dict(self.lab.switching.forced)

    def _go_without(self, error: ApiError, on: Sequence[Node], result: Result) -> None:
        """All that needs the API was done when a stop of before has begun to switch nodes off."""
        if self.lab.has_begun_to_stop(on):
            result.warnings.append(f"{error} {GOES_ON}")
        elif self.options.force:
            result.warnings.append(f"{error} {WITHOUT_API}")
        else:
            cordoned = f" {MAY_BE_CORDONED}" if self._has_changed else ""
            raise OperatorError(f"{error} Nothing was stopped.{cordoned} {WITHOUT_API} {FORCE}")

    def _check(self, members: Sequence[Member], on: Sequence[Node], result: Result) -> None:
        found = [str(finding) for finding in judgements.blockers(members, self.cluster.operators())]
        if found and not self.lab.has_begun_to_stop(on) and not self.options.force:
            raise OperatorError("\n".join(["Nothing was stopped.", *found, FORCE]))
        late = judgements.warnings(members, self.cluster.expiries(), self.options.days, self.now())
        result.warnings += [*found, *map(str, late)]

    def _prepare(self, members: Sequence[Member], on: Sequence[Node], result: Result) -> None:
        backs_up = self.backup is not None and not self.lab.has_begun_to_stop(on)
        if backs_up and _backed_up_by(members) is None:
            backs_up = False
            result.warnings.append(NO_NODE_TO_BACK_UP_BY)
        by_name = {str(member): member for member in members}
        for step in plan(members, self._hosts(), on, backs_up=backs_up):
            if self.lab.check_mode or self._do(step, by_name, result):
                result.steps.append(step)

    def _hosts(self) -> list[BareMetalHost]:
        names = {node.name for node in self.lab.nodes}
        return [host for host in self.cluster.hosts() if host.name in names]

    def _do(self, step: Step, members: dict[str, Member], result: Result) -> bool:
        """Whether it was done."""
        if step.verb == BACK_UP:
            return self._back_up(members.values(), result)
        log, self._has_changed = self.lab.switching.log, True
        if step.verb == PAUSE:
            log.note(CLUSTER, "metal3 leaves the nodes alone from now on")
            for name in step.target:
                self.cluster.pause(name)
        elif step.verb == CORDON:
            log.note(CLUSTER, "no node takes new pods from now on")
            for name in step.target:
                self.cluster.cordon(members[name])
        else:
            for name in step.target:
                self._drain(members[name], result)
        return True

    def _drain(self, member: Member, result: Result) -> None:
        log = self.lab.switching.log
        log.note(str(member), "is drained")
        left = self.cluster.drain(member, self.options.drain_seconds)
        if left:
            said = f"not drained in {self.options.drain_seconds} s, and is stopped nevertheless: {'; '.join(left)}"
            log.note(str(member), said, trouble=True)
            result.warnings.append(f"{member}: {said}")

    def _back_up(self, members: Iterable[Member], result: Result) -> bool:
        ready = _backed_up_by(members)
        if self.backup is None or ready is None:
            return False
        log = self.lab.switching.log
        log.note(ETCD, "is backed up")
        try:
            path = self.backup.take(ready.name)
        except OperatorError as error:
            if not self.options.force:
                raise OperatorError(f"{error} {SKIP_BACKUP}") from error
            result.warnings.append(str(error))
            return False
        log.note(ETCD, f"is backed up: {path}")
        return True


def _backed_up_by(members: Iterable[Member]) -> Member | None:
    return next((member for member in members if member.node.is_control_plane and member.ready), None)


def plan(
    members: Sequence[Member], hosts: Iterable[BareMetalHost], on: Sequence[Node], *, backs_up: bool
) -> list[Step]:
    """By the API, before nodes are switched off. Workers are drained; the control plane need not be."""
    present = [member for member in members if member.node in on]
    cordoned = tuple(str(member) for member in members if not member.unschedulable)
    drained = tuple(str(member) for member in present if member.ready and not member.node.is_control_plane)
    paused = tuple(host.name for host in hosts if objects.PAUSED not in host.annotations)
    steps = [Step(BACK_UP, ETCD)] if backs_up else []
    steps += [Step(verb, names) for verb, names in ((CORDON, cordoned), (DRAIN, drained), (PAUSE, paused)) if names]
    return steps
