# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands still for longer than it should. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import timing as usual
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.events import INSTALLER
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.stages import DOING, Stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.nodes import Node
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import Story

STAGE, HOST, ERROR, HANGS = "stage", "host", "error", "hangs"


@dataclass(frozen=True)
class Suspicion:
    who: str
    kind: str
    words: str
    since: float
    """Which standstill it is: another one of the same subject is another suspicion."""


def suspicions(story: Story, nodes: Iterable[Node], now: float, patience: float = 1.0) -> list[Suspicion]:
    return [
        *_stage(story, now, patience),
        *_hosts(story, now, patience),
        *(found for node in nodes for found in _silent(node, now, patience)),
    ]


def is_late(story: Story, patience: float = 1.0) -> bool:
    """Whether the stage in which it ended had taken longer than it usually does."""
    usually = usual.STAGES.get(story.stage) if story.stage else None
    return usually is not None and story.last - story.since > usually.seconds * patience


def _stage(story: Story, now: float, patience: float) -> Iterator[Suspicion]:
    if story.stage is None or story.stage is Stage.COMPLETE:
        return
    still = now - max(story.since, story.changed)
    if still > usual.STAGES[story.stage].limit * patience:
        words = f"{DOING[story.stage]}, and nothing has changed for {usual.words(still)}"
        yield Suspicion(INSTALLER, STAGE, words, max(story.since, story.changed))


def _hosts(story: Story, now: float, patience: float) -> Iterator[Suspicion]:
    """Only then does the log tell their states."""
    if story.stage is not Stage.CONTROL_PLANE:
        return
    for name, host in story.hosts.items():
        still, limit = now - host.since, usual.HOSTS.get(host.state)
        if limit is not None and still > limit * patience and not host.trouble:
            yield Suspicion(name, HOST, f"is {host.state} for {usual.words(still)}", host.since)
        ailing = now - host.troubled_since
        if host.trouble and ailing > usual.TROUBLE * patience:
            yield Suspicion(
                name, ERROR, f"is in trouble for {usual.words(ailing)}: {host.trouble}", host.troubled_since
            )


def _silent(node: Node, now: float, patience: float) -> Iterator[Suspicion]:
    since = node.on_since
    if since is not None and node.is_silent and now - since > usual.SILENCE * patience:
        words = f"is on for {usual.words(now - since)} and has said nothing, neither on its console nor in the network"
        yield Suspicion(node.name, HANGS, words, since)
