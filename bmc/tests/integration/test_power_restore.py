"""What becomes of VMs when their host starts again: the broker's file, as a power cut leaves it."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
import requests
from support import processes
from support.bmc_lab import BROKER, MEDIA, PASSWORD, USER, UUIDS, account
from support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.bmc_lab import BmcLab, Vm

SYSTEMS = [{"uuid": uuid, "name": f"node-{number}"} for number, uuid in enumerate(UUIDS)]
OWN = "password-of-a-node"


@pytest.fixture(scope="module")
def vms(running_lab: BmcLab) -> list[Vm]:
    return [running_lab.vm(firmware="bios", memory=32) for _number in range(5)]


@pytest.fixture
def restoring(lab: BmcLab, vms: list[Vm]) -> Iterator[BmcLab]:
    """A lab whose VMs have their last state after a start of the host; they are off."""
    lab.broker.configure(SYSTEMS, MEDIA, power_restore="LastState")
    yield lab
    lab.configure()
    for vm in vms:
        vm.destroy()


def kept(lab: BmcLab) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lab.libvirtd.path(f"{BROKER}/power.json").read_text())
    return found


def is_kept_on(vm: Vm) -> bool:
    return vm.uuid in kept(vm.lab)["on"]


def power_cut(lab: BmcLab) -> None:
    """All that runs ends at once; then the host starts again."""
    lab.broker.stop(signal.SIGKILL)
    lab.libvirtd.kill()
    guests = [pid for pid in processes.descendants(lab.libvirtd.sandbox.init) if is_guest(pid)]
    for pid in guests:
        os.kill(pid, signal.SIGKILL)
    wait_until("the guests have ended", lambda: not any(map(is_guest, guests)))
    lab.broker.boot += 1
    lab.libvirtd.boot()
    lab.connect()
    lab.broker.start()


def is_guest(pid: int) -> bool:
    return processes.status(pid).get("Name", "").startswith("qemu")


def states(lab: BmcLab, vms: list[Vm]) -> list[str]:
    return [lab.get(vm.path)["PowerState"] for vm in vms]


def wait_until_they_are(lab: BmcLab, vms: list[Vm], wanted: list[str]) -> None:
    """When nothing is left to be switched on."""
    done = {"boot": str(lab.broker.boot), "restoring": []}
    wait_until("nothing is left", lambda: done.items() <= kept(lab).items(), seen=lab.broker.log.read_text)
    assert states(lab, vms) == wanted


def test_those_that_were_on_are_on_again_whoever_has_switched_them(restoring: BmcLab, vms: list[Vm]) -> None:
    by_bmc, paused, saved, by_others, off_by_others = vms
    for vm in (by_bmc, paused, saved, off_by_others):
        assert restoring.reset(vm, "On").status_code == 204
        assert is_kept_on(vm)
    paused.domain.suspend()
    saved.domain.managedSave()
    off_by_others.domain.destroy()
    by_others.domain.create()
    wait_until("others' doing is kept", lambda: list(map(is_kept_on, vms)) == [True, True, False, True, False])
    power_cut(restoring)
    wait_until_they_are(restoring, vms, ["On", "On", "Off", "On", "Off"])
    assert f"{by_bmc.name} is switched on after the host's start: LastState" in restoring.broker.log.read_text()

    assert restoring.reset(by_bmc, "ForceOff").status_code == 204  # just before the next power cut
    power_cut(restoring)
    wait_until_they_are(restoring, vms, ["Off", "On", "Off", "On", "Off"])


def test_a_restart_of_the_broker_or_of_libvirt_switches_nothing(restoring: BmcLab, vms: list[Vm]) -> None:
    on, off = vms[:2]
    assert restoring.reset(on, "On").status_code == 204
    restoring.broker.stop(signal.SIGKILL)
    on.domain.destroy()
    off.domain.create()
    restoring.broker.start()
    wait_until("it sees how things are", lambda: [is_kept_on(on), is_kept_on(off)] == [False, True])
    restoring.libvirtd.restart()
    restoring.connect()
    assert states(restoring, [on, off]) == ["Off", "On"]


def test_clients_read_and_set_the_policy_of_their_vm(lab: BmcLab, vms: list[Vm]) -> None:
    own, other = vms[:2]
    lab.configure(accounts=[account(USER, PASSWORD), account(own.name, OWN, [own.uuid])])
    try:

        def set_by_own_account(vm: Vm, policy: str) -> int:
            body, login = {"PowerRestorePolicy": policy}, (own.name, OWN)
            url = f"{lab.url}{vm.path}"
            return requests.patch(url, json=body, auth=login, timeout=PATIENCE).status_code

        wait_until("the account is known", lambda: set_by_own_account(own, "AlwaysOn") == 204)
        assert set_by_own_account(other, "AlwaysOn") == 404
        assert policies(lab, own, other) == ["AlwaysOn", "AlwaysOff"]
        lab.broker.stop(signal.SIGKILL)
        lab.broker.start()
        assert policies(lab, own, other) == ["AlwaysOn", "AlwaysOff"]
        power_cut(lab)
        wait_until_they_are(lab, [own, other], ["On", "Off"])
        log = f"{own.path}/LogServices/EventLog/Entries"
        restored = "Switched on after the host's start, by the power restore policy"
        wait_until("the event log has it", lambda: restored in lab.request("GET", log).text)
        assert f"Power restore policy changed: AlwaysOn by {own.name}" in lab.request("GET", log).text
        lab.broker.configure(SYSTEMS, MEDIA, power_restore="LastState")
        wait_until("lab_spec counts", lambda: policies(lab, own, other) == ["LastState", "LastState"])
    finally:
        lab.configure()
        own.destroy()


def policies(lab: BmcLab, *vms: Vm) -> list[str]:
    return [lab.get(vm.path)["PowerRestorePolicy"] for vm in vms]
