# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far an installation is, by its log and its runner: read, and reported as modules return it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.bundle import secrets as bundle_secrets
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.bundle.redact import Redactor
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import outcome as endings
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import timing as usual
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.log import Tail
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import Progress
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.stages import Stage
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import run
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.installation import Installation
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.log import Entry
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run.run import Run

CONTROL_PLANE = (Role.CONTROL_PLANE, "master")


class Reading:
    """What the log says, as far as it was read."""

    def __init__(self, installation: Installation) -> None:
        names = [node["name"] for node in installation.nodes if node.get("role") in CONTROL_PLANE]
        secrets = bundle_secrets.known(installation.paths, Path(installation.bmc_home))
        self.progress = Progress(control_plane=names)
        self._place = installation.paths
        self._tail = Tail(installation.paths.log, Redactor(secrets).without_known)
        self._completed_at = 0.0

    def new_entries(self) -> Iterator[Entry]:
        """Each is part of the progress by the time that it is given."""
        for entry in self._tail.entries():
            was_complete = self.progress.stage is Stage.COMPLETE
            self.progress.add(entry)
            if self.progress.stage is Stage.COMPLETE and not was_complete:
                self._completed_at = entry.at
            yield entry

    def state(self, seen: Run) -> str:
        completed = self._completed_at > 0 and self._completed_at >= int(seen.started or 0)
        return endings.state_of(seen, self.progress, completed=completed)

    def result(self, seen: Run) -> dict[str, Any]:
        progress, state = self.progress, self.state(seen)
        progress.close(seen.ended or (time.time() if seen.running else progress.last))
        paths, is_there = self._place, state == endings.INSTALLED
        return {
            "state": state,
            "exit_code": seen.exit_code,
            "words": endings.words(seen, progress, state),
            "stage": progress.stage.value if progress.stage else "",
            "stages": stages(progress, seen.started or 0.0),
            "hosts": {name: host.state for name, host in progress.hosts.items()},
            "operators": progress.operators.words(),
            "errors": progress.errors,
            "failure": endings.failure(progress.errors) if state == endings.FAILED else "",
            "troubles": [],
            "diagnosis": [],
            "findings": [],
            "power_cycled": [],
            "healed": [],
            "console_url": progress.console_url,
            "api_url": progress.api_url,
            "kubeconfig": str(paths.kubeconfig) if is_there else "",
            "password_file": str(paths.password) if is_there else "",
        }


def glance(installation: Installation) -> dict[str, Any]:
    """How far it is now, read only and without events."""
    seen = run.read(installation.paths)
    reading = Reading(installation)
    for _entry in reading.new_entries():
        pass
    return reading.result(seen)


def stages(progress: Progress, since: float) -> list[dict[str, Any]]:
    """Times of the log are whole seconds."""
    spent = progress.spent(int(since))
    return [
        {"stage": stage.value, "seconds": round(seconds), "usual": round(usual.STAGES[stage].seconds)}
        for stage, seconds in spent.items()
        if stage in usual.STAGES
    ]
