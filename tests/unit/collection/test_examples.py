"""What pages for operators show is there, and is accepted. Tasks run in tests/e2e/test_examples.py."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support import documentation, shown_commands
from support.checkout import ROOT

from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model

if TYPE_CHECKING:
    from support.documentation import Block

ADDED_TO = re.compile(r"added to (inventory/\w+)")
MAPPINGS = [block for block in documentation.blocks("yaml") if isinstance(yaml.safe_load(block.text), dict)]
SPECS = [block for block in MAPPINGS if "lab_spec" in yaml.safe_load(block.text)]
VARIABLES = [block for block in MAPPINGS if block not in SPECS]
COMMANDS = documentation.commands()
TEMPLATE = "{{"
FENCE = re.compile(r"^ *```(\w*)", re.MULTILINE)


def merged(below: Any, above: Any) -> Any:
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {**below, **{key: merged(below.get(key), value) for key, value in above.items()}}


def spec_of(block: Block) -> dict[str, Any]:
    """What is a part only says to which inventory it is added."""
    own: dict[str, Any] = yaml.safe_load(block.text)["lab_spec"]
    inventory = ADDED_TO.fullmatch(block.marker)
    if not inventory:
        return own
    shipped = yaml.safe_load((ROOT / inventory[1] / "group_vars/all/lab.yml").read_text(encoding="utf-8"))
    return merged(shipped["lab_spec"], own)


@pytest.mark.parametrize("block", SPECS, ids=str)
def test_a_lab_can_be_made_of_every_lab_spec(block: Block) -> None:
    spec = spec_of(block)
    assert lab_model(spec, ["hypervisor"])["name"] == spec["name"]


@pytest.mark.parametrize("block", VARIABLES, ids=str)
def test_variables_are_those_of_roles_and_have_such_values(block: Block) -> None:
    for name, value in yaml.safe_load(block.text).items():
        assert name in shown_commands.role_options()
        assert TEMPLATE in str(value) or shown_commands.of_variable(name, value) == []


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: f"{command} {command.text}")
def test_every_command_names_what_is_there(command: Block) -> None:
    assert shown_commands.faults(command.text) == []


@pytest.mark.parametrize("command", sorted({command.text for command in COMMANDS if " debug " in command.text}))
def test_what_shows_the_model_runs_as_it_is_written(command: str) -> None:
    program, *words = shlex.split(command)
    done = subprocess.run(
        [Path(sys.executable).with_name(program), *words], cwd=ROOT, check=False, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"lab' in done.stdout


def test_no_block_is_in_another_language() -> None:
    languages = {language for text in documentation.pages().values() for language in FENCE.findall(text)}
    assert languages == {"", "console", "text", "yaml"}, "a closing fence has none"


def test_commands_are_found_wherever_they_stand() -> None:
    found = {(command.page, command.text) for command in COMMANDS}
    assert found >= {
        ("README.md", "make lab LAB=inventory/ha"),
        ("README.md", "make lab ARGS='--check --diff'"),
        ("README.md", "-e lab_lock_take_over=true"),
        ("docs/rehearsal.md", "ansible-playbook playbooks/rehearse.yml -i inventory/ha"),
    }
    assert any("inventory" in text and "@playbooks/vars/lab.yml" in text for _page, text in found)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("make lap", "no target lap"),
        ("make lab LABS=inventory/ha", "no variable LABS"),
        ("make lab LAB=inventory/demo", "there is no inventory/demo"),
        ("make lab ARGS='-e lab_network_restart=yes'", "value of lab_network_restart must be one of"),
        ("ansible-playbook playbooks/sites.yml", "there is no playbooks/sites.yml"),
        ("ansible-playbook nometal.ipi.sites", "there is no playbooks/sites.yml"),
        ("ansible-playbook playbooks/site.yml -i inventory/demo", "there is no inventory/demo"),
        ("ansible-playbook playbooks/site.yml -e @playbooks/vars/x.yml", "there is no playbooks/vars/x.yml"),
        ("ansible all -m nometal.ipi.bmc_infos", "no module nometal.ipi.bmc_infos"),
        ("ansible all -m nometal.ipi.bmc_info -a labs=ha", "has no option labs"),
        ("-e rehearsal_patients=2", "has a variable rehearsal_patients"),
        ("-e rehearsal_patience=long", "rehearsal_patience"),
        ("-e '{\"host_prep_remove_packages\": 7}'", "host_prep_remove_packages"),
        ("playbooks/gone.yml", "there is no playbooks/gone.yml"),
        ("playbooks/gone.yml -e teardown_scope=cluster", "there is no playbooks/gone.yml"),
    ],
)
def test_what_a_command_names_in_vain_is_told(command: str, said: str) -> None:
    [fault] = shown_commands.faults(command)
    assert said in fault
