"""What an operator reads when no lab can be made of what is given: the errors alone, and nothing of Ansible's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.checkout import ROOT, run_playbook

SHIPPED = ROOT / "inventory" / "rehearsal"


def refused(inventory: Path, playbook: str = "spec", **variables: Any) -> str:
    run = run_playbook(playbook, inventory, "-e", json.dumps(variables))
    assert run.returncode != 0
    assert "Traceback" not in run.stdout
    return run.stdout


def test_errors_are_a_plain_list() -> None:
    """By module "derive_lab": what fails while Ansible fills in a task's arguments, it wraps in words of its own."""
    said = refused(SHIPPED, lab_spec={"name": "Ha", "nodes": {"workers": {"count": "xx"}}})
    assert "lab_spec has 2 errors:" in said
    assert "Finalization" not in said
    assert "'nometal.ipi.lab_model' failed" not in said


def test_errors_are_findings_for_programs() -> None:
    said = refused(SHIPPED, lab_spec={"name": "Ha", "nodes": {"workers": {"count": "xx"}}})
    result = json.loads(next(line for line in said.splitlines() if line.startswith("fatal: ")).partition("=> ")[2])
    assert [(finding["code"], finding["subject"]) for finding in result["findings"]] == [
        ("schema.value", "lab_spec.name"),
        ("schema.number", "lab_spec.nodes.workers.count"),
    ]


@pytest.mark.parametrize("lab_spec", [{"name": "{{ lab_spec.name }}"}, "{{ lab_spec }}"])
def test_a_lab_spec_that_refers_to_itself(lab_spec: Any) -> None:
    said = refused(SHIPPED, lab_spec=lab_spec)
    assert "lab_spec refers to itself" in said
    assert "recursion depth" not in said


def test_a_template_that_cannot_be_filled_in() -> None:
    said = refused(SHIPPED, lab_spec={"name": "{{ no_such_variable }}"})
    assert "lab_spec cannot be read" in said
    assert "no_such_variable" in said


def test_what_is_wrong_with_variables_of_keys_is_told_with_the_rest() -> None:
    said = refused(SHIPPED, lab_spec_name="Ha", lab_spec_nodes_workers_cont="2")
    assert "lab_spec_nodes_workers_cont: unknown variable; did you mean lab_spec_nodes_workers_count?" in said
    assert "lab_spec has 1 error:" in said
    assert "lab_spec.name" in said


def test_a_lab_of_variables_alone(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text("hypervisors: {hosts: {one: {ansible_connection: local}}}\n", encoding="utf-8")
    run = run_playbook("spec", tmp_path, "-e", "lab_spec_name=demo", "-e", "lab_spec_nodes_workers_count=2", "-v")
    assert run.returncode == 0, run.stdout
    assert '"domain": "demo.lab.example.test"' in run.stdout
    assert '"name": "worker-1"' in run.stdout
    assert '"name": "worker-2"' not in run.stdout


BY_NAME = {"teardown_lab": "demo"}


@pytest.mark.parametrize(
    ("playbook", "given"),
    [("spec", {}), ("site", {}), ("doctor", {}), ("labs", {}), ("teardown", {}), ("teardown", BY_NAME)],
)
def test_an_inventory_that_does_not_exist_is_named(playbook: str, given: dict[str, str]) -> None:
    assert "inventory/nope does not exist" in refused(Path("inventory/nope"), playbook, **given)


@pytest.mark.parametrize(("playbook", "given"), [("labs", {}), ("teardown", BY_NAME)])
def test_an_inventory_without_hosts_is_named(playbook: str, given: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text("all: {hosts: {one: }}\n", encoding="utf-8")
    said = refused(tmp_path, playbook, **given)
    assert "no host in the group hypervisors" in said
    assert f"It is {tmp_path}" in said


@pytest.mark.parametrize("confirmation", ["", "demo2"])
def test_a_lab_whose_name_is_not_confirmed_is_not_removed(confirmation: str) -> None:
    said = refused(SHIPPED, "teardown", teardown_lab="demo", teardown_confirmation=confirmation)
    assert "Nothing was removed. The lab to be removed is demo" in said


def test_an_inventory_without_a_lab_is_named(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text("all: {hosts: {one: }}\n", encoding="utf-8")
    said = refused(tmp_path)
    assert "It needs a host in the group hypervisors" in said
    assert f"It is {tmp_path}" in said


def test_derive_lab_gives_what_the_filter_gives() -> None:
    play = [
        {"ansible.builtin.import_playbook": str(ROOT / "playbooks/spec.yml")},
        {
            "hosts": "hypervisors",
            "gather_facts": False,
            "tasks": [
                {"ansible.builtin.assert": {"that": "lab == lab_spec | nometal.ipi.lab_model(groups.hypervisors)"}}
            ],
        },
    ]
    program = Path(sys.executable).with_name("ansible-playbook")
    done = subprocess.run(
        [program, "/dev/stdin", "-i", SHIPPED],
        input=json.dumps(play),
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "playbooks/collections")},
        check=False,
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
