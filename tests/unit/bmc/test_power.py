"""Which VMs the BMCs are about to switch on, as their broker has noted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._bmc.power import STATES, Bmcs

if TYPE_CHECKING:
    from pathlib import Path

SYSTEMS = [{"name": "demo-worker-0", "uuid": "u0"}, {"name": "demo-worker-1", "uuid": "u1"}]


@pytest.mark.parametrize(
    ("noted", "names"),
    [
        (json.dumps({"on": ["u0"], "restoring": ["u1", "of another lab"]}), ["demo-worker-1"]),
        (json.dumps({"on": ["u0"]}), []),
        ("{", []),
        (None, []),
    ],
)
def test_vms_that_are_about_to_be_switched_on(tmp_path: Path, noted: str | None, names: list[str]) -> None:
    states = tmp_path / "demo" / STATES
    states.parent.mkdir(parents=True)
    (tmp_path / "demo/config.json").write_text(json.dumps({"systems": SYSTEMS, "listen": []}))
    if noted is not None:
        states.write_text(noted)
    assert Bmcs(str(tmp_path), "demo").awaited() == names
