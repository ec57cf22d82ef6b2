"""The nodes of a cluster that a stand-in has installed: compared with the lab, and what is done about it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from support import install_lab, kubectl
from support.checkout import run_playbook
from support.failures import ending

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from subprocess import CompletedProcess

    from support.install_lab import InstallLab

KUBECTL = "/srv/kubectl/kubectl"
SPARES = "/var/lib/nometal/install/lab/cluster/auth/spares.yaml"
NODES = {"control_plane": {"count": 3}, "workers": {"count": 0}, "spares": {"count": 1}}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[InstallLab]:
    with install_lab.start(tmp_path, nodes=NODES) as started:
        started.host.copy_tree(kubectl.program("bookworm").parent, "/srv/kubectl")
        started.host.write(install_lab.SCENARIO, json.dumps({"*": {"kubectl": KUBECTL}}))
        started.scenario()
        yield started


def ended(run: CompletedProcess[str], changed: str) -> bool:
    told = re.search(rf"^hypervisor .* changed={changed} .*failed=0", run.stdout, re.MULTILINE)
    return run.returncode == 0 and told is not None


@pytest.mark.full
def test_a_cluster_is_compared_with_the_lab_and_changed(lab: InstallLab) -> None:
    installed = lab.install()
    assert installed.returncode == 0, ending(installed.stdout)

    # Spares that the cluster is not to know are written down for the operator.
    inventory = lab.inventory()
    foreseen = run_playbook("grow", inventory, "--check", "--diff")
    assert ended(foreseen, changed="1"), ending(foreseen.stdout)
    assert f"write {SPARES}" in foreseen.stdout
    grown = run_playbook("grow", inventory)
    assert ended(grown, changed="1"), ending(grown.stdout)
    assert lab.host.run(["stat", "--format=%a %U", SPARES]).stdout.strip() == "600 root"
    password = re.search(r"password: (\S+)", lab.host.read(SPARES))
    assert password
    assert password[1] not in grown.stdout
    for part in ("grow", "shrink"):
        again = run_playbook(part, inventory)
        assert ended(again, changed="0"), ending(again.stdout)
