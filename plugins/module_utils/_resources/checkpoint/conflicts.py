# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a checkpoint cannot be taken, restored or removed. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import size_text
from ansible_collections.nometal.ipi.plugins.module_utils._core.wording import listed
from ansible_collections.nometal.ipi.plugins.module_utils._resources.checkpoint.state import (
    ABSENT,
    PRESENT,
    QCOW2,
    RESTORED,
    after_repair,
    paused,
    stopped,
    tag_of,
    waiting,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._resources.checkpoint.state import (
        Checkpoint,
        Disk,
        Found,
        FoundDisk,
        FoundNode,
        Node,
        Wanted,
    )

LISTED = 8
STOP = "`stop: true` (-e checkpoint_stop=true)"
RUNNING = "`running: true` (-e checkpoint_running=true)"


def conflicts(found: Found, wanted: Wanted) -> list[Finding]:
    now, about = after_repair(found), f"checkpoint {wanted.name}"
    refused = [
        *_busy(now, wanted, about),
        *{PRESENT: _of_taking, RESTORED: _of_restoring}.get(wanted.state, _of_removing)(now, wanted, about),
        *_on(found, now, wanted, about),
    ]
    is_refused = refused or (waiting(found) and not _may_be_on(now, wanted))
    return [*waits(found, about), *refused] if is_refused else []


def obstacles(found: Found, checkpoint: Checkpoint) -> list[Finding]:
    """How the lab differs from a checkpoint, so that it cannot be restored."""
    then = {node.name: node for node in checkpoint.nodes}
    missing = [name for name in then if name not in found.nodes]
    added = [name for name in found.nodes if name not in then]
    both = [(then[name], found.nodes[name]) for name in then if name in found.nodes]
    return [
        *_other_nodes(checkpoint, missing, added),
        *(each for pair in both for each in _other_node(*pair, checkpoint)),
    ]


def waits(found: Found, about: str = "") -> Iterator[Finding]:
    """They would stay so, as this run is refused: the advice is what does nothing else than have them go on."""
    name = found.unfinished.checkpoint
    command = f"make checkpoint{'' if name in found.checkpoints else '-remove'} NAME={name}"
    for state, vms in (("paused", paused(found)), ("switched off", stopped(found))):
        if vms:
            names = list(vms)
            text = f"{listed(names, LISTED)} {_is(names)} {state} since a run that took checkpoint {name} was killed"
            advice = f"`{command}` has what waits go on; do that first."
            yield Finding("nodes.waiting", about, text, advice, {"vms": names, "checkpoint": name})


def warnings(found: Found, wanted: Wanted) -> list[str]:
    others = [f"{name}: {disk}" for name, node in found.nodes.items() for disk in node.others]
    left_out = f"Disks that nometal.ipi has not made are no part of the checkpoint: {listed(others, LISTED)}."
    lacking = [f"{name}: {disk}" for name, node in found.nodes.items() for disk in node.lacking]
    stay = f"Disks that are not attached keep their snapshot, if they have one: {listed(lacking, LISTED)}."
    checkpoint = found.checkpoints.get(wanted.name)
    is_other = wanted.state == RESTORED and checkpoint is not None and checkpoint.cluster != found.cluster
    return [
        *([left_out] if others and wanted.state != ABSENT else []),
        *([stay] if lacking and checkpoint and wanted.state == ABSENT else []),
        *([_other_cluster(found, checkpoint.cluster)] if checkpoint and is_other else []),
    ]


def _other_cluster(found: Found, then: str) -> str:
    was, now = then or "no cluster", found.cluster or "no cluster"
    return (
        f"The disks are those of {was}, and the installer's files on this host, with the kubeconfig, are those of "
        f"{now}. Before the next installation, remove them: make teardown ARGS='-e teardown_scope=cluster'."
    )


def _busy(now: Found, wanted: Wanted, about: str) -> Iterator[Finding]:
    """What a run has left that was killed is made undone also meanwhile."""
    is_done = wanted.state != RESTORED and (wanted.name in now.checkpoints) == (wanted.state == PRESENT)
    if now.installs and not is_done:
        yield Finding(
            "installation.runs", about, "an installation runs on this lab", "Wait until it has ended, or end it first."
        )


def _of_taking(now: Found, wanted: Wanted, about: str) -> Iterator[Finding]:
    if now.unfinished.restore:
        yield _half_restored(now, about)
    if wanted.running and wanted.stop:
        yield Finding("arguments.both", about, f"{RUNNING} and {STOP} exclude each other", "Choose one.")
    if wanted.name in now.checkpoints:
        return
    if not now.nodes:
        yield Finding(
            "nodes.none", about, "the lab has no VMs on this host", "playbooks/nodes.yml (make lab) makes them."
        )
    for node in now.nodes.values():
        yield from _unfit(node)
    on = [node.name for node in now.nodes.values() if node.is_on]
    if on and now.cluster and wanted.stop and not wanted.running:
        text = f"{listed(on, LISTED)} {_is(on)} switched on and of cluster {now.cluster}, which switches nodes on again"
        advice = f"Stop the cluster first, by `make stop`. Or have the nodes paused for a moment by {RUNNING}."
        yield Finding("cluster.on", about, text, advice, {"vms": on, "cluster": now.cluster})


def _unfit(node: FoundNode) -> Iterator[Finding]:
    if not node.persistent:
        yield Finding(
            "vm.transient", node.name, "it is lost with its next power-off", "playbooks/nodes.yml (make lab) keeps it."
        )
    if node.is_saved:
        advice = f"Switch it on, or give that up by `virsh managedsave-remove {node.name}`."
        yield Finding(
            "vm.saved", node.name, "libvirt has saved its memory, which would be no part of the checkpoint", advice
        )
    for volume in node.lacking:
        advice = "After an external snapshot, merge the two (virsh blockcommit), or else run playbooks/nodes.yml."
        yield Finding(
            "disk.lacking", node.name, f"its disk {volume} is missing, or not attached", advice, {"disk": volume}
        )
    for disk in node.disks:
        if disk.format != QCOW2:
            advice = (
                "Only disks of format qcow2 can be kept, which is the format of disks unless lab_spec says otherwise."
            )
            text = f"its disk {disk.name} is {disk.format}"
            yield Finding("disk.format", node.name, text, advice, {"disk": disk.name, "format": disk.format})


def _of_restoring(now: Found, wanted: Wanted, about: str) -> Iterator[Finding]:
    checkpoint = now.checkpoints.get(wanted.name)
    if checkpoint is None:
        there = listed(sorted(now.checkpoints), LISTED) or "none"
        yield Finding(
            "checkpoint.missing",
            about,
            f"there is none of this name (there is: {there})",
            "make checkpoints lists them.",
        )
        return
    yield from obstacles(now, checkpoint)


def _may_be_on(now: Found, wanted: Wanted) -> bool:
    if wanted.state == PRESENT:
        return wanted.running or wanted.stop or wanted.name in now.checkpoints
    return wanted.state != RESTORED or wanted.stop or wanted.name not in now.checkpoints


def _on(found: Found, now: Found, wanted: Wanted, about: str) -> Iterator[Finding]:
    on = [node.name for node in now.nodes.values() if node.is_on and node.name not in waiting(found)]
    if on and not _may_be_on(now, wanted):
        shut_down = "" if now.cluster else f"shut down, and started again, by {STOP}, or "
        advice = (
            f"What they have not written would be lost: switch them off first, or have their power cut by {STOP}."
            if wanted.state == RESTORED
            else f"Switch them off first, for instance by `make stop`. Or have them {shut_down}paused for a moment by "
            f"{RUNNING}."
        )
        yield Finding("nodes.on", about, f"{listed(on, LISTED)} {_is(on)} switched on", advice, {"vms": on})


def _of_removing(now: Found, wanted: Wanted, about: str) -> Iterator[Finding]:
    if now.unfinished.restore == wanted.name and not obstacles(now, now.checkpoints[wanted.name]):
        yield _half_restored(now, about)


def _half_restored(now: Found, about: str) -> Finding:
    name = now.unfinished.restore
    text = f"the restore of checkpoint {name} was interrupted, so a part of the nodes is as it was then"
    advice = f"Restore a checkpoint first: make restore NAME={name}."
    if obstacles(now, now.checkpoints[name]):
        advice = (
            f"It cannot be restored any more: restore another one, or remove it: make checkpoint-remove NAME={name}."
        )
    return Finding("restore.interrupted", about, text, advice, {"name": name})


def _other_nodes(checkpoint: Checkpoint, missing: list[str], added: list[str]) -> Iterator[Finding]:
    about = f"checkpoint {checkpoint.name}"
    if missing:
        text = f"{listed(missing, LISTED)} {_was(missing)} a part of it and {_is(missing)} not there"
        yield Finding(
            "nodes.missing",
            about,
            text,
            "With lab_spec as it was, make lab makes it, with empty disks.",
            {"vms": missing},
        )
    if added:
        advice = "Remove what was added since, by lab_spec and -e node_vms_exclusive=true."
        yield Finding(
            "nodes.added", about, f"{listed(added, LISTED)} {_was(added)} not a part of it", advice, {"vms": added}
        )


def _other_node(then: Node, now: FoundNode, checkpoint: Checkpoint) -> Iterator[Finding]:
    if then.uuid != now.uuid:
        text = f"was VM {then.uuid} in checkpoint {checkpoint.name} and is {now.uuid}"
        yield Finding("vm.other", now.name, text, "The checkpoint is of a VM that was removed.")
        return
    disks, before = {disk.name: disk for disk in now.disks}, {disk.name: disk for disk in then.disks}
    for name in dict.fromkeys([*before, *disks]):
        why = _other_disk(before.get(name), disks.get(name), checkpoint.name)
        if why:
            advice = "The checkpoint cannot be restored; remove it if it is not needed any more."
            yield Finding("disk.other", now.name, f"disk {name} {why}", advice, {"disk": name})


def _other_disk(then: Disk | None, now: FoundDisk | None, checkpoint: str) -> str:
    if now is None:
        return "is missing, or not attached"
    if then is None:
        return f"was added after checkpoint {checkpoint}"
    if now.size_bytes != then.size_bytes:
        return f"had {size_text(then.size_bytes)} then, and has {size_text(now.size_bytes)} now"
    if tag_of(checkpoint) not in now.snapshots:
        return f"has no snapshot of checkpoint {checkpoint}: it was made anew since"
    return ""


def _was(names: list[str]) -> str:
    return "was" if len(names) == 1 else "were"


def _is(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"
