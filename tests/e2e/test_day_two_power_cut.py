"""The host loses its power while a worker joins the cluster: the next run goes on from what the cluster says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from support import checkout, installed_lab, interruption
from support.failures import ending
from support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from support.install_lab import InstallLab
    from support.lab_host import LabHost

CONTROL_PLANE = {"count": 3}
NODES = {"control_plane": CONTROL_PLANE, "workers": {"count": 2}}
API = "--namespace=openshift-machine-api"
NEW = "worker-2"


def of_cluster(host: LabHost, kind: str) -> dict[str, Any]:
    found = json.loads(installed_lab.ask(host, "get", kind, API, "--output=json"))
    return {item["metadata"]["name"]: item for item in found["items"]}


def states(host: LabHost) -> dict[str, str]:
    """Of hosts, as metal3 has them."""
    found = of_cluster(host, "baremetalhosts.metal3.io").items()
    return {name: item.get("status", {}).get("provisioning", {}).get("state", "") for name, item in found}


def ready(host: LabHost) -> set[str]:
    return {
        name
        for name, item in of_cluster(host, "nodes").items()
        if any((each["type"], each["status"]) == ("Ready", "True") for each in item["status"]["conditions"])
    }


def kill_while_it_joins(lab: InstallLab, product: Path) -> None:
    running = subprocess.Popen(
        lab.command(playbooks="grow"),
        cwd=product,
        env={**os.environ, **checkout.environment(product)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_until("the worker joins", lambda: NEW in states(lab.host), 3 * PATIENCE, every=0.5)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    interruption.end_sessions(lab.host)


@pytest.mark.long
def test_a_worker_joins_although_the_host_loses_its_power_meanwhile(tmp_path: Path) -> None:
    with installed_lab.start(tmp_path / "lab", nodes=NODES) as lab:
        lab.has_nodes(control_plane=CONTROL_PLANE, workers={"count": 3})
        made = lab.follow(playbooks="network nodes bmc")
        assert made.returncode == 0, ending(made.stdout)
        kill_while_it_joins(lab, tmp_path / "lab" / "product")
        assert NEW not in ready(lab.host)

        lab.host.kill()
        wait_until("the API answers", lambda: installed_lab.answers(lab.host))
        gone_on = lab.follow(playbooks="grow")
        assert gone_on.returncode == 0, ending(gone_on.stdout)
        assert {*states(lab.host).values()} == {"provisioned"}
        assert ready(lab.host) == {*states(lab.host)} >= {NEW}
