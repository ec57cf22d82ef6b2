"""The installer's running under systemd: what outlives the connection, the runner, a shutdown and a power cut."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support import checkout, lab_host
from support.modules import run_in, run_on
from support.small_installer import API, INSTALLER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.lab_host import LabHost

UNIT = "nometal-install-ha.service"
TOOLS, PLACE = "/var/cache/nometal/tools", "/var/lib/nometal/install/ha"
SECRET = "pAsSw0rdOfEverything"  # noqa: S105 - what must appear nowhere
LOGIN = {"username": "ha-master-0", "password": SECRET}
PARAMS = {
    "lab": "ha",
    "tools": TOOLS,
    "config": {
        "metadata": {"name": "ha"},
        "platform": {"baremetal": {"hosts": [{"name": "master-0", "bmc": {"address": "redfish://192.0.2.1/1"}}]}},
    },
    "pull_secret": json.dumps({"auths": {"registry.example.test": {"auth": SECRET}}}),
    "environment": {"HTTPS_PROXY": f"http://u:{SECRET}@proxy.example.test"},
}


@pytest.fixture
def host() -> Iterator[LabHost]:
    with lab_host.start(layer="prepared") as started:
        started.run(f"mkdir -p {TOOLS} /var/lib/nometal/bmc/ha")
        started.write(f"{TOOLS}/openshift-install", INSTALLER)
        started.run(f"chmod 755 {TOOLS}/openshift-install; systemctl start libvirtd")
        started.write(f"{TOOLS}/scenario.json", json.dumps({"create cluster": {"log": API, "waits": True}}))
        started.write("/var/lib/nometal/bmc/ha/credentials.json", json.dumps({"ha-master-0": LOGIN}))
        yield started


def noted(host: LabHost) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(host.run(f"cat {PLACE}/run.json").stdout)
    return found


def test_it_outlives_all_but_the_host(host: LabHost, tmp_path: Path) -> None:
    def call(**more: Any) -> dict[str, Any]:
        return run_in(host, "cluster_install", {**PARAMS, **more})

    # By a connection, which it outlives.
    assert run_on(checkout.inventory(host, tmp_path), "cluster_install", PARAMS)["decision"] == "fresh"
    assert host.run(f"systemctl is-active {UNIT}").stdout.strip() == "active"
    assert SECRET not in host.run(f"systemctl show {UNIT}; systemctl cat {UNIT}; journalctl --no-pager").stdout

    host.run(f"systemctl kill --kill-who=main --signal=KILL {UNIT}")
    assert "what had started it was killed" in call()["why"]
    again = call(restart=True)
    assert (again["decision"], again["changed"]) == ("attach", False)
    removed = run_in(host, "cluster_removal", {"lab": "ha"})
    assert removed["steps"][0] == "stop installer"
    assert call()["decision"] == "fresh"

    host.reboot()
    assert noted(host)["exit_code"] == 8
    refused = call()
    assert refused["failed"]
    assert "it was asked to end" in refused["why"]

    assert call(restart=True)["decision"] == "fresh"
    host.kill()
    refused = call()
    assert "The host was started anew while the installer ran." in refused["why"]
    assert refused["decision"] == "must_restart"
