"""VMs of a lab after a reboot and a power cut of their host, which its BMCs switch on again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support import checkout, made_lab
from support.checkout import run_playbook
from support.failures import ending
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.lab_host import LabHost

STATE = "/var/lib/nometal/bmc/rehearsal/broker/state/power.json"
# What libvirt does itself: it saves guests when the host shuts down, and brings none of them back.
LIBVIRT_GUESTS = "ON_SHUTDOWN=suspend\nON_BOOT=ignore\n"
ALL = ("virsh", "list", "--all", "--name")


@pytest.fixture
def host() -> Iterator[LabHost]:
    """With the lab rehearsal."""
    with made_lab.start() as started:
        yield started


def running(host: LabHost) -> set[str]:
    return set(host.run("virsh list --name --state-running").stdout.split())


def nothing_is_left(host: LabHost) -> bool:
    return json.loads(host.read(STATE))["restoring"] == []


def kept_on(host: LabHost) -> int:
    return len(json.loads(host.read(STATE))["on"])


def log(host: LabHost) -> str:
    return host.run("journalctl --no-pager --unit nometal-broker-rehearsal").stdout


@pytest.mark.long
def test_nodes_that_were_on_are_on_again(host: LabHost, tmp_path: Path) -> None:
    inventory = checkout.inventory(host, tmp_path, bmc={"power_restore": "LastState"})
    done = run_playbook("bmc", inventory)
    assert done.returncode == 0, ending(done.stdout)

    on, paused, saved, *off = host.run(ALL).stdout.split()
    assert off
    for vm in (on, paused, saved):
        host.run(["virsh", "start", vm])
    host.run(["virsh", "suspend", paused])
    host.run(["virsh", "managedsave", saved])
    wait_until("the broker knows", lambda: kept_on(host) == 2, seen=lambda: log(host))

    host.write("/etc/default/libvirt-guests", LIBVIRT_GUESTS)
    host.run("systemctl enable --now libvirt-guests")
    host.reboot()
    wait_until("they are on", lambda: running(host) == {on, paused} and nothing_is_left(host), seen=lambda: log(host))

    host.run(["virsh", "destroy", paused])
    wait_until("the broker knows", lambda: kept_on(host) == 1, seen=lambda: log(host))
    host.kill()
    wait_until("it is on", lambda: running(host) == {on} and nothing_is_left(host), seen=lambda: log(host))
    assert f"{on} is switched on after the host's start: LastState" in log(host)

    again = run_playbook("site", inventory)
    assert again.returncode == 0, ending(again.stdout)
    assert "changed=0" in again.stdout.split("PLAY RECAP")[1]
    assert running(host) == {on}
