"""BIOS settings, firmware versions and the indicator LED, as Ironic uses them through sushy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import sushy
from support import bmc_lab
from support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from support.bmc_lab import BmcLab, Vm

UPDATE = "/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate"
OWN = ("bios-owner", "of-its-own")


@pytest.fixture
def vm(machine: Vm, lab: BmcLab) -> Vm:
    """Off, with the settings of new hardware."""
    lab.post(f"{machine.path}/BIOS/Actions/Bios.ResetBios")
    machine.destroy()
    assert lab.reset(machine, "On").status_code == lab.reset(machine, "ForceOff").status_code == 204
    return machine


def system(lab: BmcLab, vm: Vm) -> Any:
    return lab.sushy().get_system(vm.path)


def test_settings_are_pending_until_the_system_is_reset(lab: BmcLab, vm: Vm) -> None:
    bios = system(lab, vm).bios
    bios.set_attributes({"QuietBoot": False, "ProcTurboMode": "Disabled"}, apply_time=sushy.APPLY_TIME_ON_RESET)
    assert bios.pending_attributes["ProcTurboMode"] == "Disabled"
    assert system(lab, vm).bios.attributes["ProcTurboMode"] == "Enabled"
    lab.stop_service()
    lab.start_service()
    assert system(lab, vm).bios.pending_attributes["ProcTurboMode"] == "Disabled"
    assert lab.reset(vm, "ForceOff").status_code == 204  # it is off
    assert system(lab, vm).bios.attributes["QuietBoot"] is True
    assert lab.reset(vm, "On").status_code == 204
    assert system(lab, vm).bios.attributes["QuietBoot"] is False

    system(lab, vm).bios.reset_bios()
    assert system(lab, vm).bios.attributes["QuietBoot"] is False
    lab.stop_service()
    lab.start_service()
    assert lab.reset(vm, "On").status_code == 204  # it runs
    assert system(lab, vm).bios.attributes["QuietBoot"] is False
    assert lab.reset(vm, "ForceRestart").status_code == 204
    assert system(lab, vm).bios.attributes["QuietBoot"] is True


def test_sushy_finds_the_registry_of_the_attributes(lab: BmcLab, vm: Vm) -> None:
    bios = system(lab, vm).bios
    registry = bios.get_attribute_registry()
    described = {entry.name: entry for entry in registry.registry_entries.attributes}
    assert set(described) == set(bios.attributes)
    assert described["ProcTurboMode"].attribute_type == "Enumeration"
    assert [value["ValueName"] for value in described["ProcTurboMode"].allowable_values] == ["Enabled", "Disabled"]
    assert bios.supported_apply_times == [sushy.APPLY_TIME_ON_RESET]


@pytest.mark.parametrize(
    ("body", "message", "prop"),
    [
        ({"Attributes": {"QuietBoot": False, "NumCores": 1}}, "PropertyUnknown", "Attributes/NumCores"),
        ({"Attributes": {"QuietBoot": "no"}}, "PropertyValueNotInList", "Attributes/QuietBoot"),
        ({"Attributes": {}}, "PropertyMissing", "Attributes"),
        ({"Attributes": []}, "PropertyValueTypeError", "Attributes"),
        ({"AttributeRegistry": "x"}, "PropertyNotWritable", "AttributeRegistry"),
        ({}, "PropertyMissing", ""),
    ],
)
def test_wrong_settings_are_refused_as_a_whole(lab: BmcLab, vm: Vm, body: Any, message: str, prop: str) -> None:
    answer = lab.patch(f"{vm.path}/BIOS/Settings", body)
    [told] = answer.json()["error"]["@Message.ExtendedInfo"]
    assert (answer.status_code, told["MessageId"].split(".")[-1]) == (400, message), told
    assert told.get("RelatedProperties", ["#/"]) == [f"#/{prop}"]
    bios = system(lab, vm).bios
    assert bios.pending_attributes == bios.attributes


def test_firmware_is_updated_and_its_task_is_over(lab: BmcLab, vm: Vm, neighbour: Vm) -> None:
    service = lab.sushy().get_update_service()
    monitor = service.simple_update("http://web.example.test/bios-3.1.4.bin", targets=[vm.path])
    assert not monitor.check_is_processing
    assert monitor.get_task().task_state == sushy.TaskState.COMPLETED
    by_related = {item.related_item[0]["@odata.id"]: item.version for item in service.firmware_inventory.get_members()}
    assert by_related[f"{vm.path}/BIOS"] == system(lab, vm).bios_version == "3.1.4"
    assert by_related[f"{neighbour.path}/BIOS"] == "1.0.0"
    entries = lab.get(f"{vm.path}/LogServices/EventLog/Entries")["Members"]
    assert "3.1.4 with http://web.example.test/bios-3.1.4.bin by" in entries[-1]["Message"]
    lab.stop_service()
    lab.start_service()
    assert system(lab, vm).bios_version == "3.1.4"


def test_an_account_updates_its_own_system_without_naming_it_and_no_other(lab: BmcLab, vm: Vm, neighbour: Vm) -> None:
    before = list(lab.accounts)
    lab.accounts.append(bmc_lab.account(*OWN, [vm.uuid]))
    lab.configure()
    try:
        ask: dict[str, Any] = {"auth": OWN, "timeout": PATIENCE}
        wait_until("the account is known", lambda: lab.http.get(lab.url + vm.path, **ask).ok)
        image = {"ImageURI": "http://web.example.test/5.0.1.bin"}
        done = lab.http.post(lab.url + UPDATE, json=image, **ask)
        assert done.status_code == 202
        assert lab.http.get(lab.url + done.headers["Location"], **ask).json()["TaskState"] == "Completed"
        assert system(lab, vm).bios_version == "5.0.1"
        for target in (neighbour.path, f"/redfish/v1/UpdateService/FirmwareInventory/BIOS-{neighbour.uuid}"):
            refused = lab.http.post(lab.url + UPDATE, json={**image, "Targets": [vm.path, target]}, **ask)
            assert refused.status_code == 400
        firmware = "/redfish/v1/UpdateService/FirmwareInventory"
        assert lab.http.get(f"{lab.url}{firmware}/BIOS-{neighbour.uuid}", **ask).status_code == 404
        assert len(lab.http.get(lab.url + firmware, **ask).json()["Members"]) == 1
    finally:
        lab.accounts[:] = before
        lab.configure()


@pytest.mark.parametrize(
    ("body", "prop"),
    [
        ({}, None),
        ({"Targets": ["x"]}, "ImageURI"),
        ({"ImageURI": "file:///etc/passwd", "Targets": ["x"]}, "ImageURI"),
        ({"ImageURI": "http://web/1.bin", "Targets": ["/redfish/v1/Managers/x"]}, "Targets"),
        ({"ImageURI": "http://web/1.bin", "Targets": [5]}, "Targets"),
        ({"ImageURI": "http://web/1.bin"}, "Targets"),
        ({"ImageURI": "http://web/1.bin", "TransferProtocol": "NFS"}, "TransferProtocol"),
    ],
)
def test_wrong_updates_are_refused(lab: BmcLab, vm: Vm, neighbour: Vm, body: Any, prop: str | None) -> None:
    versions = [system(lab, each).bios_version for each in (vm, neighbour)]
    answer = lab.post(UPDATE, body)
    [told] = answer.json()["error"]["@Message.ExtendedInfo"]
    assert (answer.status_code, told.get("RelatedProperties")) == (400, [f"#/{prop}"] if prop else None)
    assert [system(lab, each).bios_version for each in (vm, neighbour)] == versions


def test_the_indicator_led_stays_as_it_was_set(lab: BmcLab, vm: Vm, neighbour: Vm) -> None:
    assert system(lab, vm).indicator_led == sushy.INDICATOR_LED_OFF
    system(lab, vm).set_indicator_led(sushy.INDICATOR_LED_BLINKING)
    body = {"IndicatorLED": "Lit", "Boot": {"BootSourceOverrideTarget": "Floppy"}}
    assert lab.patch(vm.path, body).status_code == 400
    lab.stop_service()
    lab.start_service()
    assert system(lab, vm).indicator_led == sushy.INDICATOR_LED_BLINKING
    assert system(lab, neighbour).indicator_led == sushy.INDICATOR_LED_OFF
    assert lab.patch(vm.path, {"IndicatorLED": "Off", "Boot": {"BootSourceOverrideTarget": "Cd"}}).status_code == 204
    assert system(lab, vm).indicator_led == sushy.INDICATOR_LED_OFF
    assert lab.get(vm.path)["Boot"]["BootSourceOverrideTarget"] == "Cd"
