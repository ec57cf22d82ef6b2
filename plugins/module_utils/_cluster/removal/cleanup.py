# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is cleared away after an installation that has succeeded: what nothing uses any more, and secrets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.removal import bootstrap, leftovers
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import run
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import POOLS

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Dangling:
    """Pools of bootstrap VMs that are gone, and what lies there without a use."""

    pools: tuple[str, ...]
    paths: tuple[str, ...]


def plan(current: Dangling | None, _desired: None = None) -> Sequence[Step]:
    if current is None:
        return []
    # A pool goes last: as long as it is there, the next run can tell what is still to be removed.
    return [
        *(Step("remove", path) for path in current.paths),
        *(Step("undefine pool", name) for name in current.pools),
    ]


class TidyingPort:
    def __init__(self, connection: Any, lab: leftovers.Lab) -> None:
        self._connection = connection
        self._lab = lab

    def read(self) -> Dangling:
        lab = self._lab
        if run.read(lab.place).running:
            return Dangling((), ())
        names = leftovers.names(self._connection, lab.place, lab.bridges)
        pools = [name for name in names if bootstrap.is_dangling(self._connection, name)]
        paths = [path for path in bootstrap.directories(pools) if path != POOLS or pools]
        temporary = [lab.place.temporary] if lab.place.temporary.exists() else []
        return Dangling(tuple(pools), tuple(map(str, [*paths, *temporary])))

    def apply(self, step: Step) -> None:
        if step.verb == "remove":
            bootstrap.remove_path(Path(step.target))
        else:
            bootstrap.remove_pool(self._connection, step.target)
