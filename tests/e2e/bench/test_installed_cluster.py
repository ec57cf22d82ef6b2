"""The stand-in cluster on a lab host: it comes back when the host has lost its power, and goes with its last disk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support import install_lab
from support.failures import ending
from support.stand_in.state import STATES, UNITS
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.install_lab import InstallLab
    from support.lab_host import LabHost

KUBECONFIG = "/var/lib/nometal/install/lab/cluster/auth/kubeconfig"
OC = "$(find /var/cache/nometal/tools -name oc -type f | head -1)"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[InstallLab]:
    with install_lab.start(tmp_path) as started:
        yield started


@pytest.mark.full
def test_it_comes_back_after_a_power_cut(lab: InstallLab) -> None:
    lab.scenario()
    installed = lab.install()
    assert installed.returncode == 0, ending(installed.stdout)
    wait_until("its nodes are ready", lambda: _ready(lab.host) == 3)
    lab.host.kill()
    lab.host.run("for vm in $(virsh list --inactive --name); do virsh start $vm; done")
    wait_until("its nodes are ready again", lambda: _ready(lab.host) == 3, seen=lambda: _log(lab.host))

    removed = lab.remove_cluster()
    assert removed.returncode == 0, ending(removed.stdout)
    left = ["sh", "-c", f"ls -d {STATES} {UNITS}/*again.service"]
    wait_until("nothing of it is left", lambda: not lab.host.run(left, check=False).stdout, seen=lambda: _log(lab.host))


def _ready(host: LabHost) -> int:
    command = f"{OC} --kubeconfig={KUBECONFIG} --request-timeout=5s get nodes -o json"
    found = json.loads(host.run(["sh", "-c", command], check=False).stdout or '{"items": []}')
    conditions = [one for node in found["items"] for one in node["status"]["conditions"]]
    return len([one for one in conditions if (one["type"], one["status"]) == ("Ready", "True")])


def _log(host: LabHost) -> str:
    return host.run("journalctl --no-pager --boot | grep -i stand-in | tail -20", check=False).stdout
