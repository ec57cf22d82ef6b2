"""How an installation is to go: from a file beside the program, or else from /etc.

{"*": {"speed": 0.05}, "demo": {"fail": {"stage": "initialize"}}}: by the cluster's name, over what is true of all.

- speed: seconds for a step; a whole installation has about forty.
- fail: the stage that it fails at, or {"stage": ..., "host": ..., "message": ...}. It can be mended meanwhile: the
  cluster goes on from there as soon as the file says nothing of it, and so does an installer that is told to wait.
- hang: the stage that nothing goes on from, until the file says something else or somebody ends it; or as `fail`.
  A host that hangs is woken when its VM is reset.
- timeout: seconds that the installer waits at each stage.
- release: the version that the program takes itself for.
- kubectl: does what `oc` does not do itself; empty for none. By default the host's, if it has one.
- audit: the file that the API server notes each request in, a line of JSON each, if it is to.
- later: seconds that the installed cluster's clock is ahead.
- poll: seconds after which the baremetal-operator looks at the power of a host that nobody has changed.
- api: what is wrong with the API server: {"refuse": true}, {"unavailable": true} (503), {"delay": 2} (seconds).
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAME = "stand-in-installer.json"
ANYWHERE = Path("/etc") / NAME

CONFIG, CHECK, EXTRACTION = "config", "provisioning check", "extraction"
INFRASTRUCTURE, API = "infrastructure", "api"
BOOTSTRAP, CONTROL_PLANE, ETCD, DESTROY = "bootstrap", "control plane", "etcd", "destroy bootstrap"
INITIALIZE, OPERATORS, CONSOLE = "initialize", "operators", "console"
STAGES = (
    *(CONFIG, CHECK, EXTRACTION, INFRASTRUCTURE, API, BOOTSTRAP, CONTROL_PLANE),
    *(ETCD, DESTROY, INITIALIZE, OPERATORS, CONSOLE),
)


@dataclass(frozen=True)
class Scenario:
    speed: float = 0.2
    fail: str = ""
    message: str = ""
    host: str = ""
    hang: str = ""
    timeout: float = 0
    release: str = ""
    kubectl: str = "/usr/bin/kubectl"
    audit: str = ""
    later: float = 0
    poll: float = 60
    api: dict[str, Any] = field(default_factory=dict)

    def stops_at(self, stage: str) -> bool:
        return stage in (self.fail, self.hang)


def read(cluster: str) -> Scenario:
    known = _file()
    told: dict[str, Any] = {**known.get("*", {}), **known.get(cluster, {})}
    for ending in ("fail", "hang"):
        if isinstance(told.get(ending), dict):
            told = {**told, **told[ending], ending: told[ending]["stage"]}
    told.pop("stage", None)
    found = Scenario(**told)
    unknown = {found.fail, found.hang} - {"", *STAGES}
    if unknown:
        raise ValueError(f"The scenario knows no stage {', '.join(unknown)}: there are {', '.join(STAGES)}.")
    return found


def _file() -> dict[str, Any]:
    for path in (Path(sys.argv[0]).absolute().with_name(NAME), ANYWHERE):
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        return found
    return {}
