"""What clients may ask of a system, in which order and at once, and what is refused."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import sushy
from support import image_server, redfish_images
from support.bmc_lab import UUIDS
from support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from support.bmc_lab import BmcLab, Vm

VNC = "<graphics type='vnc' port='-1' autoport='yes' passwd='s3cret'><listen type='address'/></graphics>"
BOOT = "Boot/BootSourceOverride"


@pytest.fixture(scope="module")
def uefi(running_lab: BmcLab) -> Vm:
    return running_lab.vm(more=VNC)


@pytest.fixture(scope="module")
def other(running_lab: BmcLab) -> Vm:
    return running_lab.vm(firmware="bios", memory=64)


@pytest.fixture
def vm(uefi: Vm, lab: BmcLab) -> Vm:
    uefi.destroy()
    lab.patch(uefi.path, {"Boot": {"BootSourceOverrideTarget": "None", "BootSourceOverrideMode": "UEFI"}})
    return uefi


def test_fault_01_changes_at_the_same_time_are_all_made(lab: BmcLab, vm: Vm) -> None:
    with ThreadPoolExecutor(3) as threads:
        for turn in range(15):
            secure, target = turn % 2 == 0, ("Cd", "Hdd", "Pxe")[turn % 3]
            boot = {"BootSourceOverrideTarget": target, "BootSourceOverrideEnabled": "Continuous"}
            clock = {"DateTime": f"2020-01-{turn + 1:02}T12:00:00+00:00"}
            wishes = [
                partial(lab.patch, vm.path, {"Boot": boot}),
                partial(lab.patch, f"{vm.path}/SecureBoot", {"SecureBootEnable": secure}),
                partial(lab.patch, f"/redfish/v1/Managers/{vm.uuid}", clock),
            ]
            answers = [wish.result().status_code for wish in [threads.submit(wish) for wish in wishes]]
            assert answers == [204, 204, 204]
            assert lab.get(vm.path)["Boot"]["BootSourceOverrideTarget"] == target
            assert lab.get(f"{vm.path}/SecureBoot")["SecureBootEnable"] is secure
            assert lab.get(f"/redfish/v1/Managers/{vm.uuid}")["DateTime"].startswith(clock["DateTime"][:10])


def test_fault_02_a_restart_of_libvirtd_is_survived(lab: BmcLab, vm: Vm) -> None:
    lab.get(vm.path)
    lab.reset(vm, "On")
    lab.libvirtd.restart()
    lab.connect()
    assert lab.get(vm.path)["PowerState"] == "On"
    assert lab.patch(vm.path, {"Boot": {"BootSourceOverrideTarget": "Cd"}}).status_code == 204
    lab.libvirtd.restart()
    lab.connect()
    assert lab.reset(vm, "ForceOff").status_code == 204  # this time the first request is a change
    assert lab.get(vm.path)["PowerState"] == "Off"


def test_fault_02_and_leaves_nothing_open(lab: BmcLab, vm: Vm) -> None:
    def restart() -> None:
        lab.libvirtd.restart()
        lab.connect()
        lab.get(vm.path)
        assert lab.patch(vm.path, {"Boot": {"BootSourceOverrideTarget": "None"}}).status_code == 204

    lab.get(vm.path)
    before = lab.descriptors()
    for _time in range(3):
        restart()
    wait_until("the watch has let go of the old connections", lambda: lab.descriptors() <= before, seen=lab.descriptors)


def test_fault_02_while_libvirtd_is_away_clients_are_told_to_come_again(lab: BmcLab, vm: Vm) -> None:
    lab.libvirtd.kill()
    try:
        with ThreadPoolExecutor(4) as threads:
            answers = list(threads.map(lambda _: lab.request("GET", vm.path), range(4)))
        assert {answer.status_code for answer in answers} == {503}
        assert all(answer.headers["Retry-After"] for answer in answers)
    finally:
        lab.libvirtd.boot()
        lab.connect()
    lab.get(vm.path)


def test_fault_02_a_vm_that_vanished_is_not_there_until_it_comes_back(lab: BmcLab, other: Vm) -> None:
    lab.get(other.path)
    xml = other.xml()
    other.domain.undefine()
    try:
        assert lab.request("GET", other.path).status_code == 404
        assert lab.patch(other.path, {"Boot": {"BootSourceOverrideTarget": "Cd"}}).status_code == 404
        assert lab.reset(other, "On").status_code == 404
        assert other.path not in str(lab.get("/redfish/v1/Systems"))
    finally:
        lab.connection.defineXML(xml)
    lab.get(other.path)
    assert lab.patch(other.path, {"Boot": {"BootSourceOverrideTarget": "None"}}).status_code == 204


def test_fault_12_reading_changes_nothing(lab: BmcLab, vm: Vm) -> None:
    before = vm.xml()
    assert "passwd='s3cret'" in before
    for path in everything(lab, vm):
        lab.get(path)
    assert vm.xml() == before


def test_fault_12_passwords_survive_every_change(lab: BmcLab, vm: Vm) -> None:
    lab.patch(vm.path, {"Boot": {"BootSourceOverrideTarget": "Cd"}})
    lab.patch(f"{vm.path}/SecureBoot", {"SecureBootEnable": True})
    lab.patch(f"{vm.path}/SecureBoot", {"SecureBootEnable": False})
    lab.post(f"{vm.media}/Actions/VirtualMedia.EjectMedia")
    lab.reset(vm, "On")
    assert "passwd='s3cret'" in vm.xml()
    assert "passwd='s3cret'" in vm.xml(2**0)


def test_a_manager_shows_how_it_is_reached(lab: BmcLab, vm: Vm) -> None:
    manager = lab.get(f"/redfish/v1/Managers/{vm.uuid}")
    protocols = lab.get(manager["NetworkProtocol"]["@odata.id"])
    assert protocols["HTTP"] == {"ProtocolEnabled": True, "Port": 8000}
    assert protocols["HTTPS"] == protocols["IPMI"] == {"ProtocolEnabled": False, "Port": None}
    [nic] = lab.get(manager["EthernetInterfaces"]["@odata.id"])["Members"]
    assert lab.get(nic["@odata.id"])["IPv4Addresses"] == [{"Address": "127.0.0.1", "AddressOrigin": "Static"}]
    assert lab.request("GET", nic["@odata.id"] + "2").status_code == 404


def test_a_network_interface_shows_its_link(lab: BmcLab, vm: Vm) -> None:
    [nic] = lab.get(f"{vm.path}/EthernetInterfaces")["Members"]
    assert lab.get(nic["@odata.id"])["LinkStatus"] == "LinkDown"
    lab.reset(vm, "On")
    shown = lab.get(nic["@odata.id"])
    assert (shown["MACAddress"], shown["LinkStatus"], shown["SpeedMbps"]) == (shown["Id"], "LinkUp", None)


def test_fault_12_a_vm_that_nobody_has_defined_is_not_there(lab: BmcLab) -> None:
    nobody = f"/redfish/v1/Systems/{UUIDS[-1]}"
    for path in ("", "/VirtualMedia/Cd", "/SecureBoot", "/EthernetInterfaces", "/Storage", "/SimpleStorage"):
        assert lab.request("GET", nobody + path).status_code == 404, path
    assert lab.request("GET", nobody.replace("Systems", "Managers")).status_code == 404


MISTAKES: list[tuple[Any, str, str]] = [
    ({"Boot": {"BootSourceOverrideTarget": "Floppy"}}, "PropertyValueNotInList", BOOT + "Target"),
    ({"Boot": {"BootSourceOverrideTarget": 7}}, "PropertyValueTypeError", BOOT + "Target"),
    ({"Boot": {"BootSourceOverrideEnabled": "Always"}}, "PropertyValueNotInList", BOOT + "Enabled"),
    ({"Boot": {"BootSourceOverrideEnabled": "Once"}}, "PropertyMissing", BOOT + "Target"),
    ({"Boot": {"BootSourceOverrideMode": "Bios"}}, "PropertyValueNotInList", BOOT + "Mode"),
    ({"Boot": {"BootSourceOverrideTarget": "Cd", "Speed": 1}}, "PropertyUnknown", "Boot/Speed"),
    ({"Boot": {"BootSourceOverrideTarget": "Cd"}, "AssetTag": "1"}, "PropertyUnknown", "AssetTag"),
    ({"Boot": {"BootSourceOverrideTarget": "Cd"}, "IndicatorLED": "Red"}, "PropertyValueNotInList", "IndicatorLED"),
    (
        {"Boot": {"BootSourceOverrideTarget": "Cd"}, "PowerRestorePolicy": "Off"},
        "PropertyValueNotInList",
        "PowerRestorePolicy",
    ),
    ({"PowerRestorePolicy": True}, "PropertyValueTypeError", "PowerRestorePolicy"),
    ({"Boot": {"BootSourceOverrideTarget": "Cd"}, "PowerState": "On"}, "PropertyNotWritable", "PowerState"),
    (
        {"Boot": {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideMode": "Bios"}},
        "PropertyValueNotInList",
        BOOT + "Mode",
    ),
    (
        {"Boot": {"BootSourceOverrideTarget": "UefiHttp", "BootSourceOverrideMode": "Legacy"}},
        "PropertyValueNotInList",
        BOOT + "Target",
    ),
    ({"Boot": {"BootSourceOverrideTarget": "UefiHttp"}}, "PropertyMissing", "Boot/HttpBootUri"),
    ({"Boot": {"HttpBootUri": "file:///etc/passwd"}}, "PropertyValueFormatError", "Boot/HttpBootUri"),
    ({"Boot": {"HttpBootUri": "http://a\0b"}}, "PropertyValueFormatError", "Boot/HttpBootUri"),
    ({"Boot": {"HttpBootUri": 1}}, "PropertyValueTypeError", "Boot/HttpBootUri"),
    ({"Boot": {"BootOrder": []}}, "PropertyValueNotInList", "Boot/BootOrder"),
    ({"Boot": {"BootOrder": "Hdd-sda"}}, "PropertyValueTypeError", "Boot/BootOrder"),
    ({"Boot": {"BootOrder": ["Hdd-sda", 1]}}, "PropertyValueTypeError", "Boot/BootOrder"),
    ({"Boot": {"BootOrder": ["Hdd-sda", "Hdd-sda"]}}, "PropertyValueConflict", "Boot/BootOrder"),
    ({"Boot": {"BootOrder": ["Hdd-sdq"]}}, "PropertyValueNotInList", "Boot/BootOrder"),
    ({"Boot": {"BootOrder": ["<boot/>"]}}, "PropertyValueNotInList", "Boot/BootOrder"),
    ({"Boot": {"BootOptions": {}}}, "PropertyNotWritable", "Boot/BootOptions"),
    ({"Boot": "Cd"}, "PropertyValueTypeError", "Boot"),
    ({"Boot": {}}, "PropertyMissing", "Boot"),
    ({}, "PropertyMissing", ""),
    ([], "MalformedJSON", ""),
]


@pytest.mark.parametrize(("body", "message", "prop"), MISTAKES)
def test_fault_13_a_wrong_change_names_the_property_and_changes_nothing(
    lab: BmcLab, vm: Vm, body: Any, message: str, prop: str
) -> None:
    before = vm.xml()
    answer = lab.patch(vm.path, body)
    [told] = answer.json()["error"]["@Message.ExtendedInfo"]
    assert (answer.status_code, told["MessageId"].split(".")[-1]) == (400, message), told
    assert told.get("RelatedProperties", ["#/"]) == [f"#/{prop}"]
    assert vm.xml() == before


def test_fault_13_so_do_other_wrong_requests(lab: BmcLab, vm: Vm, other: Vm) -> None:
    before = vm.xml()
    reset = f"{vm.path}/Actions/ComputerSystem.Reset"
    wrong: list[tuple[str, str, Any, int]] = [
        ("POST", reset, {"ResetType": "Explode"}, 400),
        ("POST", reset, {"ResetType": ["On"]}, 400),
        ("POST", reset, {}, 400),
        ("POST", reset, {"ResetType": "On", "Delay": 3}, 400),
        ("POST", reset, {"ResetType": "Nmi"}, 409),
        ("PATCH", f"{vm.path}/SecureBoot", {"SecureBootEnable": "yes"}, 400),
        ("PATCH", f"{vm.path}/SecureBoot", {"SecureBootMode": "UserMode"}, 400),
        ("GET", f"{other.path}/SecureBoot", None, 404),
        ("PATCH", f"{other.path}/SecureBoot", {"SecureBootEnable": True}, 404),
        ("PATCH", f"/redfish/v1/Managers/{vm.uuid}", {"DateTime": "noon"}, 400),
        ("PATCH", f"/redfish/v1/Managers/{vm.uuid}", {"DateTimeLocalOffset": "+99:00"}, 400),
        ("PATCH", f"/redfish/v1/Managers/{vm.uuid}", {"DateTime": "9999-12-31T23:59:59+00:00"}, 400),
        ("PATCH", f"/redfish/v1/Managers/{vm.uuid}", {"UUID": vm.uuid}, 400),
        ("GET", f"{vm.path}/EthernetInterfaces/00:00", None, 404),
        ("GET", f"{vm.path}/SimpleStorage/ide", None, 404),
        ("GET", f"{vm.path}/Storage/1", None, 404),
        ("GET", f"{vm.path}/Processors/CPU7", None, 404),
        ("PATCH", f"{vm.path}/BIOS", {"Attributes": {"QuietBoot": False}}, 405),
        ("PATCH", f"{vm.path}/BIOS/Settings", {"Attributes": {"NumCores": "1"}}, 400),
        ("GET", f"{vm.path}/Storage/scsi/Drives/sdb", None, 404),
        ("GET", f"{vm.path}/Storage/sata/Volumes/sda", None, 404),
        ("GET", f"{vm.path}/Storage/scsi/Controllers/2", None, 404),
        ("POST", f"{vm.path}/Storage/scsi/Volumes", {"CapacityBytes": 1}, 405),
        ("DELETE", f"{vm.path}/Storage/scsi/Volumes/sda", None, 405),
        ("PATCH", "/redfish/v1/Chassis/Enclosure", {"IndicatorLED": "Lit"}, 405),
        ("GET", "/redfish/v1/Chassis/None", None, 404),
        ("GET", "/redfish/v1/Nowhere", None, 404),
        ("DELETE", vm.path, None, 405),
        ("POST", "/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate", {"Targets": [vm.path]}, 400),
    ]
    for method, path, body, status in wrong:
        answer = lab.request(method, path, body)
        assert answer.status_code == status, (method, path, body, answer.text)
        assert answer.json()["error"]["message"], (method, path)
    assert vm.xml() == before


def test_a_body_is_understood_whatever_its_type_says(lab: BmcLab, vm: Vm) -> None:
    url = f"{lab.url}{vm.path}"
    answer = lab.http.patch(
        url, data='{"Boot": {"BootSourceOverrideTarget": "Cd"}, "@odata.etag": "1"}', timeout=PATIENCE
    )
    assert answer.status_code == 204
    assert lab.http.patch(url, data="{", timeout=PATIENCE).status_code == 400
    assert lab.http.patch(url, data="[" * 50000, timeout=PATIENCE).status_code == 400
    answer = lab.patch(vm.path, {"Boot": {"BootSourceOverrideTarget": "None", "HttpBootUri": None}})
    assert answer.status_code == 204


def test_every_reset_type_does_what_it_says(lab: BmcLab, other: Vm) -> None:
    action = lab.get(other.path)["Actions"]["#ComputerSystem.Reset"]
    assert set(action["ResetType@Redfish.AllowableValues"]) == {
        *("On", "ForceOn", "ForceOff", "GracefulShutdown", "GracefulRestart"),
        *("ForceRestart", "PowerCycle", "PushPowerButton", "Nmi"),
    }
    starts = ("On", "ForceOn", "ForceRestart", "PowerCycle", "GracefulRestart", "PushPowerButton")
    for kind in starts:
        assert (lab.reset(other, kind).status_code, other.domain.isActive()) == (204, 1), kind
        number = other.domain.ID()
        assert lab.reset(other, kind).status_code == 204, kind
        assert (other.domain.ID() != number) == (kind in ("ForceRestart", "PowerCycle")), kind
        assert (lab.reset(other, "ForceOff").status_code, other.domain.isActive()) == (204, 0)
    assert lab.reset(other, "GracefulShutdown").status_code == 204
    lab.reset(other, "On")
    assert lab.reset(other, "Nmi").status_code == 204
    assert lab.reset(other, "GracefulShutdown").status_code == 204  # the guest has nobody who would hear it
    assert lab.reset(other, "ForceOff").status_code == 204


def test_a_vm_that_cannot_be_started_says_why(lab: BmcLab, other: Vm) -> None:
    disk = lab.libvirtd.path(f"/var/lib/libvirt/images/{other.name}.qcow2")
    disk.rename(disk.with_suffix(".away"))
    lab.patch(other.path, {"Boot": {"BootSourceOverrideTarget": "Pxe"}})
    try:
        answer = lab.reset(other, "On")
        assert answer.status_code == 500
        assert disk.name in answer.json()["error"]["message"]
    finally:
        disk.with_suffix(".away").rename(disk)
    assert lab.get(other.path)["Boot"]["BootSourceOverrideEnabled"] == "Once"
    assert lab.reset(other, "On").status_code == 204
    assert lab.get(other.path)["Boot"]["BootSourceOverrideEnabled"] == "Disabled"
    other.destroy()


def test_fault_16_what_is_set_for_one_system_is_not_for_others(lab: BmcLab, vm: Vm, other: Vm) -> None:
    mine, theirs = (f"/redfish/v1/Managers/{one.uuid}" for one in (vm, other))
    clock = {"DateTime": "2001-02-03T04:05:06+02:00", "DateTimeLocalOffset": "+02:00"}
    assert lab.patch(mine, clock).status_code == 204
    assert lab.get(mine)["DateTime"].startswith("2001-02-03T04:05")
    assert lab.get(mine)["DateTimeLocalOffset"] == "+02:00"
    away = datetime.fromisoformat(lab.get(theirs)["DateTime"]) - datetime.now(timezone.utc)
    assert abs(away) < timedelta(minutes=1)
    uri = "http://192.0.2.1/one.iso"
    assert lab.patch(vm.path, {"Boot": {"HttpBootUri": uri}}).status_code == 204
    assert lab.get(vm.path)["Boot"]["HttpBootUri"] == uri
    assert lab.get(other.path)["Boot"]["HttpBootUri"] is None
    assert lab.patch(vm.path, {"Boot": {"HttpBootUri": None}}).status_code == 204
    assert lab.get(vm.path)["Boot"]["HttpBootUri"] is None


def test_http_boot_puts_the_image_into_the_drive(lab: BmcLab, vm: Vm) -> None:
    image = redfish_images.cd("boot")
    with image_server.start(lab.libvirtd, image.parent) as server:
        boot = {"BootSourceOverrideTarget": "UefiHttp", "HttpBootUri": server.url(f"/{image.name}")}
        assert lab.patch(vm.path, {"Boot": boot}).status_code == 204
        assert lab.get(vm.path)["Boot"]["BootSourceOverrideTarget"] == "UefiHttp"
        assert lab.get(vm.media)["Image"] == boot["HttpBootUri"]
        assert re.search(r"<target dev='sdz'.*?<boot order='1'", vm.xml(), re.DOTALL)
        gone = {"BootSourceOverrideTarget": "UefiHttp", "HttpBootUri": server.url("/gone.iso")}
        assert 400 <= lab.patch(vm.path, {"Boot": gone}).status_code < 500
        assert lab.get(vm.path)["Boot"]["HttpBootUri"] == boot["HttpBootUri"]
    lab.post(f"{vm.media}/Actions/VirtualMedia.EjectMedia")


def test_an_inspection_finds_what_the_machine_is_made_of(lab: BmcLab, vm: Vm) -> None:
    system = lab.sushy().get_system(vm.path)
    assert system.name == vm.name
    assert [str(nic.mac_address) for nic in system.ethernet_interfaces.get_members()] == [
        f"52:54:00:00:00:{lab.vms.index(vm):02x}"
    ]
    assert system.simple_storage.disks_sizes_bytes == [1 << 30]
    [storage] = system.storage.get_members()
    [drive] = storage.drives
    assert (drive.name, drive.capacity_bytes, drive.json["MediaType"]) == ("sda", 1 << 30, "HDD")
    assert storage.drives_sizes_bytes == storage.volumes.volumes_sizes_bytes == [1 << 30]
    assert len(system.processors.get_members()) == 1
    assert system.chassis[0].name == "Chassis"
    assert system.managers[0].uuid == vm.uuid
    assert system.secure_boot.enabled is False
    assert system.boot.mode == sushy.BOOT_SOURCE_MODE_UEFI


def everything(lab: BmcLab, vm: Vm) -> list[str]:
    """Every resource that can be reached from the root, of other systems only the list."""
    seen = ["/redfish/v1"]
    for path in seen:
        if "SessionService" in path:
            continue
        for link in re.findall(r'"@odata.id": ?"([^"#]+)"', lab.request("GET", path).text):
            whose = re.search(r"/(?:Systems|Managers)/([^/]+)", link)
            if link.rstrip("/") not in seen and (not whose or whose[1] == vm.uuid):
                seen.append(link.rstrip("/"))
    return seen
