"""The checkout under test: put into a lab host as a new user has it, or run from here against one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from support import kept_code

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.lab_host import LabHost

ROOT = Path(__file__).parents[2]
# In the tree of a developer, in no fresh checkout.
NOT_IN_A_FRESH_ONE = (
    ".venv",
    ".git",
    "build",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
)
IN_HOST = "/root/ipi"
MAKE_SECONDS = 1800
CHANGES_FOR_SMALL_NODES = {
    "_lab/rules/install.py": """
LEAST_MEMORY, LEAST_MEMORY_OF_OTHERS, LEAST_INSTALL_DISK, LEAST_VCPUS = {}, "1MiB", "1MiB", 1
""",
    "_checks/doctor/kvm.py": """
from dataclasses import replace
strict = judge_kvm
def judge_kvm(trial, needs):
    return strict(trial, replace(needs, install=False))
""",
}


def put_into(host: LabHost) -> None:
    host.copy_tree(ROOT, IN_HOST, exclude=NOT_IN_A_FRESH_ONE)


def make(host: LabHost, target: str, *arguments: str) -> str:
    """`make TARGET` in the host's checkout; returns what it printed."""
    command = ["sh", "-c", 'cd "$0" && exec make --no-print-directory "$@" 2>&1', IN_HOST, target, *arguments]
    return host.run(command, timeout=MAKE_SECONDS).stdout


def inventory(
    host: LabHost,
    below: Path,
    lab: str = "rehearsal",
    *,
    rehearsed: bool = False,
    variables: Mapping[str, object] | None = None,
    **spec: Any,
) -> Path:
    """An inventory of one hypervisor, a lab host, with a shipped lab; `spec` replaces keys of its lab_spec.

    `variables` are the host's, such as the user that Ansible logs in as.
    A rehearsal takes a minute or more, so it is only made where it is what the test is about.
    """
    directory = below / f"{host.name}-{spec.get('name', lab)}"
    (directory / "group_vars" / "all").mkdir(parents=True, exist_ok=True)
    hosts = {"hypervisors": {"hosts": {"hypervisor": {**host.inventory_variables(), **(variables or {})}}}}
    (directory / "hosts.yml").write_text(yaml.safe_dump(hosts), encoding="utf-8")
    shipped = yaml.safe_load((ROOT / "inventory" / lab / "group_vars" / "all" / "lab.yml").read_text(encoding="utf-8"))
    changed = {"lab_spec": {**shipped["lab_spec"], **spec}, "rehearsal_enabled": rehearsed}
    (directory / "group_vars" / "all" / "lab.yml").write_text(yaml.safe_dump(changed), encoding="utf-8")
    return directory


def with_umask(host: LabHost, inventory_of_host: Path, umask: str) -> Path:
    """The same inventory, for Ansible to run its modules with this umask, as a strict or a careless login would."""
    python = f"/usr/local/bin/python-{umask}"
    host.write(python, f'#!/bin/sh\numask {umask}\nexec /usr/bin/python3 "$@"\n', mode="0755")
    directory = inventory_of_host.with_name(f"{inventory_of_host.name}-{umask}")
    shutil.copytree(inventory_of_host, directory)
    hosts = yaml.safe_load((directory / "hosts.yml").read_text(encoding="utf-8"))
    hosts["hypervisors"]["hosts"]["hypervisor"]["ansible_python_interpreter"] = python
    (directory / "hosts.yml").write_text(yaml.safe_dump(hosts), encoding="utf-8")
    return directory


def command(playbooks: str, inventory_of_host: Path, *arguments: str) -> list[str]:
    """Of one playbook, or of several in one run: "host network"."""
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    files = [f"playbooks/{name}.yml" for name in playbooks.split()]
    return [program, *files, "-i", str(inventory_of_host), *arguments]


def with_small_nodes(below: Path) -> Path:
    """A checkout that installs on nodes as small as those of a rehearsal, and without KVM, as far as the rules go."""
    product = below / "product"
    if not product.exists():
        shutil.copytree(ROOT, product, symlinks=True, ignore=shutil.ignore_patterns(*NOT_IN_A_FRESH_ONE, "tests"))
        for file, change in CHANGES_FOR_SMALL_NODES.items():
            with (product / "plugins/module_utils" / file).open("a", encoding="utf-8") as code:
                code.write(change)
    return product


def environment(root: Path) -> dict[str, str]:
    """Of Ansible, besides its own, where it is to run from another checkout than this one."""
    return {} if root == ROOT else {"KEPT_MODULES": str(kept_code.modules(json.dumps(CHANGES_FOR_SMALL_NODES)))}


def run_playbook(
    playbooks: str, inventory_of_host: Path, *arguments: str, root: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run it from here, as from a controller; whether it went well is in the result."""
    return subprocess.run(
        command(playbooks, inventory_of_host, *arguments),
        cwd=root,
        env={**os.environ, **environment(root)},
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        timeout=MAKE_SECONDS,
    )
