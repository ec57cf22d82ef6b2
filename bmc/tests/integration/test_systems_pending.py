"""A running VM is shown as it runs, whatever waits for its next start; what a client sets it reads back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from support.bmc_lab import FIRMWARE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.bmc_lab import BmcLab, Vm

MAC = "52:54:00:00:01:01"
DISK = "<disk type='file' device='disk'><source file='{}'/><target dev='sdb' bus='sata'/></disk>"
NIC = f"<interface type='ethernet'><mac address='{MAC}'/><model type='virtio'/><rom enabled='no'/></interface>"


@pytest.fixture
def vm(lab: BmcLab) -> Iterator[Vm]:
    made = lab.vm(memory=64)
    yield made
    made.destroy()


def shown(lab: BmcLab, vm: Vm) -> dict[str, Any]:
    """What an inspection reads."""
    system = lab.get(vm.path)
    disks = [
        (disk["Name"], disk["CapacityBytes"])
        for bus in lab.get(f"{vm.path}/SimpleStorage")["Members"]
        for disk in lab.get(bus["@odata.id"])["Devices"]
    ]
    return {
        "cores": system["ProcessorSummary"]["CoreCount"],
        "threads": system["ProcessorSummary"]["LogicalProcessorCount"],
        "cores of CPU0": lab.get(f"{vm.path}/Processors/CPU0")["TotalCores"],
        "memory": system["MemorySummary"]["TotalSystemMemoryGiB"],
        "mode": system["Boot"]["BootSourceOverrideMode"],
        "secure": "SecureBoot" in system and lab.get(f"{vm.path}/SecureBoot")["SecureBootEnable"],
        "disks": sorted(disks),
        "cards": [nic["@odata.id"][-17:] for nic in lab.get(f"{vm.path}/EthernetInterfaces")["Members"]],
    }


def redefine(vm: Vm, firmware: str, *, hardware: bool = False) -> None:
    """As bmh_vm does it: of a running VM, only the definition changes."""
    attribute, features, smm = FIRMWARE[firmware]
    xml = re.sub(r"<os.*?<type", f"<os {attribute}><type", vm.xml(), flags=re.DOTALL)
    xml = re.sub(r"<(firmware|loader|nvram|smm)\b[^>]*?(/>|>.*?</\1>)", "", xml, flags=re.DOTALL)
    xml = xml.replace("</type>", f"</type>{features}", 1).replace("<acpi/>", f"<acpi/>{smm}")
    if hardware:
        file = f"/var/lib/libvirt/images/{vm.name}-second.qcow2"
        vm.lab.libvirtd.run(["qemu-img", "create", "-q", "-f", "raw", file, "2G"])
        xml = re.sub(r"<memory .*?</currentMemory>", "<memory unit='MiB'>128</memory>", xml, flags=re.DOTALL)
        xml = re.sub(r"<vcpu.*?</vcpu>", "<vcpu>2</vcpu>", xml)
        xml = xml.replace("</devices>", f"{DISK.format(file)}{NIC}</devices>")
    vm.lab.connection.defineXML(xml)


def test_what_waits_for_the_next_start_is_not_shown_before(lab: BmcLab, vm: Vm) -> None:
    lab.reset(vm, "On")
    before = shown(lab, vm)
    assert before.items() >= {"cores": 1, "memory": 0.062, "mode": "UEFI", "disks": [("sda", 1 << 30)]}.items()
    redefine(vm, "uefi-secure", hardware=True)
    assert shown(lab, vm) == before
    for part in ("Storage", "Processors", "VirtualMedia", "VirtualMedia/Cd", "SecureBoot"):
        lab.get(f"{vm.path}/{part}")
    lab.get("/redfish/v1/Chassis/Enclosure")
    lab.get(f"/redfish/v1/Managers/{vm.uuid}")
    redefine(vm, "bios")
    assert shown(lab, vm) == before

    lab.reset(vm, "ForceOff")
    after = shown(lab, vm)
    assert after == {
        **dict.fromkeys(("cores", "threads", "cores of CPU0"), 2),
        "memory": 0.125,
        "mode": "Legacy",
        "secure": False,
        "disks": [("sda", 1 << 30), ("sdb", 2 << 30)],
        "cards": [*before["cards"], MAC],
    }
    lab.reset(vm, "On")
    assert shown(lab, vm) == after


def test_what_a_client_has_set_is_read_back_before_the_next_start(lab: BmcLab, vm: Vm) -> None:
    def set_mode(mode: str) -> tuple[int, Any]:
        answer = lab.patch(vm.path, {"Boot": {"BootSourceOverrideMode": mode}})
        return answer.status_code, shown(lab, vm)["mode"]

    def set_secure(wanted: bool) -> tuple[int, Any]:
        answer = lab.patch(f"{vm.path}/SecureBoot", {"SecureBootEnable": wanted})
        return answer.status_code, shown(lab, vm)["secure"]

    lab.reset(vm, "On")
    assert set_secure(True) == (204, True)
    assert set_secure(False) == (204, False)
    redefine(vm, "bios")
    assert shown(lab, vm)["mode"] == "UEFI"
    for mode in ("Legacy", "UEFI", "Legacy"):  # the first is what the definition says already
        assert set_mode(mode) == (204, mode)
    lab.reset(vm, "PowerCycle")
    assert shown(lab, vm)["mode"] == "Legacy"
    redefine(vm, "uefi")
    assert shown(lab, vm)["mode"] == "Legacy"
    assert set_mode("UEFI") == (204, "UEFI")


def test_a_disk_whose_file_is_gone_is_shown_without_a_size(lab: BmcLab, vm: Vm) -> None:
    lab.libvirtd.path(f"/var/lib/libvirt/images/{vm.name}.qcow2").unlink()
    assert shown(lab, vm)["disks"] == [("sda", None)]
