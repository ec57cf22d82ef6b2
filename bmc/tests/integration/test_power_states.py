"""Power where a VM is neither on nor off: saved, paused, or without anybody who would hear of a restart."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libvirt
import pytest
import sushy
from support.bmc_lab import MEDIA, UUIDS
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.bmc_lab import BmcLab, Vm


@pytest.fixture
def vm(machine: Vm, lab: BmcLab) -> Iterator[Vm]:
    """On, and off in the end."""
    machine.destroy()
    lab.patch(machine.path, {"Boot": {"BootSourceOverrideTarget": "None"}})
    assert lab.reset(machine, "On").status_code == 204
    yield machine
    machine.destroy()


def first_to_boot(xml: str) -> str:
    """The kind of the device that has the first place in the boot order."""
    [found] = [
        kind for kind, device in re.findall(r"(?s)<(disk|interface) (.*?)</\1>", xml) if "<boot order='1'/>" in device
    ]
    return str(found)


def test_a_vm_that_was_saved_boots_anew_with_what_was_set_since(lab: BmcLab, vm: Vm) -> None:
    vm.domain.managedSave()
    assert lab.get(vm.path)["PowerState"] == "Off"
    boot = {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Continuous"}
    assert lab.patch(vm.path, {"Boot": boot}).status_code == 204
    assert lab.reset(vm, "On").status_code == 204
    assert not vm.domain.hasManagedSaveImage()
    assert first_to_boot(vm.live_xml()) == "interface"
    shown = lab.get(vm.path)
    assert (shown["PowerState"], shown["Boot"]["BootSourceOverrideTarget"]) == ("On", "Pxe")


@pytest.mark.parametrize("kind", ["On", "ForceOn"])
def test_a_paused_vm_goes_on(lab: BmcLab, vm: Vm, kind: str) -> None:
    vm.domain.suspend()
    assert lab.get(vm.path)["PowerState"] == "Paused"
    assert lab.sushy().get_system(vm.path).power_state == sushy.PowerState.PAUSED
    number = vm.domain.ID()
    assert lab.reset(vm, kind).status_code == 204
    assert (lab.get(vm.path)["PowerState"], vm.domain.ID()) == ("On", number)
    assert vm.domain.state()[0] == libvirt.VIR_DOMAIN_RUNNING


@pytest.mark.parametrize("kind", ["GracefulShutdown", "GracefulRestart", "PushPowerButton", "Nmi"])
def test_a_paused_guest_hears_nothing_and_the_client_is_told(lab: BmcLab, vm: Vm, kind: str) -> None:
    vm.domain.suspend()
    answer = lab.reset(vm, kind)
    assert answer.status_code == 409
    assert f"VM {vm.name} is paused" in answer.json()["error"]["message"]
    assert lab.get(vm.path)["PowerState"] == "Paused"


@pytest.mark.parametrize(("kind", "state"), [("ForceRestart", "On"), ("PowerCycle", "On"), ("ForceOff", "Off")])
def test_force_does_not_ask_the_guest(lab: BmcLab, vm: Vm, kind: str, state: str) -> None:
    vm.domain.suspend()
    number = vm.domain.ID()
    assert lab.reset(vm, kind).status_code == 204
    assert lab.get(vm.path)["PowerState"] == state
    assert vm.domain.ID() != number


def test_a_graceful_restart_that_nobody_hears_becomes_a_reset(lab: BmcLab, vm: Vm) -> None:
    systems = [{"uuid": uuid, "name": f"node-{number}"} for number, uuid in enumerate(UUIDS)]
    lab.broker.configure(systems, MEDIA, restart_timeout=1)
    try:
        number = vm.domain.ID()
        assert lab.reset(vm, "GracefulRestart").status_code == 204
        wait_until("it was reset", lambda: vm.domain.ID() not in (-1, number), seen=lab.log)
        assert f"{vm.name} has not restarted when it was asked to, and is reset" in lab.broker.log.read_text()
    finally:
        lab.configure()
