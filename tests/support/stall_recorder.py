"""Recordings of installations that stand still or have failed, of which tests/unit/cluster/test_recorded_stalls.py has
today's code judge.
"""

from __future__ import annotations

import json
import re
import socket
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from support import host_program, rehearsal_lab
from support.checkout import ROOT
from support.install_lab import PLANTED

if TYPE_CHECKING:
    from pathlib import Path

    from support.install_lab import InstallLab

PLACE = ROOT / "tests/recordings/stalls"
PROGRAM = "stall_recording.py"
OC = "/var/cache/nometal/tools/*/bin/oc"
BMCS = "/var/lib/nometal/bmc"
PATIENCE = 0.001
"""Whatever stands still is looked into at once."""


def look(lab: InstallLab, **others: Any) -> dict[str, Any]:
    """As the watch looks at it; for `stall_recording.read`. Others are of the installation."""
    model = rehearsal_lab.model(lab.inventory())
    installation = {
        "domain": model["domain"],
        "api_vips": model["vips"]["api"],
        "nodes": [node for node in model["nodes"] if node["installer"]],
        "tools": str(PurePosixPath(lab.host.run(f"ls {OC}").stdout.split()[0]).parent),
        **others,
    }
    return host_program.run(lab.host, PROGRAM, {"lab": lab.name, "installation": installation, "patience": PATIENCE})


def keep(lab: InstallLab, name: str, seen: dict[str, Any]) -> None:
    text = json.dumps(seen, indent=1, sort_keys=True) + "\n"
    _assert_harmless(text, lab)
    PLACE.mkdir(parents=True, exist_ok=True)
    path(name).write_text(text, encoding="utf-8")


def path(name: str) -> Path:
    return PLACE / f"{name}.json"


def names() -> set[str]:
    return {file.stem for file in PLACE.glob("*.json")}


def _assert_harmless(text: str, lab: InstallLab) -> None:
    logins = json.loads(lab.host.read(f"{BMCS}/{lab.name}/credentials.json")).values()
    secrets = [PLANTED, *(login["password"] for login in logins)]
    assert not [secret for secret in secrets if secret in text], "a recording must hold no secret"
    names = "|".join(map(re.escape, (lab.host.name, socket.gethostname())))
    assert not re.search(rf"(?<![\w-])({names})(?![\w-])", text), "nor the name of the machine that it is made on"
