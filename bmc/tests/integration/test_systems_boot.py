"""The boot override and what is in the drive: proven by what the guest says on its serial console."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import sushy
from support import image_server, redfish_images
from support.waiting import stays, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.bmc_lab import BmcLab, Vm

DISK, CD = "booted from disk: boot", "booted from CD: boot"
ISO = ".iso'"


@pytest.fixture(scope="module")
def bios(running_lab: BmcLab) -> Vm:
    return running_lab.vm(firmware="bios", disk=redfish_images.disk("boot"), memory=64)


@pytest.fixture
def vm(bios: Vm, lab: BmcLab) -> Iterator[Vm]:
    """Off, without an override, with a disc in its drive; its console says what the last boot was."""
    bios.destroy()
    lab.patch(bios.path, {"Boot": {"BootSourceOverrideTarget": "None"}})
    bios.insert(redfish_images.cd("boot"))
    bios.forget_console()
    yield bios
    bios.destroy()


def order(vm: Vm) -> dict[str, str]:
    """Boot order by device, of the persistent definition."""
    found = {}
    for device in re.findall(r"<(?:disk|interface) .*?</(?:disk|interface)>", vm.xml(), re.DOTALL):
        place = re.search(r"<boot order='(\d+)'", device)
        name = re.search(r"target dev='(sd.)'|mac address='(.*?)'", device)
        assert name
        found["nic" if name[2] else name[1]] = place[1] if place else "-"
    return found


def override(lab: BmcLab, vm: Vm, target: str, enabled: str = "Once") -> None:
    boot = {"BootSourceOverrideTarget": target, "BootSourceOverrideEnabled": enabled}
    response = lab.patch(vm.path, {"Boot": boot})
    assert response.status_code == 204, response.text


def shown(lab: BmcLab, vm: Vm) -> tuple[str, str]:
    boot = lab.get(vm.path)["Boot"]
    return boot["BootSourceOverrideTarget"], boot["BootSourceOverrideEnabled"]


def test_fault_07_an_override_for_one_boot_is_used_up_by_the_boot(lab: BmcLab, vm: Vm) -> None:
    before = vm.xml()
    override(lab, vm, "Cd")
    lab.reset(vm, "On")
    vm.waits_for(CD)
    assert shown(lab, vm) == ("None", "Disabled")
    assert order(vm) == {"sda": "1", "nic": "2", "sdz": "3"}
    vm.domain.reset()  # what a guest does that reboots by itself
    vm.waits_for(DISK)
    lab.reset(vm, "ForceRestart")
    vm.waits_for(DISK, times=2)
    assert without_notes(vm.xml()) == without_notes(before)


def test_fault_07_so_is_one_that_was_set_while_the_guest_ran(lab: BmcLab, vm: Vm) -> None:
    lab.reset(vm, "On")
    vm.waits_for(DISK)
    override(lab, vm, "Cd")
    assert shown(lab, vm) == ("Cd", "Once")
    vm.domain.reset()
    vm.waits_for(CD)
    wait_until("the override is used up", lambda: shown(lab, vm) == ("None", "Disabled"))
    vm.domain.reset()
    vm.waits_for(DISK, times=2)


def test_an_override_that_comes_right_after_the_boot_of_another_is_for_the_next_boot(lab: BmcLab, vm: Vm) -> None:
    lab.reset(vm, "On")
    vm.waits_for(DISK)
    override(lab, vm, "Cd")
    vm.domain.reset()
    vm.waits_for(CD)
    override(lab, vm, "Pxe")
    # The service takes the boot for settled two seconds after the last reset.
    stays("the later override", lambda: shown(lab, vm) == ("Pxe", "Once"), 3)


def test_fault_07_and_one_that_somebody_else_has_switched_on(lab: BmcLab, vm: Vm) -> None:
    override(lab, vm, "Cd")
    vm.domain.create()
    vm.waits_for(CD)
    wait_until("the override is used up", lambda: shown(lab, vm) == ("None", "Disabled"))


def test_one_for_all_boots_stays_until_it_is_ended(lab: BmcLab, vm: Vm) -> None:
    override(lab, vm, "Cd", "Continuous")
    lab.reset(vm, "On")
    vm.waits_for(CD)
    lab.reset(vm, "PowerCycle")
    vm.waits_for(CD, times=2)
    assert shown(lab, vm) == ("Cd", "Continuous")
    assert lab.patch(vm.path, {"Boot": {"BootSourceOverrideEnabled": "Disabled"}}).status_code == 204
    assert shown(lab, vm) == ("None", "Disabled")
    vm.domain.reset()
    vm.waits_for(DISK)


def test_every_target_comes_first_and_the_others_keep_their_order(lab: BmcLab, vm: Vm) -> None:
    places = {}
    for target in ("Cd", "Pxe", "Hdd"):
        override(lab, vm, target, "Continuous")
        places[target] = order(vm)
    assert places == {
        "Cd": {"sda": "2", "nic": "3", "sdz": "1"},
        "Pxe": {"sda": "2", "nic": "1", "sdz": "3"},
        "Hdd": {"sda": "1", "nic": "2", "sdz": "3"},
    }
    override(lab, vm, "None", "Disabled")
    assert order(vm) == {"sda": "1", "nic": "2", "sdz": "3"}


def test_a_target_alone_is_for_the_next_boot(lab: BmcLab, vm: Vm) -> None:
    assert lab.patch(vm.path, {"Boot": {"BootSourceOverrideTarget": "Pxe"}}).status_code == 204
    assert shown(lab, vm) == ("Pxe", "Once")
    assert lab.patch(vm.path, {"Boot": {"BootSourceOverrideEnabled": "Continuous"}}).status_code == 204
    assert shown(lab, vm) == ("Pxe", "Continuous")
    assert lab.patch(vm.path, {"Boot": {"BootSourceOverrideTarget": "Cd"}}).status_code == 204
    assert shown(lab, vm) == ("Cd", "Continuous")


def test_fault_08_and_17_eject_leaves_an_empty_drive_and_the_disk_boots(lab: BmcLab, vm: Vm) -> None:
    override(lab, vm, "Cd", "Continuous")
    lab.reset(vm, "On")
    vm.waits_for(CD)
    assert lab.post(f"{vm.media}/Actions/VirtualMedia.EjectMedia").status_code == 204
    assert order(vm) == {"sda": "2", "nic": "3", "sdz": "1"}  # the drive is there and would be the first again
    lab.reset(vm, "ForceRestart")
    vm.waits_for(DISK)
    override(lab, vm, "Cd")


def test_fault_09_changes_reach_a_running_guest(lab: BmcLab, vm: Vm) -> None:
    lab.reset(vm, "On")
    vm.waits_for(DISK)
    assert ISO in vm.live_xml()
    assert lab.post(f"{vm.media}/Actions/VirtualMedia.EjectMedia").status_code == 204
    assert ISO not in vm.live_xml()
    assert ISO not in vm.xml()


def test_fault_13_a_drive_that_is_not_there_is_the_clients_mistake(lab: BmcLab, vm: Vm) -> None:
    whole = vm.xml()
    try:
        lab.connection.defineXML(re.sub(r"<disk type='file' device='cdrom'>.*?</disk>", "", whole, flags=re.DOTALL))
        refused = lab.patch(vm.path, {"Boot": {"BootSourceOverrideTarget": "Cd"}})
        assert refused.status_code == 400
        assert "nothing to boot from" in refused.json()["error"]["message"]
        assert lab.post(f"{vm.media}/Actions/VirtualMedia.EjectMedia").status_code == 404
        assert shown(lab, vm) == ("None", "Disabled")
    finally:
        lab.connection.defineXML(whole)


def test_the_whole_sequence_of_an_installation(lab: BmcLab, vm: Vm) -> None:
    with image_server.start(lab.libvirtd, redfish_images.cd("boot").parent) as server:
        system = lab.sushy().get_system(vm.path)
        media = system.virtual_media.get_members()[0]
        media.eject_media()
        media.insert_media(server.url(f"/{redfish_images.cd('boot').name}"))
        once = sushy.BOOT_SOURCE_ENABLED_ONCE
        system.set_system_boot_options(sushy.BOOT_SOURCE_TARGET_CD, enabled=once)
        system.reset_system(sushy.RESET_TYPE_ON)
        vm.waits_for(CD)
        media.eject_media()
        system.reset_system(sushy.RESET_TYPE_FORCE_RESTART)
        vm.waits_for(DISK)
        system.reset_system(sushy.RESET_TYPE_FORCE_OFF)
        system.refresh(force=True)
        assert system.power_state == sushy.POWER_STATE_OFF
        media.refresh(force=True)
        assert not media.inserted


def without_notes(xml: str) -> str:
    return re.sub(r"\s*<bmc:state.*?(/>|</bmc:state>)", "", xml, flags=re.DOTALL)


def test_the_boot_order_is_a_list_of_options_whatever_overrides_it(lab: BmcLab, vm: Vm) -> None:
    before = lab.get(vm.path)["Boot"]
    options = [lab.get(member["@odata.id"]) for member in lab.get(before["BootOptions"]["@odata.id"])["Members"]]
    assert [option["Alias"] for option in options] == ["Hdd", "Pxe", "Cd"]
    assert [option["BootOptionReference"] for option in options] == before["BootOrder"]
    assert {option["BootOptionEnabled"] for option in options} == {True}
    lab.get(options[1]["RelatedItem"][0]["@odata.id"])
    override(lab, vm, "Cd", "Continuous")
    assert lab.get(vm.path)["Boot"]["BootOrder"] == before["BootOrder"]
    assert lab.request("GET", f"{vm.path}/BootOptions/Floppy").status_code == 404


def test_a_client_changes_the_boot_order(lab: BmcLab, vm: Vm) -> None:
    disk, card, drive = lab.get(vm.path)["Boot"]["BootOrder"]
    assert lab.patch(vm.path, {"Boot": {"BootOrder": [card, drive, disk]}}).status_code == 204
    assert lab.get(vm.path)["Boot"]["BootOrder"] == [card, drive, disk]
    assert first_kinds(vm) == ["interface", "disk", "disk"]
    override(lab, vm, "Hdd", "Once")
    assert lab.patch(vm.path, {"Boot": {"BootOrder": [card, disk]}}).status_code == 204
    shown = lab.get(vm.path)["Boot"]
    assert (shown["BootOrder"], shown["BootSourceOverrideTarget"]) == ([card, disk], "Hdd")
    assert first_kinds(vm) == ["disk", "interface"]
    assert not lab.get(f"{vm.path}/BootOptions/{drive}")["BootOptionEnabled"]
    assert lab.reset(vm, "On").status_code == 204
    wait_until("the override is over", lambda: first_kinds(vm) == ["interface", "disk"], seen=vm.xml)
    assert lab.patch(vm.path, {"Boot": {"BootOrder": [disk, card, drive]}}).status_code == 204


def first_kinds(vm: Vm) -> list[str]:
    """The devices from which it boots, in their order."""
    found = re.findall(r"(?s)<(disk|interface) (?:(?!</\1>).)*?<boot order='(\d)'/>", vm.xml())
    return [kind for kind, _place in sorted(found, key=lambda each: each[1])]
