"""An installed cluster on a lab host is stopped and started by its playbooks: refused, in order, gone on with.

In `make test`, test_day_two.py does it.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from support import install_lab, kubectl
from support.checkout import run_playbook
from support.failures import ending
from support.stand_in.kubernetes import audit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.install_lab import InstallLab

pytestmark = pytest.mark.full

NODES = {"control_plane": {"count": 3}, "workers": {"count": 1}}
ALL = {"lab-control-plane-0", "lab-control-plane-1", "lab-control-plane-2", "lab-worker-0"}
AUDIT = "/var/log/stand-in-audit.jsonl"
BACKUPS = "/var/lib/nometal/install/lab/backups"
# The stand-in's systems do not hear their power buttons.
QUICK = ("-e", "cluster_stop_shutdown_seconds=1")
KUBECONFIG = "/var/lib/nometal/install/lab/cluster/auth/kubeconfig"
PAUSED = "baremetalhost.metal3.io/paused"
RESET = re.compile(r"Systems/(\S+)/Actions/ComputerSystem.Reset.*ResetType=(\w+)")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InstallLab]:
    with install_lab.start(tmp_path_factory.mktemp("lab"), nodes=NODES) as made:
        kubectl.install(made.host)
        made.scenario(audit=AUDIT)
        installed = made.install()
        assert installed.returncode == 0, ending(installed.stdout)
        yield made


def play(lab: InstallLab, playbook: str, *arguments: str) -> tuple[int, str]:
    """Its exit code, and what it has shown."""
    run = run_playbook(playbook, lab.inventory(), *arguments)
    return run.returncode, " ".join(run.stdout.split())


def those_on(lab: InstallLab) -> set[str]:
    return {*lab.host.run("virsh list --name").stdout.split()}


def resets(lab: InstallLab) -> list[str]:
    names = {uuid: name for name, uuid in (line.split() for line in uuids(lab))}
    log = lab.host.run("journalctl --unit nometal-bmc-lab --output cat").stdout
    return [f"{kind} {names[uuid]}" for uuid, kind in RESET.findall(log)]


def uuids(lab: InstallLab) -> list[str]:
    ask = 'for vm in $(virsh list --all --name); do echo "$vm $(virsh domuuid $vm)"; done'
    return [line for line in lab.host.run(ask).stdout.splitlines() if line]


def test_a_cluster_is_stopped_and_started(lab: InstallLab, tmp_path: Path) -> None:
    before = len(resets(lab))
    code, shown = play(lab, "stop", *QUICK, "-e", "cluster_stop_days=400")
    assert code == 0, shown
    assert "kube-apiserver-to-kubelet-signer: It expires on " in shown
    assert those_on(lab) == set()
    asked = [reset for reset in resets(lab)[before:] if reset.startswith("GracefulShutdown")]
    assert (asked[0], len(asked)) == ("GracefulShutdown lab-worker-0", 4)

    log = tmp_path / "audit"
    log.write_text(lab.host.run(["cat", AUDIT]).stdout)
    patched = [entry.kind for entry in audit.read(log.read_text()) if entry.verb == "patch" and entry.code == 200]
    assert patched == ["nodes"] * 4 + ["baremetalhosts.metal3.io"] * 4
    [backup] = lab.host.run(["ls", BACKUPS]).stdout.split()
    modes = lab.host.run(["stat", "--format=%a", BACKUPS, f"{BACKUPS}/{backup}"]).stdout.split()
    assert modes == ["700", "600"]
    assert "snapshot_" in lab.host.run(["tar", "-tf", f"{BACKUPS}/{backup}"]).stdout

    code, shown = play(lab, "start")
    assert code == 0, shown
    assert those_on(lab) == ALL
    assert "uncordon control-plane-0, control-plane-1, control-plane-2, worker-0" in shown
    assert left_by_a_stop(lab) == []


def test_a_stop_is_foreseen_and_refused_without_the_api(lab: InstallLab) -> None:
    """Why else a stop or a start is refused or stalls is in tests/integration/cluster/test_power.py."""
    code, shown = play(lab, "stop", "--check")
    assert code == 0, shown
    for step in ("back up etcd", "drain worker-0", "shut down worker-0"):
        assert step in shown
    assert those_on(lab) == ALL

    lab.scenario(audit=AUDIT, api={"refuse": True})
    code, shown = play(lab, "stop", *QUICK)
    lab.scenario(audit=AUDIT)
    assert code != 0
    assert "Nothing was stopped. Without the API" in shown
    assert those_on(lab) == ALL


def test_a_start_that_stalls_says_why_and_goes_on(lab: InstallLab) -> None:
    """Also with a stop in between, although the API does not answer. What is done already is not done again."""
    code, shown = play(lab, "stop", *QUICK)
    assert code == 0, shown
    code, shown = play(lab, "stop", *QUICK)
    assert (code, "changed=0" in shown, "nothing: the nodes were stopped" in shown) == (0, True, True)

    lab.scenario(audit=AUDIT, api={"refuse": True})
    code, shown = play(lab, "start", "-e", "cluster_start_api_seconds=2")
    assert code != 0
    assert "The API does not answer 0 min after the control plane was switched on" in shown
    assert "Run this again to go on." in shown
    assert those_on(lab) == {name for name in ALL if "control-plane" in name}

    code, shown = play(lab, "stop", *QUICK)
    assert code == 0, shown
    assert "Continuing a stop that was interrupted" in shown
    assert those_on(lab) == set()
    noted = json.loads(lab.host.run(["cat", "/var/lib/nometal/labs/lab/stopped.json"]).stdout)
    assert {*noted["vms"]} == ALL

    lab.scenario(audit=AUDIT)
    code, shown = play(lab, "start")
    assert code == 0, shown
    assert those_on(lab) == ALL
    assert left_by_a_stop(lab) == []
    code, shown = play(lab, "start")
    assert (code, "changed=0" in shown, "nothing: the nodes were started" in shown) == (0, True, True)


def left_by_a_stop(lab: InstallLab) -> list[str]:
    """Nodes that are cordoned, and hosts that are paused."""
    ask = f"KUBECONFIG={KUBECONFIG} $(find /var/cache/nometal/tools -name oc -type f)"
    found = lab.host.run(f"{ask} get nodes,baremetalhosts.metal3.io --all-namespaces --output=json").stdout
    return [
        item["metadata"]["name"]
        for item in json.loads(found)["items"]
        if item["spec"].get("unschedulable") or PAUSED in item["metadata"].get("annotations", {})
    ]
