"""What disks are shown as, by what definitions of VMs say of them."""

from __future__ import annotations

from nometal_bmc.machine.definition import parse
from nometal_bmc.redfish import storage_views
from nometal_bmc.redfish.storage_views import Disk

UUID = "07cead2f-f762-5578-a5c9-a377314b4257"
STORAGE = f"/redfish/v1/Systems/{UUID}/Storage"
WHOLE = """<disk type='file' device='disk'><target dev='sdb' bus='scsi' rotation_rate='1'/>
<blockio logical_block_size='4096'/><wwn>5000c50015ea71aa</wwn><serial>one</serial>
<vendor>ACME</vendor><product>Fast</product></disk>"""
LEAST = "<disk type='file' device='disk'><target dev='vda' bus='virtio'/></disk>"


def test_all_that_a_definition_says_of_a_disk_is_shown() -> None:
    shown = storage_views.show_drive(UUID, storage_views.disk_of(parse(WHOLE), {"sdb": 5}))
    assert (
        shown.items()
        >= {
            "@odata.id": f"{STORAGE}/scsi/Drives/sdb",
            "Manufacturer": "ACME",
            "Model": "Fast",
            "SerialNumber": "one",
            "Identifiers": [{"DurableNameFormat": "NAA", "DurableName": "5000c50015ea71aa"}],
            "CapacityBytes": 5,
            "BlockSizeBytes": 4096,
            "MediaType": "SSD",
            "Protocol": "SAS",
        }.items()
    )


def test_what_a_definition_leaves_out_is_not_made_up() -> None:
    disk = storage_views.disk_of(parse(LEAST), {"vda": None})
    shown = storage_views.show_drive(UUID, disk)
    assert shown.items() >= {"SerialNumber": None, "Identifiers": [], "CapacityBytes": None, "MediaType": "HDD"}.items()
    assert storage_views.show_simple(UUID, "virtio", [disk])["Devices"][0]["CapacityBytes"] is None


def test_each_disk_is_a_drive_and_a_volume_of_its_bus() -> None:
    disks = [Disk(name, bus, 1) for name, bus in (("sda", "scsi"), ("nvme0n1", "nvme"), ("sdb", "scsi"))]
    buses = storage_views.by_bus(disks)
    assert {bus: [disk.name for disk in found] for bus, found in buses.items()} == {
        "scsi": ["sda", "sdb"],
        "nvme": ["nvme0n1"],
    }
    drives = storage_views.show_storage(UUID, "scsi", buses["scsi"])["Drives"]
    assert drives == [{"@odata.id": f"{STORAGE}/scsi/Drives/{name}"} for name in ("sda", "sdb")]
    assert storage_views.show_drive(UUID, disks[0])["Links"]["Volumes"] == [
        {"@odata.id": storage_views.show_volume(UUID, disks[0])["@odata.id"]}
    ]
    assert storage_views.show_drive(UUID, disks[1])["MediaType"] == "SSD"


def test_a_bus_that_redfish_does_not_know_has_no_protocol() -> None:
    assert storage_views.show_drive(UUID, Disk("hda", "ide", 1))["Protocol"] is None
    assert storage_views.show_controller(UUID, "ide")["SupportedDeviceProtocols"] == []
