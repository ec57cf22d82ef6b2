"""What playbooks/teardown.yml refuses before it asks a host anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from support.checkout import run_playbook

if TYPE_CHECKING:
    from pathlib import Path

NO_HOST = {"ansible_connection": "local", "ansible_become": False, "ansible_python_interpreter": "/nonexistent/python"}


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """Of a host on which nothing can run."""
    path = tmp_path / "hosts.yml"
    hosts = {"hypervisors": {"hosts": {"hypervisor": NO_HOST}}}
    path.write_text(yaml.safe_dump(hosts), encoding="utf-8")
    return path


@pytest.mark.parametrize("confirmed", ["another", "''"])
def test_with_a_limit_a_lab_whose_name_is_not_confirmed_is_not_removed(inventory: Path, confirmed: str) -> None:
    names = f"teardown_lab=one teardown_confirmation={confirmed}"
    refused = run_playbook("teardown", inventory, "--limit", "hypervisor", "-e", names)
    assert refused.returncode != 0
    assert "Nothing was removed. The lab to be removed is one" in " ".join(refused.stdout.split())
    assert "/nonexistent/python" not in refused.stdout


def test_nor_is_the_one_of_lab_spec(inventory: Path) -> None:
    variables = {"lab": {"name": "one"}, "teardown_confirmation": "another"}
    given = inventory.with_name("given.yml")
    given.write_text(yaml.safe_dump(variables), encoding="utf-8")
    refused = run_playbook("teardown", inventory, "--limit", "hypervisor", "--skip-tags", "always", "-e", f"@{given}")
    assert refused.returncode != 0
    assert "Nothing was removed. The lab to be removed is one" in " ".join(refused.stdout.split())
    assert "/nonexistent/python" not in refused.stdout


def test_a_name_that_is_confirmed_is(inventory: Path) -> None:
    run = run_playbook(
        "teardown", inventory, "--limit", "hypervisor", "-e", "teardown_lab=one teardown_confirmation=one"
    )
    assert "Nothing was removed." not in run.stdout
    assert "/nonexistent/python" in run.stdout
