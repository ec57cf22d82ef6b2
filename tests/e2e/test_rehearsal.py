"""The rehearsal on whole hosts: in all kinds of labs, on nodes that are in use, and killed at any moment."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from support import checkout, lab_host, made_lab, modules, processes, rehearsal_lab, snapshot, stranger
from support.checkout import run_playbook
from support.failures import ending
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.lab_host import LabHost
    from support.snapshot import Snapshot

MACHINES = {"cidr": "192.168.126.0/24"}
BOTH = {**MACHINES, "cidr_v6": "fd2e:6f44:5dd8::/64"}
PXE = {"mode": "managed", "cidr": "172.22.0.0/24"}
ONE, TWO = ("worker-0",), ("control-plane-0", "worker-0")
# `make lab` rehearses the shipped lab: UEFI, IPv4, a veth pair, an address of the pool.
KINDS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "secure boot, both families, direct, static": (
        {
            "firmware": "uefi-secure",
            "machine_network": {**BOTH, "topology": "direct"},
            "bootstrap": {"address": "static", "ip": "192.168.126.9"},
        },
        ONE,
    ),
    "BIOS, IPv6, reserved": (
        {
            "firmware": "bios",
            "machine_network": {"cidr_v6": "fd2e:6f44:5dd8::/64"},
            "bootstrap": {"address": "reserved", "ip": "fd2e:6f44:5dd8::9"},
        },
        ONE,
    ),
    "IPMI, BIOS, PXE": ({"firmware": "bios", "bmc": {"protocol": "ipmi"}, "provisioning_network": PXE}, ONE),
    "Redfish, UEFI, PXE, unmanaged, isolated": (
        {
            "bmc": {"protocol": "redfish"},
            "machine_network": {**MACHINES, "forward": "isolated"},
            "provisioning_network": {**PXE, "mode": "unmanaged"},
        },
        TWO,
    ),
}
# What differs there is in another kind, or in test_network_kinds.py.
OTHERWISE_TESTED = ("BIOS, IPv6, reserved", "Redfish, UEFI, PXE, unmanaged, isolated")
# What Ansible starts for an asynchronous task looks every five seconds whether that has ended.
RUNNING = "/run/nometal/rehearsal/rehearsal"
# The lab's own directories, and the route that the kernel gives a bridge when it first has carrier.
ASIDE = (
    *("files /var/lib/nometal*", "files /run/nometal*", "routes fe80::/64 dev baremetal*"),
    *snapshot.LOGS_OF_NODES,
)


@pytest.fixture
def host() -> Iterator[LabHost]:
    with lab_host.start(layer="prepared") as started:
        stranger.use_libvirt(started)
        yield started


@pytest.fixture
def host_of_lab() -> Iterator[LabHost]:
    with made_lab.start(firmware="bios") as started:
        yield started


@pytest.mark.long
@pytest.mark.parametrize(
    ("spec", "nodes"),
    [
        pytest.param(*kind, id=name, marks=[pytest.mark.full] if name in OTHERWISE_TESTED else [])
        for name, kind in KINDS.items()
    ],
)
def test_every_kind_of_lab_is_rehearsed(
    host: LabHost, tmp_path: Path, spec: dict[str, Any], nodes: tuple[str, ...]
) -> None:
    inventory = checkout.inventory(host, tmp_path, **spec)
    made = run_playbook(made_lab.STAGES, inventory)
    assert made.returncode == 0, ending(made.stdout)
    before = settled(host)
    result = rehearsal_lab.rehearse(inventory, nodes)
    assert rehearsal_lab.checks(result) == {}, result["table"]
    for node in nodes:
        assert (node, "address from its disk") in rehearsal_lab.checks(result, "ok")
    events = host.run("cat /var/lib/nometal/bmc/*/state/events/*-*.jsonl").stdout
    assert {"Reset On", "Reset ForceOff"} <= {json.loads(event)["text"] for event in events.splitlines()}
    assert rehearsal_lab.left_behind(host, inventory) == []
    wait_until_as_before(host, before)


def settled(host: LabHost) -> Snapshot:
    """With what libvirt notes and starts by itself as soon as a VM is switched on."""
    host.run("systemctl start virtlogd")
    host.run("for pool in $(virsh pool-list --name); do virsh pool-refresh $pool; done")
    return snapshot.take(host)


def wait_until_as_before(host: LabHost, before: Snapshot) -> None:
    """But for the note that a BMC makes of a VM when it first starts it; Ansible's jobs clear up later."""
    notes = "virsh metadata $vm urn:nometal:ipi:bmc --remove --config"
    host.run(f"for vm in $(virsh list --all --name); do {notes}; done", check=False)

    def changes() -> str:
        return snapshot.take(host).diff(before, without=ASIDE)

    wait_until("the host is as before", lambda: not changes(), seen=changes, every=1)


def test_what_is_in_use_is_not_touched(host_of_lab: LabHost, tmp_path: Path) -> None:
    host = host_of_lab
    inventory = checkout.inventory(host, tmp_path, rehearsed=True, firmware="bios")
    disk = "/var/lib/libvirt/images/nometal-rehearsal/rehearsal-worker-0-0.qcow2"
    host.run("virsh start rehearsal-control-plane-0")
    host.run(["qemu-io", "-c", "write -P 7 1M 64k", disk])
    before = settled(host)

    refused = run_playbook("rehearse", inventory)
    assert refused.returncode != 0
    assert "control-plane-0 is switched on; worker-0 carries an installed system" in refused.stdout
    assert "control-plane-1" not in ending(refused.stdout).partition("nothing was touched")[2]
    passed = run_playbook("site", inventory)
    assert passed.returncode == 0, ending(passed.stdout)
    assert "Not rehearsed, for nodes are in use: control-plane-0 is switched on" in passed.stdout
    assert re.search(r"^hypervisor .* changed=0 ", passed.stdout, re.MULTILINE)

    assert host.run("virsh domstate rehearsal-control-plane-0").stdout.strip() == "running"
    assert "Pattern verification failed" not in host.run(["qemu-io", "-r", "-c", "read -P 7 1M 64k", disk]).stdout
    wait_until_as_before(host, before)


def test_faults_that_bmcs_have_on_purpose_are_found_and_named(host_of_lab: LabHost, tmp_path: Path) -> None:
    inventory = checkout.inventory(host_of_lab, tmp_path, rehearsed=True, firmware="bios")
    busy = {"fault": "status", "status": 503, "path": "*.InsertMedia", "nodes": ["rehearsal-worker-0"]}
    assert modules.run_on(inventory, "bmc_faults", {"lab": "rehearsal", "rules": [busy]})["changed"]
    result = rehearsal_lab.rehearse(inventory, ["worker-0"])
    assert ("worker-0", "power and media") in rehearsal_lab.checks(result), result["table"]
    assert result["table"][-1] == "- status 503 (*.InsertMedia, only rehearsal-worker-0)"
    assert rehearsal_lab.left_behind(host_of_lab, inventory) == []


@pytest.mark.parametrize(
    ("who", "state"),
    [
        ("bootstrap", "boots"),
        pytest.param("worker-0", "boots from its medium", marks=pytest.mark.full),
        pytest.param("worker-0", "boots from its disk", marks=pytest.mark.full),
    ],
)
def test_killed_it_can_be_cleared_away(host_of_lab: LabHost, tmp_path: Path, who: str, state: str) -> None:
    host = host_of_lab
    inventory = checkout.inventory(host, tmp_path, rehearsed=True, firmware="bios")
    before = settled(host)
    kill_when(host, inventory, who, state)
    assert modules.run_on(inventory, "rehearsal", {"lab": "rehearsal", "state": "absent"})["changed"]
    assert rehearsal_lab.left_behind(host, inventory) == []
    wait_until_as_before(host, before)


@pytest.mark.full
def test_killed_the_next_one_is_well(host_of_lab: LabHost, tmp_path: Path) -> None:
    host = host_of_lab
    inventory = checkout.inventory(host, tmp_path, rehearsed=True, firmware="bios")
    before = settled(host)
    kill_when(host, inventory, "worker-0", "boots from its disk")
    assert "rehearsal-worker-0" in host.run("virsh list --name").stdout

    done = run_playbook("rehearse", inventory)
    assert done.returncode == 0, ending(done.stdout)
    assert re.search(r"^hypervisor .* changed=0 ", done.stdout, re.MULTILINE)
    assert re.search(r"^\[ +\d+\.\d s\] worker-0 +has come up from its disk$", done.stdout, re.MULTILINE)
    report = json.loads(host.read("/var/lib/nometal/labs/rehearsal/rehearsal.json"))
    assert report["ok"]
    assert host.read("/var/lib/nometal/labs/rehearsal/rehearsal.html").startswith("<!DOCTYPE html>")
    assert rehearsal_lab.left_behind(host, inventory) == []
    wait_until_as_before(host, before)


def kill_when(host: LabHost, inventory: Path, who: str, state: str) -> None:
    """SIGKILL to the controller and to what it has left running on the host."""
    controller = subprocess.Popen(
        checkout.command("rehearse", inventory), cwd=checkout.ROOT, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    )
    wanted = f'"who": "{who}", "state": "{state}"'
    events = ["cat", f"{RUNNING}/events.jsonl"]
    wait_until(f"{who} {state}", lambda: wanted in host.run(events, check=False).stdout)
    for process in (*processes.descendants(controller.pid), controller.pid):
        os.kill(process, signal.SIGKILL)
    controller.wait()
    host.run(f"pkill -KILL -f '[a]nsible'; rm {RUNNING}/events.jsonl", check=False)
