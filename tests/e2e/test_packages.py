"""Packages: a power cut while they are installed, and their removal when it is asked for."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from support import checkout, lab_host, snapshot
from support.checkout import run_playbook

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.lab_host import LabHost

UNPACKED = "grep -q ' status unpacked ' /var/log/dpkg.log"
INSTALL_SECONDS = 300


@pytest.fixture
def bare() -> Iterator[LabHost]:
    with lab_host.start(layer="bare", mirror=True) as host:
        yield host


def test_a_power_cut_while_packages_are_unpacked_is_repaired_by_the_next_run(bare: LabHost, tmp_path: Path) -> None:
    inventory = checkout.inventory(bare, tmp_path)
    bare.run("rm -f /var/log/dpkg.log")
    with subprocess.Popen(
        checkout.command("host", inventory), cwd=checkout.ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as controller:
        deadline = time.monotonic() + INSTALL_SECONDS
        while bare.run(UNPACKED, check=False).returncode != 0:
            assert time.monotonic() < deadline, "no package was unpacked"
            time.sleep(0.2)
        controller.kill()
    bare.kill()
    assert bare.run("dpkg --audit").stdout != "" or bare.run("ls /var/lib/dpkg/updates").stdout != ""

    repaired = run_playbook("host", inventory)
    assert repaired.returncode == 0, repaired.stdout
    assert bare.run("dpkg --audit").stdout == ""


def test_packages_that_were_brought_go_when_asked_and_others_stay(bare: LabHost, tmp_path: Path) -> None:
    # tree is somebody's; libjansson4 lies about needlessly, is needed by what the lab brings, and needless again after.
    bare.run(
        "apt-get update -qq && apt-get install -qq --yes tree libjansson4 && apt-mark auto libjansson4", timeout=300
    )
    before = snapshot.take(bare)
    inventory = checkout.inventory(bare, tmp_path)
    assert run_playbook("site", inventory).returncode == 0
    removed = run_playbook("teardown", inventory, "-e", "host_prep_remove_packages=true")
    assert removed.returncode == 0, removed.stdout
    assert snapshot.take(bare).kinds["packages"] == before.kinds["packages"]
    assert bare.run("ls /var/lib/nometal", check=False).stdout == ""
