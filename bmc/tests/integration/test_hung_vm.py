"""A VM whose QEMU has stopped, as in a debugger or on storage that hangs: calls about it do not end by themselves."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    import requests
    from support.bmc_lab import BmcLab, Vm

BOOT = {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Continuous"}}
AT_ONCE = 12
"""Calls about the VM that hangs."""


@pytest.fixture
def vms(lab: BmcLab, twenty: list[Vm]) -> Iterator[list[Vm]]:
    """Switched on at once by the service."""
    with ThreadPoolExecutor(len(twenty)) as clients:
        assert {answer.status_code for answer in clients.map(lambda vm: lab.reset(vm, "On"), twenty)} == {204}
    assert [vm.domain.isActive() for vm in twenty] == [1] * len(twenty)
    yield twenty
    for vm in twenty:
        vm.destroy()


def stop(vm: Vm) -> None:
    pid = vm.lab.libvirtd.path(f"/run/libvirt/qemu/{vm.name}.pid").read_text()
    vm.lab.libvirtd.run(["kill", "-STOP", pid])


def is_refused(answer: requests.Response) -> bool:
    return answer.status_code == 503 and bool(answer.headers["Retry-After"])


def test_it_is_answered_for_with_503_harms_no_other_and_can_be_switched_off(lab: BmcLab, vms: list[Vm]) -> None:
    hung, *others = vms
    stop(hung)
    with ThreadPoolExecutor(AT_ONCE) as clients:
        asking = [clients.submit(lab.patch, hung.path, BOOT) for _client in range(AT_ONCE - 2)]
        asking.append(clients.submit(lab.post, f"{hung.media}/Actions/VirtualMedia.EjectMedia"))
        asking.append(clients.submit(lab.reset, hung, "GracefulShutdown"))
        for vm in others:
            assert lab.get(vm.path)["PowerState"] == "On"
            assert lab.patch(vm.path, BOOT).status_code == 204
        assert len(lab.get("/redfish/v1/Systems")["Members"]) >= len(vms)
        answers = [ask.result() for ask in asking]
    assert [is_refused(answer) for answer in answers].count(True) >= AT_ONCE - 2, [each.status_code for each in answers]
    assert lab.get(hung.path)["PowerState"] == "On"
    assert is_refused(lab.patch(hung.path, BOOT))
    assert lab.reset(hung, "ForceOff").status_code == 204
    assert lab.get(hung.path)["PowerState"] == "Off"
    assert lab.patch(hung.path, BOOT).status_code == 204
    assert lab.reset(hung, "On").status_code == 204
    assert lab.get(hung.path)["PowerState"] == "On"


def test_many_of_them_harm_no_other_either(lab: BmcLab, vms: list[Vm]) -> None:
    hung, others = vms[:8], vms[8:]
    for vm in hung:
        stop(vm)
    with ThreadPoolExecutor(4 * len(hung)) as clients:
        asking = [clients.submit(lab.patch, vm.path, BOOT) for vm in hung for _client in range(4)]
        for vm in others:
            assert lab.get(vm.path)["PowerState"] == "On"
            assert lab.reset(vm, "ForceOff").status_code == 204
            assert lab.reset(vm, "On").status_code == 204
        assert all(is_refused(ask.result()) for ask in asking)
        off = [clients.submit(lab.reset, vm, "ForceOff") for vm in hung]
        for vm in others:
            assert lab.get(vm.path)["PowerState"] == "On"
        assert {each.result().status_code for each in off} == {204}


def test_a_force_restart_of_it_is_a_restart(lab: BmcLab, vms: list[Vm]) -> None:
    number = vms[0].domain.ID()
    stop(vms[0])
    assert lab.reset(vms[0], "ForceRestart").status_code == 204
    assert vms[0].domain.ID() != number
