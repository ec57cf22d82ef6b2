"""BIOS, UEFI and secure boot: proven by what the firmware lets through."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from support import redfish_images

if TYPE_CHECKING:
    from support.bmc_lab import BmcLab, Vm

DISK = "booted from disk: firmware"
REFUSED = "Access Denied"


@pytest.fixture(scope="module")
def unsigned(running_lab: BmcLab) -> Vm:
    return running_lab.vm(firmware="uefi", disk=redfish_images.disk("firmware"))


def boots(lab: BmcLab, vm: Vm, text: str) -> None:
    vm.forget_console()
    lab.reset(vm, "ForceOff")
    response = lab.reset(vm, "On")
    assert response.status_code == 204, response.text
    vm.waits_for(text)


def secure_boot(lab: BmcLab, vm: Vm, wanted: bool | None = None) -> tuple[Any, ...]:
    if wanted is not None:
        response = lab.patch(f"{vm.path}/SecureBoot", {"SecureBootEnable": wanted})
        assert response.status_code == 204, response.text
    found = lab.get(f"{vm.path}/SecureBoot")
    return found["SecureBootEnable"], found["SecureBootCurrentBoot"]


def mode(lab: BmcLab, vm: Vm, wanted: str) -> int:
    return lab.patch(vm.path, {"Boot": {"BootSourceOverrideMode": wanted}}).status_code


def test_fault_06_secure_boot_is_enforced_when_it_says_so_and_only_then(lab: BmcLab, unsigned: Vm) -> None:
    vm = unsigned
    assert secure_boot(lab, vm) == (False, "Disabled")
    boots(lab, vm, DISK)
    secure_boot(lab, vm, wanted=True)
    boots(lab, vm, REFUSED)
    assert secure_boot(lab, vm) == (True, "Enabled")
    assert mode(lab, vm, "UEFI") == 204
    assert secure_boot(lab, vm) == (True, "Enabled")
    assert secure_boot(lab, vm, wanted=False) == (False, "Enabled")  # from the next boot on
    boots(lab, vm, DISK)
    assert secure_boot(lab, vm) == (False, "Disabled")


def test_what_is_signed_boots_with_secure_boot_and_at_the_first_boot_already(lab: BmcLab) -> None:
    vm = lab.vm(firmware="uefi-secure", memory=256)
    vm.insert(redfish_images.cd("signed", signed=True))
    boot = {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}
    assert lab.patch(vm.path, {"Boot": boot}).status_code == 204
    boots(lab, vm, "booted from CD: signed")
    assert secure_boot(lab, vm) == (True, "Enabled")
    vm.destroy()


def test_fault_06_variables_of_before_do_not_serve_a_vm_that_someone_else_has_started(
    lab: BmcLab, unsigned: Vm
) -> None:
    vm = unsigned
    lab.reset(vm, "ForceOff")
    lab.reset(vm, "On")
    lab.reset(vm, "ForceOff")
    secure_boot(lab, vm, wanted=True)
    vm.domain.create()
    assert secure_boot(lab, vm) == (True, "Disabled")  # what is true, not what was wished
    lab.reset(vm, "PowerCycle")
    assert secure_boot(lab, vm) == (True, "Enabled")
    lab.reset(vm, "ForceOff")
    secure_boot(lab, vm, wanted=False)


def test_fault_14_switching_between_bios_and_uefi_works_with_what_the_distribution_ships(
    lab: BmcLab, unsigned: Vm
) -> None:
    vm = unsigned
    assert mode(lab, vm, "Legacy") == 204
    assert lab.get(vm.path)["Boot"]["BootSourceOverrideMode"] == "Legacy"
    boots(lab, vm, DISK)
    assert "BdsDxe" not in vm.console()
    assert lab.request("GET", f"{vm.path}/SecureBoot").status_code == 404
    assert mode(lab, vm, "UEFI") == 204
    boots(lab, vm, DISK)
    assert "BdsDxe" in vm.console()
    vm.destroy()


def test_fault_14_and_06_the_same_mode_again_changes_nothing(lab: BmcLab) -> None:
    for vm in (lab.vm(firmware="uefi-secure"), with_chosen_loader(lab.vm(firmware="uefi"))):
        before = vm.xml()
        assert mode(lab, vm, "UEFI") == 204
        assert vm.xml() == before


def test_a_mode_that_the_host_has_no_firmware_for_is_refused_at_once(lab: BmcLab) -> None:
    vm = lab.vm(firmware="bios")
    lab.connection.defineXML(re.sub(r"machine='[^']+'", "machine='isapc'", without_pci(vm.xml())))
    before = vm.xml()
    refused = lab.patch(vm.path, {"Boot": {"BootSourceOverrideMode": "UEFI"}})
    assert refused.status_code == 409
    assert "no firmware" in refused.json()["error"]["message"]
    assert vm.xml() == before


def with_chosen_loader(vm: Vm) -> Vm:
    """As bmh_vm makes it where libvirt is too old to choose by features."""
    loader = "<loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE_4M.fd</loader>"
    nvram = "<nvram template='/usr/share/OVMF/OVMF_VARS_4M.fd'>/var/lib/libvirt/qemu/nvram/chosen.fd</nvram>"
    xml = re.sub(r"<firmware>.*?</firmware>", loader + nvram, vm.xml(), flags=re.DOTALL)
    vm.lab.connection.defineXML(xml.replace("<os firmware='efi'>", "<os>"))
    return vm


def without_pci(xml: str) -> str:
    kept = re.sub(r"<(controller|disk|interface|serial|console|input|audio).*?</\1>", "", xml, flags=re.DOTALL)
    return re.sub(r"<(controller|input|audio)[^>]*/>", "", kept)
