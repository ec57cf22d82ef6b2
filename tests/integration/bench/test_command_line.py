"""tests/labhost, as people and molecule use it."""

from __future__ import annotations

import secrets
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import lab_host
from support.lab_host import COMMAND_LINE
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def name() -> Iterator[str]:
    name = f"by-hand-{secrets.token_hex(3)}"
    yield name
    labhost("down", name, "--if-running")


def labhost(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, COMMAND_LINE, *words], check=check, text=True, capture_output=True)


def wait_until_ended(name: str) -> None:
    wait_until(f"{name} has ended", lambda: lab_host.find(name) is None)


def test_a_host_by_hand_from_up_to_down(name: str, tmp_path: Path) -> None:
    assert labhost("up", name, "--layer", "bare").stdout.startswith(f"{name} is up: ssh -F ")
    assert name in labhost("list").stdout
    assert labhost("run", name, "--", "sh", "-c", "echo kept > /etc/kept; hostname").stdout == f"{name}\n"
    config = tmp_path / "config"
    config.write_text(labhost("ssh-config", name).stdout)
    over_ssh = subprocess.run(["ssh", "-F", config, name, "cat /etc/kept"], check=True, text=True, capture_output=True)
    assert over_ssh.stdout == "kept\n"
    labhost("reboot", name)
    labhost("kill", name)
    assert labhost("run", name, "--", "cat", "/etc/kept").stdout == "kept\n"
    assert "Welcome to" in labhost("log", name).stdout
    labhost("down", name)
    assert labhost("down", name, check=False).stderr.startswith(f"No lab host named {name} is running; running: ")


def test_a_name_is_given_once(name: str) -> None:
    labhost("up", name, "--layer", "bare")
    assert labhost("up", name, check=False).stderr == f"A lab host named {name} is already running.\n"


def test_it_ends_with_the_process_that_it_was_told(name: str) -> None:
    with subprocess.Popen(["sleep", "600"]) as owner:
        labhost("up", name, "--layer", "bare", "--owner-pid", str(owner.pid))
        assert lab_host.find(name) is not None
        owner.kill()
    wait_until_ended(name)


def test_it_ends_with_an_ancestor_by_name(name: str) -> None:
    command = f"{sys.executable} {COMMAND_LINE} up {name} --layer bare --owner-ancestor '^sh .*4716'; sleep 4716"
    with subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, start_new_session=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline().startswith(name.encode())
        assert lab_host.find(name) is not None
        owner.kill()
        subprocess.run(["pkill", "--session", str(owner.pid)], check=False)
    wait_until_ended(name)
