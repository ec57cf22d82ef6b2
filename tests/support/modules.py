"""Run a module of the collection as Ansible does, with the distribution's Python."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.checkout import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.private_libvirtd import PrivateLibvirtd

HERE = ["localhost", "--extra-vars", "ansible_python_interpreter=/usr/bin/python3"]


def run_beside(libvirtd: PrivateLibvirtd, name: str, arguments: dict[str, Any], **options: Any) -> dict[str, Any]:
    command = _command(HERE, name, arguments, **options)
    return _result(name, libvirtd.run(command, check=False))


def run_on(inventory: Path, name: str, arguments: dict[str, Any], **options: Any) -> dict[str, Any]:
    """On the host that an inventory calls hypervisor."""
    command = _command(["hypervisor", "--inventory", str(inventory)], name, arguments, **options)
    return _result(name, subprocess.run(command, check=False, text=True, capture_output=True))


def _command(where: Sequence[str], name: str, arguments: dict[str, Any], *, check_mode: bool = False) -> list[str]:
    ansible = [str(Path(sys.executable).with_name("ansible")), *where, "--playbook-dir", str(ROOT / "playbooks")]
    module = [
        "--module-name",
        f"nometal.ipi.{name}",
        "--diff",
        *(["--args", json.dumps(arguments)] if arguments else []),
    ]
    environment = ["env", "ANSIBLE_CALLBACK_RESULT_FORMAT=json", "ANSIBLE_LOCALHOST_WARNING=false"]
    return [*environment, *ansible, *module, *(["--check"] if check_mode else [])]


def _result(name: str, done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The module's result, whether it failed, the diff as Ansible shows it, and its warnings."""
    above, _, answer = done.stdout.rpartition(" => ")
    shown, _, verdict = above.rpartition("\n")
    if not answer:
        raise AssertionError(f"{name} gave no result:\n{done.stdout}{done.stderr}")
    warned = " ".join(done.stderr.split())
    return {**json.loads(answer), "failed": "FAILED" in verdict, "shown_diff": shown.strip(), "warned": warned}
