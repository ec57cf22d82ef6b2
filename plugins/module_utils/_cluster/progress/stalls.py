# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands still for longer than it should. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.explanations import found
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import timing as usual
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.events import INSTALLER
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.stages import Stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.nodes import Node
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import Progress
    from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding

STANDS_STILL, SLOW, ERROR, HANGS = "installer.stands-still", "node.slow", "node.error", "node.hangs"


def findings(progress: Progress, nodes: Iterable[Node], now: float, patience: float = 1.0) -> list[Finding]:
    """Since when it stands still is which standstill it is: another one of the same subject is another finding."""
    return [
        *_stage(progress, now, patience),
        *_hosts(progress, now, patience),
        *(each for node in nodes for each in _silent(node, now, patience)),
    ]


def is_late(progress: Progress, patience: float = 1.0) -> bool:
    """Whether the stage in which it ended had taken longer than it usually does."""
    usually = usual.STAGES.get(progress.stage) if progress.stage else None
    return usually is not None and progress.last - progress.since > usually.seconds * patience


def _stage(progress: Progress, now: float, patience: float) -> Iterator[Finding]:
    if progress.stage is None or progress.stage is Stage.COMPLETE:
        return
    still = now - max(progress.since, progress.changed)
    if still > usual.STAGES[progress.stage].limit * patience:
        since = max(progress.since, progress.changed)
        yield found(STANDS_STILL, INSTALLER, stage=progress.stage.value, seconds=still, since=since)


def _hosts(progress: Progress, now: float, patience: float) -> Iterator[Finding]:
    """Only then does the log tell their states."""
    if progress.stage is not Stage.CONTROL_PLANE:
        return
    for name, host in progress.hosts.items():
        still, limit = now - host.since, usual.HOSTS.get(host.state)
        if limit is not None and still > limit * patience and not host.trouble:
            yield found(SLOW, name, state=host.state, seconds=still, since=host.since)
        ailing = now - host.troubled_since
        if host.trouble and ailing > usual.TROUBLE * patience:
            yield found(ERROR, name, error=host.trouble, seconds=ailing, since=host.troubled_since)


def _silent(node: Node, now: float, patience: float) -> Iterator[Finding]:
    since = node.on_since
    if since is not None and node.is_silent and now - since > usual.SILENCE * patience:
        yield found(HANGS, node.name, seconds=now - since, since=since)
