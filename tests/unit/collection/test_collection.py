"""What the collection promises as a whole, told from its files."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import report_picture
import role_readmes
import yaml
from support import plugin_docs

ROOT = Path(__file__).parents[3]
MODULES = sorted(path.stem for path in (ROOT / "plugins" / "modules").glob("*.py"))
ROLES = sorted((ROOT / "roles").iterdir())
STAGES = sorted(path.stem for path in (ROOT / "playbooks/stages").glob("*.yml"))


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("group", "option"), [("ipi", "lab"), ("libvirt", "libvirt_uri"), ("host_baseline", "memory")])
def test_an_action_group_names_the_modules_that_have_its_option(group: str, option: str) -> None:
    groups = load(ROOT / "meta" / "runtime.yml")["action_groups"]
    assert groups[group] == [module for module in MODULES if option in plugin_docs.of_module(module)["options"]]
    assert len(groups) == 3, "the option of every group is looked at"


def test_no_module_calls_the_lab_by_another_name() -> None:
    assert [module for module in MODULES if "owner" in plugin_docs.of_module(module)["options"]] == []


def test_defaults_of_a_group_reach_its_modules(tmp_path: Path) -> None:
    task = {"name": "Ask", "nometal.ipi.cluster_info": {}, "register": "found"}
    shown = {"name": "Show", "ansible.builtin.debug": {"msg": "is {{ found.state }}"}}
    defaults = {"group/nometal.ipi.ipi": {"lab": "not-there"}}
    play = {"hosts": "localhost", "gather_facts": False, "module_defaults": defaults, "tasks": [task, shown]}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    python = f"ansible_python_interpreter={sys.executable}"
    program = Path(sys.executable).with_name("ansible-playbook")
    command: list[Path | str] = [program, tmp_path / "play.yml", "-i", "localhost,", "-c", "local", "-e", python]
    paths = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / "playbooks/collections"), "ANSIBLE_HOME": str(tmp_path)}
    done = subprocess.run(command, env={**os.environ, **paths}, check=False, text=True, capture_output=True)
    assert "is nothing" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_a_test(module: str) -> None:
    tests = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    named = (f'"{module}"', f'"{module}.py"', f"plugins.modules import {module}")
    assert any(name in text for text in tests for name in named)


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_the_readmes_of_roles_are_those_of_their_argument_specs(role: Path) -> None:
    assert (role / "README.md").read_text(encoding="utf-8") == role_readmes.readme(role), "run `make docs`"


def test_the_picture_of_a_report_is_as_reports_draw_it() -> None:
    assert report_picture.PICTURE.read_text(encoding="utf-8") == report_picture.picture(), "run `make docs`"


def test_the_link_of_the_checkout_leads_to_it() -> None:
    assert (ROOT / "playbooks" / "collections" / "ansible_collections" / "nometal" / "ipi").resolve() == ROOT


def test_site_has_the_lab_to_itself_runs_every_stage_once_and_changes_nothing_before_all_are_asked() -> None:
    taking, *stages, releasing = load(ROOT / "playbooks" / "site.yml")
    for play, name in ((taking, "spec.yml"), (releasing, "release.yml")):
        assert play["ansible.builtin.import_playbook"] == name
        assert play["vars"] == {"lab_lock_stage": "site"}
    names = [play["ansible.builtin.import_playbook"] for play in stages]
    first = ("doctor", "preflight", "shrink", "host", "preflight")
    assert names[:5] == [f"stages/{name}.yml" for name in first]
    once = [name for name in names if name != "stages/preflight.yml"]
    assert len(once) == len(set(once))
    assert set(names) == {f"stages/{stage}.yml" for stage in STAGES}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_alone_is_the_one_of_site(stage: str) -> None:
    """What reads lab_spec and locks the lab is around the stages, and so once in a run of them all."""
    alone = [play["ansible.builtin.import_playbook"] for play in load(ROOT / "playbooks" / f"{stage}.yml")]
    around = {"spec.yml", "release.yml"}
    assert [name for name in alone if name not in around] == [f"stages/{stage}.yml"]
    imported = [
        play.get("ansible.builtin.import_playbook") for play in load(ROOT / "playbooks/stages" / f"{stage}.yml")
    ]
    assert not around & {Path(name).name for name in imported if name}


@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage not in ("doctor", "preflight")])
def test_a_stage_that_changes_something_keeps_the_lock_before_its_first_role(stage: str) -> None:
    """In site.yml it is taken once, and the connection that shows it may end during a long stage."""
    block = load(ROOT / "playbooks/stages" / f"{stage}.yml")[0]["tasks"][0]["block"]
    first, second = [task for task in block if "ansible.builtin.meta" not in task][:2]
    assert first["ansible.builtin.import_tasks"] == "../tasks/keep_lock.yml"
    assert "ansible.builtin.import_tasks" not in second


@pytest.mark.parametrize(
    "stage",
    [
        "host",
        "network",
        "nodes",
        "bmc",
        "rehearse",
        "install",
        "shrink",
        "grow",
        "stop",
        "start",
        "teardown",
        "checkpoint",
        "export",
    ],
)
def test_every_playbook_that_changes_something_has_the_lab_to_itself(stage: str) -> None:
    plays = load(ROOT / "playbooks" / f"{stage}.yml")
    reading = next(play for play in plays if play.get("ansible.builtin.import_playbook") == "spec.yml")
    for play, name in ((reading, "spec.yml"), (plays[-1], "release.yml")):
        assert play["ansible.builtin.import_playbook"] == name
        assert play["vars"]["lab_lock_stage"] == stage


NEEDED_BY_ALL = ("spec", "release")
PLAYBOOKS = sorted(path for pattern in ("*.yml", "stages/*.yml") for path in (ROOT / "playbooks").glob(pattern))


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_tags_choose_stages_by_the_names_of_their_playbooks(playbook: Path) -> None:
    """Ansible checks the arguments of roles whatever the tags are, so the lab must be known in every case."""
    for play in load(playbook):
        needed_by_all = playbook.stem in NEEDED_BY_ALL or play.get("hosts") == "localhost"
        if "hosts" in play:
            assert play["tags"] == ("always" if needed_by_all else playbook.stem)


@pytest.mark.parametrize(
    ("arguments", "environment", "named"),
    [(["NAME=old"], "", True), ([], "", False), ([], "NAME=wsl-host", False), (["NAME=it's"], "", True)],
)
def test_make_removes_another_lab_only_when_it_is_told_its_name(
    arguments: list[str], environment: str, named: bool
) -> None:
    """Some systems have a variable NAME in everybody's environment."""
    command = ["env", environment or "UNUSED=", "make", "--no-print-directory", "--dry-run", "teardown", *arguments]
    shown = subprocess.run(command, cwd=ROOT, check=True, text=True, capture_output=True).stdout
    line = next(line for line in shown.splitlines() if "playbooks/teardown.yml" in line)
    words = shlex.split(line)
    name = arguments[0].partition("=")[2] if named else ""
    assert [word for word in words if "teardown_lab" in word] == ([f'{{"teardown_lab": "{name}"}}'] if named else [])
