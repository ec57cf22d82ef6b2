# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints of a lab, and what is done to take, restore and remove one. Pure: no libvirt, no files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core import key_types as types
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import LONGEST_CHECKPOINT_NAME
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import must_be
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
from ansible_collections.nometal.ipi.plugins.module_utils._core.scalars import Whole, YesNo
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import ListOf, Section, Text, key

if TYPE_CHECKING:
    from collections.abc import Iterator

PRESENT, ABSENT, RESTORED = "present", "absent", "restored"
QCOW2 = "qcow2"
TAG = "nometal-{}"
"""Name of a checkpoint's snapshot in each disk: no number, which qemu-img would take for the ID of another one."""
BYTES = Whole(0, 2**63 - 1)


def _name(value: str) -> str:
    if len(value) > LONGEST_CHECKPOINT_NAME or not re.fullmatch("[A-Za-z0-9][A-Za-z0-9_.-]*", value):
        most = f"{LONGEST_CHECKPOINT_NAME} at most"
        raise ValueError(must_be(f"letters, digits and inner dots, hyphens and underscores, {most}", value))
    return value


NAME = Text("name", _name, "before-upgrade")


def tag_of(name: str) -> str:
    return TAG.format(name)


@dataclass(frozen=True)
class Disk:
    """As it was when the checkpoint was taken."""

    name: str = key(types.TEXT, "Its volume.", required=True)
    size_bytes: int = key(BYTES, "Its size.", required=True)
    used_bytes: int = key(BYTES, "What its file took, and its checkpoint holds at most.", default=0)


@dataclass(frozen=True)
class Node:
    """Likewise."""

    name: str = key(types.TEXT, "Its VM.", required=True)
    uuid: str = key(types.UUID, "The VM's UUID.", required=True)
    was_on: bool = key(YesNo(), "Whether it was switched on.", default=False)
    disks: tuple[Disk, ...] = key(ListOf(Section(Disk)), "Its disks.", default=[])


@dataclass(frozen=True)
class Checkpoint:
    name: str = key(NAME, "Its name.", required=True)
    taken: str = key(types.TEXT, "When, in UTC.", required=True)
    while_running: bool = key(YesNo(), "Whether nodes were paused for it, and not stopped.", default=False)
    cluster: str = key(types.TEXT, "The cluster's infrastructure ID; empty without a cluster.", default="")
    nodes: tuple[Node, ...] = key(ListOf(Section(Node)), "All nodes on this host.", default=[])

    @property
    def held_bytes(self) -> int:
        """What it can take at most of the pool, once all that was in the disks is overwritten."""
        return sum(min(disk.used_bytes, disk.size_bytes) for node in self.nodes for disk in node.disks)


@dataclass(frozen=True)
class FoundDisk:
    path: str
    format: str
    size_bytes: int
    used_bytes: int = 0
    snapshots: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class FoundNode:
    """A VM of the lab on this host."""

    name: str
    uuid: str
    is_on: bool = False
    is_paused: bool = False
    persistent: bool = True
    is_saved: bool = False
    """Whether libvirt has a saved image of its memory, by which it would go on."""
    disks: tuple[FoundDisk, ...] = ()
    lacking: tuple[str, ...] = ()
    """Volumes that are its disks and not attached, as after an external snapshot, or not there."""
    others: tuple[str, ...] = ()
    """Disks that were not made for it."""


@dataclass(frozen=True)
class Unfinished:
    """What has begun and not ended."""

    restore: str = key(types.TEXT, "The checkpoint that is being restored.", default="")
    checkpoint: str = key(types.TEXT, "The checkpoint that is being taken.", default="")
    resume: tuple[str, ...] = key(ListOf(types.TEXT), "VMs that were paused for it.", default=[])
    start: tuple[str, ...] = key(ListOf(types.TEXT), "VMs that were stopped for it.", default=[])


@dataclass(frozen=True)
class Found:
    """A lab on its host."""

    nodes: Mapping[str, FoundNode] = field(default_factory=dict)
    checkpoints: Mapping[str, Checkpoint] = field(default_factory=dict)
    half: tuple[str, ...] = ()
    """Checkpoints of which only a part was made, or is left."""
    unfinished: Unfinished = field(default_factory=Unfinished)
    cluster: str = ""
    """The infrastructure ID of the installation on this host."""
    installs: bool = False
    """Whether an installer runs."""


@dataclass(frozen=True)
class Wanted:
    state: str
    name: str
    running: bool = False
    """Whether VMs that are on are paused for it."""
    stop: bool = False
    """Whether VMs that are on are stopped for it."""


def plan(now: Found, wanted: Wanted) -> list[Step]:
    """What another run has left unfinished comes first."""
    after = after_repair(now)
    steps = {PRESENT: _taking, RESTORED: _restoring, ABSENT: _removing}[wanted.state](after, wanted)
    return [*repair(now), *steps]


def repair(now: Found) -> list[Step]:
    """VMs that wait for a run which has ended go on, and checkpoints without a record are removed."""
    taken, restored = now.unfinished.checkpoint, now.unfinished.restore
    return [
        *([Step("resume", paused(now))] if paused(now) else []),
        *(step for name in now.half for step in _discard(now, name)),
        *([Step("start", stopped(now))] if stopped(now) else []),
        *([Step("end", f"checkpoint {taken}")] if taken else []),
        *([Step("end", f"restore of {restored}")] if restored and restored not in now.checkpoints else []),
    ]


def giving_up(now: Found) -> list[Step]:
    """Likewise, by the run itself. A VM that is still on may shut down later, so it stays noted for the next run."""
    is_late = any(name in now.nodes and now.nodes[name].is_on for name in now.unfinished.start)
    return [step for step in repair(now) if step.verb != "end" or not is_late]


def paused(now: Found) -> tuple[str, ...]:
    """VMs that wait for a run that has ended."""
    return tuple(name for name in now.unfinished.resume if name in now.nodes and now.nodes[name].is_paused)


def stopped(now: Found) -> tuple[str, ...]:
    """Likewise."""
    return tuple(name for name in now.unfinished.start if name in now.nodes and not now.nodes[name].is_on)


def waiting(now: Found) -> tuple[str, ...]:
    return (*paused(now), *stopped(now))


def after_repair(now: Found) -> Found:
    left, removed = now.unfinished, [tag_of(name) for name in now.half]
    nodes = {
        name: replace(
            node,
            disks=tuple(_without(disk, removed) for disk in node.disks),
            is_on=node.is_on or name in left.start,
            is_paused=node.is_paused and name not in left.resume,
        )
        for name, node in now.nodes.items()
    }
    restore = left.restore if left.restore in now.checkpoints else ""
    return replace(now, nodes=nodes, half=(), unfinished=Unfinished(restore=restore))


def _without(disk: FoundDisk, tags: list[str]) -> FoundDisk:
    return replace(disk, snapshots=tuple(each for each in disk.snapshots if each not in tags))


def waiting_for(now: Found, wanted: Wanted) -> Unfinished:
    """What is to be noted before the first change, so that a run that is killed can be made undone."""
    if wanted.state == RESTORED:
        return Unfinished(restore=wanted.name)
    on = tuple(name for name, node in now.nodes.items() if node.is_on)
    if wanted.running:
        running = tuple(name for name in on if not now.nodes[name].is_paused)
        return Unfinished(checkpoint=wanted.name, resume=running)
    return Unfinished(checkpoint=wanted.name, start=on)


def _taking(now: Found, wanted: Wanted) -> list[Step]:
    if wanted.name in now.checkpoints:
        return []
    noted, what = waiting_for(now, wanted), f"checkpoint {wanted.name}"
    return [
        Step("begin", what),
        *([Step("pause", noted.resume)] if noted.resume else []),
        *([Step("shut down", noted.start)] if noted.start else []),
        *_remove_snapshots(now, wanted.name),
        *(Step("snapshot disk", disk.path) for disk in _disks(now)),
        *(Step("copy state of", name) for name in now.nodes),
        Step("write", what),
        *([Step("resume", noted.resume)] if noted.resume else []),
        *([Step("start", noted.start)] if noted.start else []),
        Step("end", what),
    ]


def _restoring(now: Found, wanted: Wanted) -> list[Step]:
    checkpoint = now.checkpoints.get(wanted.name)
    if checkpoint is None:  # it is refused; check mode plans it on a host without libvirt
        return []
    on = tuple(name for name, node in now.nodes.items() if node.is_on)
    start = tuple(node.name for node in checkpoint.nodes if node.was_on)
    return [
        Step("begin restore", wanted.name),
        *([Step("power off", on)] if on else []),
        *(Step("revert disk", disk.path) for disk in _disks(now)),
        *(Step("restore state of", name) for name in now.nodes),
        *([Step("start", start)] if start else []),
        Step("end restore", wanted.name),
    ]


def _removing(now: Found, wanted: Wanted) -> list[Step]:
    """With a checkpoint that cannot be restored goes the note that its restore was interrupted."""
    if wanted.name not in now.checkpoints:
        return []
    is_half_restored = now.unfinished.restore == wanted.name
    return [
        *_discard(now, wanted.name),
        *([Step("end", f"restore of {wanted.name}")] if is_half_restored else []),
    ]


def _discard(now: Found, name: str) -> list[Step]:
    """First it is a checkpoint no longer; its directory goes last, for it tells that there may be snapshots."""
    return [
        *([Step("withdraw", f"checkpoint {name}")] if name in now.checkpoints else []),
        *_remove_snapshots(now, name),
        Step("remove", f"checkpoint {name}"),
    ]


def _remove_snapshots(now: Found, name: str) -> Iterator[Step]:
    """All of this name: of two, a disk would go back to the older one."""
    for disk in _disks(now):
        yield from [Step("remove snapshot of", disk.path, tag_of(name))] * disk.snapshots.count(tag_of(name))


def _disks(now: Found) -> list[FoundDisk]:
    return [disk for node in now.nodes.values() for disk in node.disks]
