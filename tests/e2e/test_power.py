"""Stopping and starting the nodes of a lab that has no cluster: order, force, killed runs, and what stays as it was."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from support import checkout, made_lab, power_guests
from support.failures import ending
from support.modules import run_in
from support.waiting import wait_until

from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.lab_host import LabHost

LAB = "rehearsal"
DISKS = f"/var/lib/libvirt/images/nometal-{LAB}"
SIZE = {"vcpus": 1, "memory": "128MiB", "disks": [{"size": "64MiB"}]}
SPEC: dict[str, Any] = {"firmware": "bios", "nodes": {"control_plane": SIZE, "workers": {**SIZE, "count": 2}}}
NAMES = {"name": LAB, "base_domain": "lab.example.test", "machine_network": {"cidr": "192.168.126.0/24"}}
MODEL = lab_model({**NAMES, **SPEC}, ["hypervisor"])
RESETS = re.compile(r"Systems/(\S+)/Actions/ComputerSystem.Reset.*ResetType=(\w+)")
RECORD = f"/var/lib/nometal/labs/{LAB}/stopped.json"
"""Which VMs a stop has switched off."""


@pytest.fixture(scope="module")
def host() -> Iterator[LabHost]:
    """Only worker-1 does not hear its power button."""
    with made_lab.start(**SPEC) as made:
        for node in MODEL["nodes"]:
            name = node["name"]
            sector = (power_guests.deaf if name == "worker-1" else power_guests.hearing)(f"{name} is up")
            power_guests.put(made, f"{DISKS}/{node['disks'][0]['name']}", sector)
        yield made


@pytest.fixture(scope="module")
def inventory(host: LabHost, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkout.inventory(host, tmp_path_factory.mktemp("inventory"), **SPEC)


def switch_on(host: LabHost, *names: str) -> None:
    """As whoever uses the lab would, and until its systems are up."""
    for name in names:
        log = f"/var/log/libvirt/qemu/{LAB}-{name}-console.log"
        host.run(["sh", "-c", f"rm -f {log}; virsh start {LAB}-{name}"])
        wait_until(f"{name} is up", partial(_says_that_it_is_up, host, log))


def _says_that_it_is_up(host: LabHost, log: str) -> bool:
    return "is up" in host.run(["cat", log], check=False).stdout


def those_on(host: LabHost) -> set[str]:
    names = host.run("virsh list --name").stdout.split()
    return {name[len(LAB) + 1 :] for name in names}


def resets(host: LabHost) -> list[str]:
    """What the BMCs were asked for so far, by what they log."""
    names = {node["uuid"]: node["name"] for node in MODEL["nodes"]}
    log = host.run(f"journalctl --unit nometal-bmc-{LAB} --output cat").stdout
    return [f"{kind} {names[uuid]}" for uuid, kind in RESETS.findall(log)]


def play(playbook: str, inventory: Path, *arguments: str) -> tuple[int, str]:
    run = checkout.run_playbook(playbook, inventory, *arguments)
    assert run.returncode == 0, ending(run.stdout)
    found = re.search(r"^hypervisor .* changed=(\d+)", run.stdout, re.MULTILINE)
    assert found
    return int(found[1]), " ".join(run.stdout.split())


def power(host: LabHost, state: str, **arguments: Any) -> dict[str, Any]:
    """The module alone."""
    return run_in(host, "cluster_power", {"lab": LAB, "nodes": MODEL["nodes"], "state": state, **arguments})


def test_stop_and_start_by_their_playbooks(host: LabHost, inventory: Path) -> None:
    on = ["control-plane-0", "control-plane-1", "worker-0", "worker-1"]
    switch_on(host, *on)

    _changed, shown = play("stop", inventory, "-e", "cluster_stop_shutdown_seconds=2")
    assert those_on(host) == set()
    assert "did not shut down in 2 s, and is switched off by force" in shown
    before = len(resets(host))
    asked = [reset for reset in resets(host) if not reset.endswith("control-plane-2")]  # it is off, and to stay so
    assert {*asked[:2]} == {"GracefulShutdown worker-0", "GracefulShutdown worker-1"}
    assert asked[2] == "ForceOff worker-1"
    assert {*asked[3:]} == {"GracefulShutdown control-plane-0", "GracefulShutdown control-plane-1"}
    assert host.run(["stat", "--format=%a", RECORD]).stdout.strip() == "600"
    again = power(host, "stopped")
    assert (again["changed"], again["switched"]) == (False, [])

    host.reboot()
    made_lab.wait_until_up(host)
    play("start", inventory)
    assert those_on(host) == {*on}
    started = [reset for reset in resets(host)[before:] if reset.startswith("On ")]
    assert {*started[:2]} == {"On control-plane-0", "On control-plane-1"}
    assert {*started[2:]} == {"On worker-0", "On worker-1"}
    again = power(host, "started")
    assert (again["changed"], again["switched"]) == (False, [])
    assert those_on(host) == {*on}


@pytest.mark.full
def test_playbooks_say_what_is_to_be_stopped_and_that_nothing_is_to_be_started(host: LabHost, inventory: Path) -> None:
    power(host, "stopped", shutdown_seconds=1)
    host.run(["rm", "-f", RECORD])
    switch_on(host, "worker-0", "worker-1")
    _changed, shown = play("stop", inventory, "--check")
    assert "shut down worker-0, worker-1" in shown
    assert those_on(host) == {"worker-0", "worker-1"}
    changed, shown = play("start", inventory)
    assert (changed, "No node of the lab was switched off by a stop" in shown) == (0, True)


def test_a_stop_that_was_killed_is_gone_on_with(host: LabHost) -> None:
    """It waits for a system that does not hear, and the control plane has not been asked yet."""
    power(host, "stopped", shutdown_seconds=1)
    host.run(["rm", RECORD])
    switch_on(host, "control-plane-2", "worker-1")
    before = len(resets(host))
    with ThreadPoolExecutor(1) as beside:
        stopping = beside.submit(power, host, "stopped", shutdown_seconds=3600)
        wait_until("worker-1 is asked", lambda: "GracefulShutdown worker-1" in resets(host)[before:])
        host.run("pkill -KILL -f [m]odule_runner")
        assert stopping.exception()
    assert those_on(host) == {"control-plane-2", "worker-1"}

    stopped = power(host, "stopped", shutdown_seconds=1)
    assert (stopped["switched"], stopped["forced"]) == (["control-plane-2", "worker-1"], ["worker-1"])
    host.run(["virsh", "start", f"{LAB}-control-plane-2"])
    assert power(host, "started")["switched"] == ["worker-1"]
    assert power(host, "stopped", shutdown_seconds=1)["changed"]
