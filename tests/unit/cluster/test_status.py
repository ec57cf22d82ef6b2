"""What is shown of a lab in every state. The screens are in status.txt, in full."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import golden, shown_commands
from support.checkout import ROOT
from unit.cluster.status_samples import CASES, STORAGE, node, on

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes import record as node_record
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status import artifacts, screen
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status import findings as status_findings
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.next_steps import (
    HEADLINES,
    STEPS,
    Command,
    next_steps,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.observation import Checkpoint
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.observe import Question, observe
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.state import State, state_of
from ansible_collections.nometal.ipi.plugins.module_utils._core.sizes import GIB
from ansible_collections.nometal.ipi.plugins.module_utils._lab import paths
from ansible_collections.nometal.ipi.plugins.modules import lab_status

SCREENS = Path(__file__).with_name("status.txt")
INVENTORY = {"inventory": "inventory/ha", "by_make": True}
STATES = {
    "absent": State.ABSENT,
    "without libvirt": State.UNKNOWN,
    "half made by a run that was killed": State.PARTIAL,
    "while it is made": State.PARTIAL,
    "made": State.MADE,
    "made, to be installed": State.MADE,
    "rehearsed": State.REHEARSED,
    "rehearsal failed": State.REHEARSAL_FAILED,
    "installing": State.INSTALLING,
    "installation failed": State.INSTALL_FAILED,
    "installed": State.INSTALLED,
    "installed, off after a reboot": State.STOPPED,
    "installed, stopped": State.STOPPED,
    "installed, its API is silent": State.UNREACHABLE,
    "installed, and no client to ask the cluster with": State.INSTALLED,
    "installed, the cluster is not well": State.DEGRADED,
    "installed, a node of the control plane is being replaced": State.DEGRADED,
    "installed, much is wrong": State.DEGRADED,
    "its services do not run": State.PARTIAL,
}


def told(case: str, *, brief: bool = False, **controller: Any) -> dict[str, Any]:
    return lab_status.told(CASES[case], {**INVENTORY, **controller}, brief=brief)


def test_the_screens() -> None:
    blocks = [f"## {case}\n" + "\n".join(told(case)["lines"]) for case in CASES]
    blocks += [f"## summary: {case}\n" + "\n".join(told(case, brief=True)["lines"]) for case in CASES]
    golden.compare("\n\n".join(blocks) + "\n", SCREENS)


@pytest.mark.parametrize("case", CASES)
def test_the_state(case: str) -> None:
    assert state_of(CASES[case]) is STATES[case]


@pytest.mark.parametrize("case", CASES)
def test_a_screen_fits_a_terminal(case: str) -> None:
    assert max(map(len, told(case)["lines"])) <= screen.WIDTH + 40  # what is in one word is not broken
    assert len(told(case)["lines"]) < 50


@pytest.mark.parametrize("case", CASES)
def test_what_programs_get_is_json_with_the_keys_that_are_documented(case: str) -> None:
    status = told(case)["status"]
    assert json.loads(json.dumps(status)) == status
    assert documented() == set().union(*(keys_of(told(each)["status"]) for each in CASES))
    assert keys_of(status) <= documented()


def keys_of(value: Any, where: str = "") -> set[str]:
    """Of mappings at any depth; facts of findings differ from one to the other."""
    if isinstance(value, list):
        return set().union(*(keys_of(item, where) for item in value))
    if not isinstance(value, dict) or where == "findings.facts":
        return set()
    below = (
        {f"{where}.{key}".lstrip(".")} | keys_of(item, f"{where}.{key}".lstrip(".")) for key, item in value.items()
    )
    return set().union(*below)


def documented() -> set[str]:
    """The table of docs/status.md."""
    text = (ROOT / "docs/status.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    names = {name.strip().strip("`") for row in rows for name in row.split(",")}
    return {name for name in names if name in PARTS or name.partition(".")[0] in PARTS or "." not in name}


PARTS = {
    "host",
    "storage",
    "networks",
    "bmcs",
    "nodes",
    "run",
    "rehearsal",
    "installation",
    "cluster",
    "findings",
    "next",
    "checkpoints",
}


@pytest.mark.parametrize("case", CASES)
def test_a_job_keeps_what_whoever_cannot_log_in_to_the_host_needs(case: str) -> None:
    shown = told(case, brief=True)
    kept = artifacts.artifacts(shown["status"], shown["lines"][0])
    assert json.loads(json.dumps(kept)) == kept
    assert kept["summary"].startswith("Lab ha ")
    assert [finding["code"] for finding in kept["findings"]] == [each["code"] for each in shown["status"]["findings"]]
    documented = (ROOT / "docs/awx.md").read_text(encoding="utf-8")
    assert {key for key in kept if f"`{key}`" not in documented} == set()


def test_a_job_keeps_the_addresses_of_an_installed_cluster_and_the_names_of_files() -> None:
    shown = told("installed", brief=True)
    kept = artifacts.artifacts(shown["status"], shown["lines"][0])
    assert kept["api_url"] == "https://api.ha.lab.example.test:6443"
    assert kept["console_url"].startswith("https://console-openshift-console.apps.")
    assert kept["password_file"].endswith("/auth/kubeadmin-password")
    assert artifacts.artifacts(told("made")["status"], "")["api_url"] == ""


def test_every_state_has_words_and_steps() -> None:
    assert set(HEADLINES) == set(STEPS) == set(State)


def test_every_finding_is_worded_and_shown_in_a_case() -> None:
    found = {finding["code"] for case in CASES for finding in told(case)["status"]["findings"]}
    assert found == set(status_findings.WORDS)
    assert found > status_findings.WARNINGS


def test_commands_are_there_by_make_and_without() -> None:
    commands = {step.command for steps in STEPS.values() for step in steps if isinstance(step.command, Command)}
    for command in commands:
        for by_make in (True, False):
            assert shown_commands.faults(command.written("inventory/ha", by_make=by_make)) == []


@pytest.mark.parametrize(
    ("inventory", "by_make", "written"),
    [
        ("inventory/rehearsal", True, "make teardown ARGS='-e teardown_scope=cluster'"),
        ("inventory/ha", True, "make teardown LAB=inventory/ha ARGS='-e teardown_scope=cluster'"),
        ("my lab/", False, "ansible-playbook nometal.ipi.teardown -i 'my lab/' -e teardown_scope=cluster"),
    ],
)
def test_a_command_is_for_this_lab(inventory: str, *, by_make: bool, written: str) -> None:
    [step] = [step for step in STEPS[State.INSTALLED] if isinstance(step.command, Command)]
    assert step.written(inventory, by_make=by_make) == written


def test_a_restore_that_was_interrupted_is_repeated_before_anything_else() -> None:
    seen = CASES["installed, much is wrong"]
    [first, *others] = next_steps(state_of(seen), seen)
    assert not any("make start" in each.written("inventory/ha", by_make=True) for each in others)
    assert (
        first.written("inventory/ha", by_make=True) == "make restore LAB=inventory/ha ARGS='-e checkpoint_name=fresh'"
    )
    assert shown_commands.faults(first.written("inventory/ha", by_make=False)) == []


def test_what_leaves_etcd_is_not_switched_on_before_its_replacement_goes_on() -> None:
    replaced = CASES["installed, a node of the control plane is being replaced"]
    for seen in (replaced, replace(CASES["installed"], replacing=replaced.replacing)):
        commands = [step.written("inventory/ha", by_make=True) for step in next_steps(state_of(seen), seen)]
        assert commands[0] == "make lab LAB=inventory/ha"
        assert len({*commands}) == len(commands)
        assert "make start LAB=inventory/ha" not in commands


def test_a_replacement_that_was_begun_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "INSTALLS", tmp_path / "install")
    node_record.write(paths.Paths("demo"), node_record.Record(["worker-1"], {"worker-1": "uid"}))
    uri = f"qemu+unix:///system?socket={tmp_path}/none"
    seen, _picture = observe(Question(lab="demo", home=str(tmp_path), libvirt_uri=uri, asks=False))
    assert seen.replacing == ["worker-1"]


def test_disks_with_checkpoints_grow_beyond_their_size() -> None:
    full = replace(
        CASES["made"],
        storage=replace(STORAGE, promised_bytes=120 * GIB, free_bytes=8 * GIB),
        nodes=[on(node("worker-0", 30), disk_bytes=120 * GIB)],
    )

    def growth(*held: int) -> list[str]:
        checkpoints = [Checkpoint(str(each), "2026-11-19T11:02:03Z", held_bytes=each * GIB) for each in held]
        found = status_findings.findings_of(State.MADE, replace(full, checkpoints=checkpoints))
        return [finding.facts["growth"] for finding in found if finding.code == "storage.full"]

    assert growth() == growth(8) == []
    assert growth(8, 40) == ["48.0 GiB"]


def test_a_cluster_whose_vms_are_gone_has_not_been_stopped() -> None:
    gone = replace(CASES["installed, stopped"], nodes=[node("worker-0", 30, power="missing")])
    assert state_of(gone) is State.DEGRADED
    assert state_of(replace(gone, nodes=[*gone.nodes, node("worker-1", 31)])) is State.DEGRADED
    assert state_of(replace(gone, nodes=[node("worker-1", 31)])) is State.STOPPED


def test_a_damaged_checkpoint_does_not_hide_the_others(tmp_path: Path) -> None:
    for name, text in (("whole", '{"name": "whole", "taken": "2026-11-19T11:02:03Z"}'), ("damaged", "{")):
        record = tmp_path / f"labs/demo/checkpoints/{name}/checkpoint.json"
        record.parent.mkdir(parents=True)
        record.write_text(text)
    uri = f"qemu+unix:///system?socket={tmp_path}/none"
    seen, _picture = observe(Question(lab="demo", home=str(tmp_path), libvirt_uri=uri, asks=False))
    assert [checkpoint.name for checkpoint in seen.checkpoints] == ["whole"]
    [unread] = seen.unread
    assert unread.startswith(f"{tmp_path}/labs/demo/checkpoints/damaged/checkpoint.json has been damaged")


def test_a_cluster_that_cannot_be_asked_is_unreachable_only_if_nothing_answers_at_its_addresses() -> None:
    seen = CASES["installed, and no client to ask the cluster with"]
    assert seen.cluster is not None
    silent = replace(seen.cluster, vips=[replace(vip, answers=False) for vip in seen.cluster.vips])
    assert state_of(replace(seen, cluster=silent)) is State.UNREACHABLE
    assert state_of(replace(seen, cluster=replace(silent, vips=[]))) is State.INSTALLED


def test_there_are_three_steps_at_most() -> None:
    assert all(len(next_steps(state_of(seen), seen)) in (1, 2, 3) for seen in CASES.values())


def test_after_a_failure_the_same_is_offered_first() -> None:
    def commands(failed: str, **controller: Any) -> list[str]:
        status = lab_status.told(
            CASES["half made by a run that was killed"], {**INVENTORY, **controller}, brief=True, failed=failed
        )
        return [step["command"] for step in status["status"]["next"]]

    assert commands("site") == ["make lab LAB=inventory/ha", "make teardown LAB=inventory/ha"]
    assert commands("start")[0] == "make start LAB=inventory/ha"
    assert commands("grow")[0] == "ansible-playbook playbooks/grow.yml -i inventory/ha"
    assert commands("grow", by_make=False)[0] == "ansible-playbook nometal.ipi.grow -i inventory/ha"


def test_the_documentation_names_every_state() -> None:
    returned = yaml.safe_load(lab_status.RETURN)["state"]["description"]
    page = (ROOT / "docs/status.md").read_text(encoding="utf-8")
    for state in State:
        assert f"V({state})" in " ".join(returned)
        assert f"| {state} |" in page
