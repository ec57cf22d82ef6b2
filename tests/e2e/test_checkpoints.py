"""A lab of four nodes goes back to its checkpoint, by playbooks, and its other stages find nothing to change."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from support import checkout, guest, interruption, made_lab, snapshot
from support.checkout import ROOT, run_playbook
from support.failures import ending
from support.modules import run_in
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.lab_host import LabHost

NODES = [*(f"rehearsal-control-plane-{number}" for number in range(3)), "rehearsal-worker-0"]
COUNT = "i=0; while :; do i=$((i+1)); printf '%08d' $i | dd of=/dev/vda conv=notrunc,fsync; done"
SMALL = {"vcpus": 1, "memory": "512MiB", "disks": [{"size": "1GiB", "bus": "virtio"}]}  # which guests have a driver for
SPEC: dict[str, Any] = {
    "firmware": "bios",
    "nodes": {"control_plane": {"count": 3, **SMALL}, "workers": {"count": 1, **SMALL}},
}
TIMES = (
    "files /var/lib/nometal/labs/rehearsal/checkpoints/*",
    "files /var/lib/libvirt/images/nometal-rehearsal/*.qcow2",
)
"""Files that say when a checkpoint was taken."""
BMCS = "/var/lib/nometal/bmc/rehearsal"
SPEAKS = f"""
import base64, json, ssl, sys, urllib.request
url, account = sys.argv[1:3]
login = json.load(open("{BMCS}/credentials.json"))[account]
secret = base64.b64encode(f"{{login['username']}}:{{login['password']}}".encode()).decode()
context = ssl.create_default_context(cafile="{BMCS}/tls/ca.pem")
def ask(body=None):
    headers, method = {{"Authorization": f"Basic {{secret}}"}}, "PATCH" if body else "GET"
    request = urllib.request.Request(url, body, headers, method=method)
    return urllib.request.urlopen(request, context=context, timeout=60)
"""
SAYS = f"{SPEAKS}\nprint(ask(sys.argv[3].encode()).status)"
ASKS = f"{SPEAKS}\ntold = json.load(ask())\nprint(json.dumps({{'led': told['IndicatorLED'], 'boot': told['Boot']}}))"
NAMED = ("-e", "checkpoint_name=x")


@pytest.fixture
def host() -> Iterator[LabHost]:
    with made_lab.start(**SPEC) as started:
        yield started


def play(playbook: str, inventory: Path, *arguments: str, changed: bool) -> str:
    run = run_playbook(playbook, inventory, *arguments)
    assert run.returncode == 0, ending(run.stdout)
    assert re.search(rf"^hypervisor .* changed={'[1-9]' if changed else '0'}", run.stdout, re.MULTILINE), ending(
        run.stdout
    )
    return run.stdout


def refused(playbook: str, inventory: Path, *arguments: str) -> str:
    run = run_playbook(playbook, inventory, *arguments)
    assert run.returncode != 0
    return " ".join(run.stdout.split())


def count(host: LabHost) -> dict[str, guest.Guest]:
    """Guests of all nodes, which count on their disks."""
    for node in NODES:
        guest.equip(host, node)
    guests = switch_on(host)
    for each in guests.values():
        each.run(f"({COUNT}) >/dev/null 2>&1 &")
    for each in guests.values():
        counts_on(each, 0)
    return guests


def switch_on(host: LabHost) -> dict[str, guest.Guest]:
    host.run("".join(f"virsh domstate {node} | grep -q running || virsh start {node}\n" for node in NODES))
    return {node: guest.of_vm(host, node) for node in NODES}


def counter(asked: guest.Guest) -> int:
    return int(asked.run("dd if=/dev/vda bs=8 count=1 2>/dev/null").stdout.strip("\0") or 0)


def counts_on(asked: guest.Guest, before: int) -> None:
    wait_until("it counts on", lambda: counter(asked) > before)


def test_four_nodes_are_kept_while_they_run_and_restored(host: LabHost, tmp_path: Path) -> None:
    inventory = checkout.inventory(host, tmp_path, **SPEC)
    guests = count(host)
    assert "are switched on" in refused("checkpoint", inventory, *NAMED)
    before = {node: counter(each) for node, each in guests.items()}
    play("checkpoint", inventory, *NAMED, "-e", "checkpoint_running=true", changed=True)
    after = {node: counter(each) for node, each in guests.items()}
    for node, each in guests.items():
        counts_on(each, after[node])
    assert "x: " in play("checkpoints", inventory, changed=False)

    play("restore", inventory, *NAMED, "-e", "checkpoint_stop=true", changed=True)
    found = {node: counter(guest.of_vm(host, node)) for node in NODES}
    assert all(before[node] <= found[node] <= after[node] for node in NODES)
    play("nodes bmc", inventory, changed=False)

    play("teardown", inventory, changed=True)
    assert snapshot.take(host).diff(made_lab.before()) == ""


@pytest.mark.full
def test_a_checkpoint_is_taken_once_and_restored_twice(host: LabHost, tmp_path: Path) -> None:
    inventory = checkout.inventory(host, tmp_path, **SPEC)
    count(host)
    play("checkpoint", inventory, *NAMED, "-e", "checkpoint_running=true", changed=True)
    assert "was taken" in play("checkpoint", inventory, *NAMED, changed=False)
    assert "there is none of this name (there is: x)" in refused("restore", inventory, "-e", "checkpoint_name=y")
    found = []
    for _twice in range(2):
        play("restore", inventory, *NAMED, "-e", "checkpoint_stop=true", changed=True)
        found.append({node: counter(guest.of_vm(host, node)) for node in NODES})
        play("nodes bmc", inventory, changed=False)
    assert found[0] == found[1]


def say(host: LabHost, **wishes: Any) -> None:
    """To the BMC of the first node."""
    [bmc, *_others] = run_in(host, "bmc_info", {"lab": "rehearsal"})["nodes"]
    assert host.run(["python3", "-c", SAYS, bmc["address"], bmc["name"], json.dumps(wishes)]).stdout in (
        "200\n",
        "204\n",
    )


def seen(host: LabHost) -> dict[str, Any]:
    """What the BMC of the first node says."""
    [bmc, *_others] = run_in(host, "bmc_info", {"lab": "rehearsal"})["nodes"]
    return dict(json.loads(host.run(["python3", "-c", ASKS, bmc["address"], bmc["name"]]).stdout))


@pytest.mark.full
def test_what_bmcs_keep_is_restored_while_they_run(host: LabHost, tmp_path: Path) -> None:
    inventory = checkout.inventory(host, tmp_path, **SPEC)
    say(host, IndicatorLED="Lit", Boot={"BootSourceOverrideTarget": "Hdd", "BootSourceOverrideEnabled": "Continuous"})
    then = seen(host)
    play("checkpoint", inventory, *NAMED, changed=True)
    say(host, IndicatorLED="Off", Boot={"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"})
    assert seen(host) != then
    play("restore", inventory, *NAMED, changed=True)
    assert seen(host) == then
    play("nodes bmc", inventory, changed=False)


@pytest.mark.parametrize("playbook", ["checkpoint", pytest.param("restore", marks=pytest.mark.full)])
def test_an_interrupted_playbook_is_completed_by_the_next_one(playbook: str, tmp_path: Path) -> None:
    def make_host() -> LabHost:
        host = made_lab.start(**SPEC)
        if playbook == "restore":
            play("checkpoint", checkout.inventory(host, tmp_path, **SPEC), *NAMED, changed=True)
        return host

    def command(host: LabHost) -> list[str]:
        return checkout.command(playbook, checkout.inventory(host, tmp_path, **SPEC), *NAMED)

    interrupted = interruption.Playbook(command, directory=ROOT)
    points = interruption.changing_tasks
    assert interruption.interrupt_everywhere(interrupted, make_host, points=points, during=True, without=TIMES) == ""
