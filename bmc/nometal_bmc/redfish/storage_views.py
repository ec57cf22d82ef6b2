# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The disks of a system, by their buses: as SimpleStorage, and as Storage with drives, each of which is a volume.

They are the lab's, so that clients only read. A bus has one controller here, whatever its VM has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import flask

from nometal_bmc.answers import not_found
from nometal_bmc.machine.definition import values
from nometal_bmc.redfish.list_views import ROOT, collection

if TYPE_CHECKING:
    from lxml import etree

    from nometal_bmc.broker.client import Machines
    from nometal_bmc.redfish.systems import Systems

PROTOCOLS = {"scsi": "SAS", "sata": "SATA", "nvme": "NVMe", "virtio": "PCIe", "usb": "USB"}
CONTROLLER = "1"
NOT_ROTATING = "1"
"""How a definition says that a disk is an SSD."""
BLOCK_BYTES = 512
STATUS = {"State": "Enabled", "Health": "OK"}


@dataclass(frozen=True)
class Disk:
    """One of them, as its VM has it."""

    name: str
    bus: str
    capacity: int | None
    serial: str | None = None
    wwn: str | None = None
    vendor: str | None = None
    model: str | None = None
    rotation: str | None = None
    """In a minute, as the definition has it."""
    block_bytes: int = BLOCK_BYTES

    @property
    def media(self) -> str:
        """What a Linux that looks at it says."""
        return "SSD" if self.bus == "nvme" or self.rotation == NOT_ROTATING else "HDD"

    @property
    def identifiers(self) -> list[dict[str, str]]:
        return [{"DurableNameFormat": "NAA", "DurableName": self.wwn}] if self.wwn else []


def disk_of(element: etree._Element, sizes: dict[str, int | None]) -> Disk:
    def first(path: str) -> str | None:
        found = values(element, path)
        return found[0] if found else None

    name = first("target/@dev") or ""
    return Disk(
        name=name,
        bus=first("target/@bus") or "",
        capacity=sizes.get(name),
        serial=element.findtext("serial"),
        wwn=element.findtext("wwn"),
        vendor=element.findtext("vendor"),
        model=element.findtext("product"),
        rotation=first("target/@rotation_rate"),
        block_bytes=int(first("blockio/@logical_block_size") or BLOCK_BYTES),
    )


def by_bus(disks: list[Disk]) -> dict[str, list[Disk]]:
    return {bus: [disk for disk in disks if disk.bus == bus] for bus in dict.fromkeys(disk.bus for disk in disks)}


def show_simple(uuid: str, bus: str, disks: list[Disk]) -> dict[str, Any]:
    return {
        "@odata.type": "#SimpleStorage.v1_2_0.SimpleStorage",
        "@odata.id": f"{_system(uuid)}/SimpleStorage/{bus}",
        "Id": bus,
        "Name": f"{bus} Controller",
        "Devices": [{"Name": disk.name, "CapacityBytes": disk.capacity, "Status": STATUS} for disk in disks],
    }


def show_storage(uuid: str, bus: str, disks: list[Disk]) -> dict[str, Any]:
    path = _storage(uuid, bus)
    return {
        "@odata.type": "#Storage.v1_9_0.Storage",
        "@odata.id": path,
        "Id": bus,
        "Name": f"{bus} Storage",
        "Status": STATUS,
        "Controllers": {"@odata.id": f"{path}/Controllers"},
        "Drives": [{"@odata.id": f"{path}/Drives/{disk.name}"} for disk in disks],
        "Drives@odata.count": len(disks),
        "Volumes": {"@odata.id": f"{path}/Volumes"},
    }


def show_controller(uuid: str, bus: str) -> dict[str, Any]:
    return {
        "@odata.type": "#StorageController.v1_0_0.StorageController",
        "@odata.id": f"{_storage(uuid, bus)}/Controllers/{CONTROLLER}",
        "Id": CONTROLLER,
        "Name": f"{bus} Controller",
        "Status": STATUS,
        "SupportedDeviceProtocols": [PROTOCOLS[bus]] if bus in PROTOCOLS else [],
    }


def show_drive(uuid: str, disk: Disk) -> dict[str, Any]:
    path = _storage(uuid, disk.bus)
    return {
        "@odata.type": "#Drive.v1_4_0.Drive",
        "@odata.id": f"{path}/Drives/{disk.name}",
        "Id": disk.name,
        "Name": disk.name,
        "Manufacturer": disk.vendor,
        "Model": disk.model,
        "SerialNumber": disk.serial,
        "Identifiers": disk.identifiers,
        "CapacityBytes": disk.capacity,
        "BlockSizeBytes": disk.block_bytes,
        "MediaType": disk.media,
        "Protocol": PROTOCOLS.get(disk.bus),
        "Status": STATUS,
        "Links": {"Volumes": [{"@odata.id": f"{path}/Volumes/{disk.name}"}], "Volumes@odata.count": 1},
    }


def show_volume(uuid: str, disk: Disk) -> dict[str, Any]:
    path = _storage(uuid, disk.bus)
    return {
        "@odata.type": "#Volume.v1_3_1.Volume",
        "@odata.id": f"{path}/Volumes/{disk.name}",
        "Id": disk.name,
        "Name": disk.name,
        "CapacityBytes": disk.capacity,
        "BlockSizeBytes": disk.block_bytes,
        "VolumeType": "RawDevice",
        "Identifiers": disk.identifiers,
        "Status": STATUS,
        "Links": {"Drives": [{"@odata.id": f"{path}/Drives/{disk.name}"}], "Drives@odata.count": 1},
    }


class Views:
    """Those of sushy-tools and two more; the names of their arguments are those of its routes."""

    def __init__(self, domains: Machines, systems: Systems) -> None:
        self._domains = domains
        self._systems = systems

    def all_simple(self, identity: str) -> dict[str, Any]:
        path = f"{_system(identity)}/SimpleStorage"
        return collection("SimpleStorage", path, "Simple storage", list(self._disks(identity)))

    def simple(self, identity: str, simple_storage_id: str) -> dict[str, Any]:
        return show_simple(identity, simple_storage_id, self._disks_on(identity, simple_storage_id))

    def all_storage(self, identity: str) -> dict[str, Any]:
        return collection("Storage", f"{_system(identity)}/Storage", "Storage", list(self._disks(identity)))

    def storage(self, identity: str, storage_id: str) -> dict[str, Any]:
        return show_storage(identity, storage_id, self._disks_on(identity, storage_id))

    def controllers(self, identity: str, storage_id: str) -> dict[str, Any]:
        self._disks_on(identity, storage_id)
        path = f"{_storage(identity, storage_id)}/Controllers"
        return collection("StorageController", path, "Storage controllers", [CONTROLLER])

    def controller(self, identity: str, storage_id: str, controller_id: str) -> dict[str, Any]:
        self._disks_on(identity, storage_id)
        if controller_id != CONTROLLER:
            raise not_found(flask.request.path)
        return show_controller(identity, storage_id)

    def drive(self, identity: str, stg_id: str, drv_id: str) -> dict[str, Any]:
        return show_drive(identity, self._disk(identity, stg_id, drv_id))

    def volumes(self, identity: str, storage_id: str) -> dict[str, Any]:
        path = f"{_storage(identity, storage_id)}/Volumes"
        return collection("Volume", path, "Volumes", [disk.name for disk in self._disks_on(identity, storage_id)])

    def volume(self, identity: str, stg_id: str, vol_id: str) -> dict[str, Any]:
        return show_volume(identity, self._disk(identity, stg_id, vol_id))

    def _disks(self, identity: str) -> dict[str, list[Disk]]:
        uuid = self._systems.uuid(identity)
        sizes = self._domains.capacities(uuid)
        found = self._domains.read_present(uuid).findall("devices/disk[@device='disk']")
        return by_bus([disk_of(element, sizes) for element in found])

    def _disks_on(self, identity: str, bus: str) -> list[Disk]:
        disks = self._disks(identity).get(bus)
        if disks is None:
            raise not_found(flask.request.path)
        return disks

    def _disk(self, identity: str, bus: str, name: str) -> Disk:
        for disk in self._disks_on(identity, bus):
            if disk.name == name:
                return disk
        raise not_found(flask.request.path)


def add_views(app: flask.Flask, domains: Machines, systems: Systems) -> None:
    """Put ours in place of sushy-tools', which show what a configuration file says, and make volumes."""
    views = Views(domains, systems)
    app.view_functions.update(
        simple_storage_collection=views.all_simple,
        simple_storage=views.simple,
        storage_collection=views.all_storage,
        storage=views.storage,
        drive_resource=views.drive,
        volumes_collection=views.volumes,
        volume=views.volume,
    )
    path = f"{ROOT}/Systems/<identity>/Storage/<storage_id>/Controllers"
    app.add_url_rule(path, "storage_controllers", views.controllers, methods=["GET"])
    app.add_url_rule(f"{path}/<controller_id>", "storage_controller", views.controller, methods=["GET"])


def _system(uuid: str) -> str:
    return f"{ROOT}/Systems/{uuid}"


def _storage(uuid: str, bus: str) -> str:
    return f"{_system(uuid)}/Storage/{bus}"
