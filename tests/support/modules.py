"""Run a module of the collection as Ansible does, with the distribution's Python, wherever `run` runs commands."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from support.checkout import ROOT

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence


class Runs(Protocol):
    def run(self, command: Sequence[str], *, check: bool) -> subprocess.CompletedProcess[str]: ...


def run_module(runs: Runs, name: str, arguments: dict[str, Any], *, check_mode: bool = False) -> dict[str, Any]:
    """The module's result, whether it failed, and the diff as Ansible shows it."""
    ansible = [str(Path(sys.executable).with_name("ansible")), "localhost", "--playbook-dir", str(ROOT / "playbooks")]
    module = ["--module-name", f"nometal.ipi.{name}", "--args", json.dumps(arguments), "--diff"]
    settings = ["--extra-vars", "ansible_python_interpreter=/usr/bin/python3", *(["--check"] if check_mode else [])]
    environment = ["env", "ANSIBLE_CALLBACK_RESULT_FORMAT=json", "ANSIBLE_LOCALHOST_WARNING=false"]
    done = runs.run([*environment, *ansible, *module, *settings], check=False)
    shown, _, answer = done.stdout.rpartition("localhost | ")
    verdict, arrow, result = answer.partition(" => ")
    if not arrow:
        raise AssertionError(f"{name} gave no result:\n{done.stdout}{done.stderr}")
    return {**json.loads(result), "failed": "FAILED" in verdict, "shown_diff": shown.strip()}
