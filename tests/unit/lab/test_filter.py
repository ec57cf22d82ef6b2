# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter as Ansible calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from unit.lab.invariants import violations
from unit.lab.samples import INVENTORIES, TREE, model_of
from unit.lab.strategies import Wrapped

from ansible_collections.nometal.ipi.plugins.filter.lab_model import FilterModule

lab_model = FilterModule().filters()["lab_model"]


def wrapped(value: Any) -> Any:
    """Every text in it as Ansible's tagged or unsafe strings are."""
    if isinstance(value, dict):
        return {Wrapped(key): wrapped(item) for key, item in value.items()}
    if isinstance(value, list):
        return [wrapped(item) for item in value]
    return Wrapped(value) if isinstance(value, str) else value


def test_all_errors_stand_in_one_message_one_a_line() -> None:
    with pytest.raises(AnsibleFilterError) as caught:
        lab_model({"name": "Ha", "bmc": {"protocol": "ipmi"}, "nodes": {"control_plane": {"count": 0}}})
    lines = str(caught.value).splitlines()
    assert lines[0] == "lab_spec has 3 errors:"
    assert [line.partition(":")[0] for line in lines[1:]] == [
        "- lab_spec.name",
        "- lab_spec.nodes",
        "- lab_spec.bmc.protocol",
    ]


def test_one_error_is_one_error() -> None:
    with pytest.raises(AnsibleFilterError, match=r"^lab_spec has 1 error:\n- lab_spec.name: missing; "):
        lab_model({})


def test_wrapped_texts_leave_no_trace() -> None:
    written = {
        "name": "ha",
        "hypervisors": ["one"],
        "machine_network": {"cidr": "192.168.126.0/24", "forward": "nat", "dns": {"records": {"a": {"txt": ["x"]}}}},
        "nodes": {"overrides": {"control-plane-0": {"network_config": {"interfaces": [{"name": "eth0"}]}}}},
        "install": {"version": "stable-4.20", "config": {"list": ["x", {"key": "value"}]}},
    }
    assert violations(lab_model(wrapped(written))) == []
    assert lab_model(wrapped(written)) == lab_model(written)


@pytest.mark.parametrize("inventory", INVENTORIES)
def test_inside_ansible(inventory: str, tmp_path: Path) -> None:
    """The real thing, with the inventory's own tagged and lazy data, and a template among it."""
    report = _ansible(inventory, "{{ lab_spec | nometal.ipi.lab_model | to_json }}", tmp_path / "lab.json")
    assert report.returncode == 0, report.stdout + report.stderr
    assert violations(json.loads((tmp_path / "lab.json").read_text())) == []


def test_errors_inside_ansible(tmp_path: Path) -> None:
    broken = "{{ {'name': 'ha', 'nodes': {'workers': {'count': 'x' * 2}}} | nometal.ipi.lab_model }}"
    report = _ansible("rehearsal", broken, tmp_path / "lab.json")
    assert report.returncode != 0
    assert "lab_spec.nodes.workers.count: must be a whole number from 0 to 250 (got 'xx')" in report.stdout


def test_templates_in_the_specification(tmp_path: Path) -> None:
    templated = {"lab_spec": {"name": "{{ 'h' ~ 'a' }}", "nodes": {"workers": {"count": "{{ 1 + 1 }}"}}}}
    content = "{{ lab_spec | nometal.ipi.lab_model | to_json }}"
    report = _ansible("rehearsal", content, tmp_path / "lab.json", "-e", json.dumps(templated))
    assert report.returncode == 0, report.stdout + report.stderr
    assert json.loads((tmp_path / "lab.json").read_text()) == model_of("nodes: {workers: {count: 2}}")


def _ansible(inventory: str, content: str, target: Path, *more: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / "ansible"
    place = TREE / "inventory" / inventory
    copied = json.dumps({"dest": str(target), "content": content})
    arguments = ["hypervisor", "-i", str(place), "-m", "ansible.builtin.copy", "-a", copied, *more]
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(TREE / "playbooks/collections")}
    return subprocess.run(
        [str(program), *arguments], capture_output=True, text=True, check=False, env=environment, cwd=TREE
    )
