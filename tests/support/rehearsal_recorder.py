"""Recordings of rehearsals on lab hosts, of which tests/unit/rehearsal/test_recorded.py has today's code judge."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from support import host_program, rehearsal_lab, rehearsal_recording
from support.checkout import ROOT

from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import from_dict, to_dict
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from support.lab_host import LabHost

PLACE = ROOT / "tests/recordings/rehearsal"
PROGRAM = "rehearsal_recording.py"


def rehearse(host: LabHost, inventory: Path, nodes: Collection[str], name: str) -> dict[str, Any]:
    """As `rehearsal_lab.rehearse`, without Ansible; what was observed is kept under that name."""
    arguments = rehearsal_lab.arguments(inventory, nodes)
    lab = from_dict(Lab, arguments)
    given = {"lab": to_dict(lab), "image": arguments["image"], "can_secure_boot": arguments["secure_boot"]}
    result = host_program.run(host, PROGRAM, given)
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
