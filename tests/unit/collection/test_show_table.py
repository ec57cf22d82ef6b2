"""Tables are text, by the ansible.cfg of the checkout and without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support.checkout import ROOT

LINES = ['ok       kvm     a guest\'s "name": x', "warning  memory  2048 MiB\\n", "          -> leave more"]
PLAY = {
    "hosts": "all",
    "gather_facts": False,
    "tasks": [
        {"name": "Show", "nometal.ipi.show_table": {"lines": LINES}},
        {"name": "Leave out", "ansible.builtin.debug": {"msg": "x"}, "when": False},
    ],
}


def played(below: Path, hosts: str, **environment: str) -> str:
    (below / "play.yml").write_text(yaml.safe_dump([PLAY]), encoding="utf-8")
    done = subprocess.run(
        [Path(sys.executable).with_name("ansible-playbook"), below / "play.yml", "-i", hosts],
        cwd=below,
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "playbooks/collections"), **environment},
        check=True,
        text=True,
        capture_output=True,
    )
    return done.stdout


@pytest.mark.parametrize("format_of_results", ["json", "yaml"])
def test_a_table_is_text_by_every_format_of_results(format_of_results: str, tmp_path: Path) -> None:
    shown = played(tmp_path, "one,", ANSIBLE_CALLBACK_RESULT_FORMAT=format_of_results)
    assert "\n" + "\n".join(LINES) + "\nok: [one]\n" in shown


def test_tables_of_several_hosts_are_told_apart(tmp_path: Path) -> None:
    shown = played(tmp_path, "one,two,")
    assert all("\n".join([f"{host}:", *LINES]) in shown for host in ("one", "two"))


def test_by_the_configuration_of_the_checkout_what_is_skipped_is_hidden(tmp_path: Path) -> None:
    """Ansible shows a title with the result then, so a table has one of its own."""
    shown = played(tmp_path, "one,", ANSIBLE_CONFIG=str(ROOT / "ansible.cfg"))
    assert f"\n\nShow\n{LINES[0]}\n" in shown
    assert "Leave out" not in shown
    assert "skipping" not in shown


def test_what_is_written_for_programs_stays_so(tmp_path: Path) -> None:
    (tmp_path / "callbacks").mkdir()
    # As ansible.posix.json, which is not installed: its name is what counts.
    text = "from ansible.plugins.callback.default import CallbackModule as Default\nDOCUMENTATION = '''\nname: json\n"
    text += (
        "type: stdout\nshort_description: x\ndescription: x\nextends_documentation_fragment: [default_callback]\n'''\n"
    )
    text += "class CallbackModule(Default):\n    CALLBACK_NAME = 'json'\n"
    (tmp_path / "callbacks/json.py").write_text(text, encoding="utf-8")
    options = {"ANSIBLE_CALLBACK_PLUGINS": str(tmp_path / "callbacks"), "ANSIBLE_STDOUT_CALLBACK": "json"}
    assert json.dumps(LINES[0])[1:-1] not in (shown := played(tmp_path, "one,", **options))
    assert LINES[2] not in shown
