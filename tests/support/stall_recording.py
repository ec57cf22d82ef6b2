"""What is known of an installation that stands still or has failed, as far as it is judged by it.

Runs in a lab host, too, to record it there, with the collection on the path; see `stall_recorder`.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, replace
from typing import Any

from support import dataclass_json

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import BareMetalHost
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import diagnose
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.evidence import (
    Evidence,
    HostSeen,
    gather,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.nodes import Node
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.installation import Addressing, Installation
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import watch as stalls
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.events import INSTALLER
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.progress import Progress
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.reading import Reading
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import run
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths
from ansible_collections.nometal.ipi.plugins.module_utils._observe.packet_filter import Rule

NAMED_FOR_TYPE_CHECKERS = (Evidence, BareMetalHost, Node, Rule, Progress)
MACHINE = {name: getattr(HostSeen(), name) for name in ("load", "cores", "memory_available")}
"""How hard the machine works that the recording is made on is no part of the fault."""
JUDGED_OF_BMCS = ("address", "trouble", "failure")


@dataclass(frozen=True)
class Recording:
    progress: Progress
    evidence: Evidence
    at: float
    """When it was looked at, or when it ended."""
    ended: bool
    patience: float

    def findings(self) -> list[Finding]:
        """As the watch has them."""
        found = stalls.findings(self.progress, self.evidence.nodes, self.at, self.patience)
        suspects = {finding.subject for finding in found} | ({INSTALLER} if self.ended else set())
        late = stalls.is_late(self.progress, self.patience) if self.ended else True
        return diagnose.findings(self.progress, self.evidence, suspects, late=late)


def read(kept: dict[str, Any]) -> Recording:
    return dataclass_json.read(Recording, kept, NAMED_FOR_TYPE_CHECKERS)


def recorded(installation: Installation, patience: float) -> Recording:
    reading = Reading(installation)
    for _entry in reading.new_entries():
        pass
    seen = run.read(installation.paths)
    at = time.time() if seen.running else reading.progress.last
    return Recording(reading.progress, _judged(gather(installation)), at, not seen.running, patience)


def _judged(evidence: Evidence) -> Evidence:
    bmcs = {name: {key: bmc[key] for key in JUDGED_OF_BMCS} for name, bmc in evidence.bmcs.items()}
    return replace(evidence, host=replace(evidence.host, pressure={}, **MACHINE), bmcs=bmcs)


if __name__ == "__main__":
    given = json.load(sys.stdin)
    installation = given.pop("installation")
    addressing = Addressing(**installation.pop("bootstrap", {}))
    installed = Installation(Paths(given.pop("lab")), bootstrap=addressing, **installation)
    json.dump(dataclass_json.written(recorded(installed, **given)), sys.stdout)
