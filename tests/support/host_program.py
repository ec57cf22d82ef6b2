"""Programs of the tests that run in a lab host, with the collection on their path."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support.checkout import ROOT

if TYPE_CHECKING:
    from support.lab_host import LabHost

LIBRARY = "/root/recorder"
COLLECTION = "ansible_collections/nometal/ipi/plugins/module_utils"
SECONDS = 1800


def run(host: LabHost, program: str, given: dict[str, Any]) -> dict[str, Any]:
    """A file of tests/support, which reads JSON and prints JSON. Nothing of it stays."""
    host.copy_tree(ROOT / "plugins/module_utils", f"{LIBRARY}/{COLLECTION}", exclude=["__pycache__"])
    host.copy_tree(ROOT / "tests/support", f"{LIBRARY}/support", exclude=["__pycache__"])
    command = ["env", f"PYTHONPATH={LIBRARY}", "/usr/bin/python3", f"{LIBRARY}/support/{program}"]
    try:
        return json.loads(host.run(command, input=json.dumps(given), timeout=SECONDS).stdout)
    finally:
        host.run(["rm", "-r", LIBRARY])
