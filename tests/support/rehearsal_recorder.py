"""Recordings of rehearsals on lab hosts, of which tests/unit/rehearsal/test_recorded.py has today's code judge."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from support import rehearsal_lab, rehearsal_recording
from support.checkout import ROOT

from ansible_collections.nometal.ipi.plugins.modules.rehearsal import lab_from

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from support.lab_host import LabHost

PLACE = ROOT / "tests/recordings/rehearsal"
LIBRARY = "/root/recorder"
COLLECTION = "ansible_collections/nometal/ipi/plugins/module_utils"
PROGRAM = "rehearsal_recording.py"
SECONDS = 1800


def rehearse(host: LabHost, inventory: Path, nodes: Collection[str], name: str) -> dict[str, Any]:
    """As `rehearsal_lab.rehearse`, without Ansible; what was observed is kept under that name."""
    arguments = rehearsal_lab.arguments(inventory, nodes)
    lab = lab_from(arguments)
    result = _run(host, {"lab": asdict(lab), "image": arguments["image"], "can_secure_boot": arguments["secure_boot"]})
    text = json.dumps(result["recording"], indent=1, sort_keys=True) + "\n"
    said = [asdict(check) for check in rehearsal_recording.read(text).explained()]
    assert said == result["said"], "what was written is not what was observed"
    PLACE.mkdir(parents=True, exist_ok=True)
    path(name).write_text(text, encoding="utf-8")
    return result["report"]


def path(name: str) -> Path:
    return PLACE / f"{name}.json"


def names() -> set[str]:
    return {file.stem for file in PLACE.glob("*.json")}


def _run(host: LabHost, given: dict[str, Any]) -> dict[str, Any]:
    host.copy_tree(ROOT / "plugins/module_utils", f"{LIBRARY}/{COLLECTION}", exclude=["__pycache__"])
    host.copy_tree(ROOT / "tests/support", f"{LIBRARY}/support", exclude=["__pycache__"])
    command = ["env", f"PYTHONPATH={LIBRARY}", "/usr/bin/python3", f"{LIBRARY}/support/{PROGRAM}"]
    done = host.run(command, input=json.dumps(given), timeout=SECONDS)
    host.run(["rm", "-r", LIBRARY])
    return json.loads(done.stdout)
