# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a lab has one of: the root of its service, and the enclosure that all its systems are in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

import flask

from nometal_bmc.answers import not_found
from nometal_bmc.redfish.list_views import ROOT, collection

if TYPE_CHECKING:
    from nometal_bmc.config.reading import CurrentConfig
    from nometal_bmc.redfish.systems import Systems

CHASSIS = "Enclosure"
CHASSIS_PATH = f"{ROOT}/Chassis/{CHASSIS}"
PARTS = (
    "Systems",
    "Managers",
    "Chassis",
    "SessionService",
    "AccountService",
    "EventService",
    "UpdateService",
    "Registries",
)
ODATA_PATH, METADATA_PATH = f"{ROOT}/odata", f"{ROOT}/$metadata"
SCHEMAS = {
    "ServiceRoot": "v1_3_1",
    "ComputerSystemCollection": "",
    "ComputerSystem": "v1_14_0",
    "ManagerCollection": "",
    "Manager": "v1_3_1",
    "ManagerNetworkProtocol": "v1_2_0",
    "ChassisCollection": "",
    "Chassis": "v1_5_0",
    "SessionService": "v1_1_3",
    "SessionCollection": "",
    "Session": "v1_1_0",
    "VirtualMediaCollection": "",
    "VirtualMedia": "v1_4_0",
    "SecureBoot": "v1_0_3",
    "ProcessorCollection": "",
    "Processor": "v1_0_4",
    "SimpleStorageCollection": "",
    "SimpleStorage": "v1_2_0",
    "StorageCollection": "",
    "Storage": "v1_9_0",
    "StorageControllerCollection": "",
    "StorageController": "v1_0_0",
    "Drive": "v1_4_0",
    "VolumeCollection": "",
    "Volume": "v1_3_1",
    "EthernetInterfaceCollection": "",
    "EthernetInterface": "v1_4_0",
    "Bios": "v1_0_3",
    "BootOptionCollection": "",
    "BootOption": "v1_0_0",
    "Settings": "v1_2_0",
    "AttributeRegistry": "v1_2_0",
    "MessageRegistryFileCollection": "",
    "MessageRegistryFile": "v1_1_0",
    "UpdateService": "v1_2_1",
    "SoftwareInventoryCollection": "",
    "SoftwareInventory": "v1_2_0",
    "TaskService": "v1_1_1",
    "TaskCollection": "",
    "Task": "v1_2_0",
    "AccountService": "v1_3_0",
    "ManagerAccountCollection": "",
    "ManagerAccount": "v1_1_1",
    "RoleCollection": "",
    "Role": "v1_2_0",
    "LogServiceCollection": "",
    "LogService": "v1_1_0",
    "LogEntryCollection": "",
    "LogEntry": "v1_3_0",
    "EventService": "v1_1_0",
    "EventDestinationCollection": "",
    "EventDestination": "v1_3_0",
    "Event": "v1_2_0",
    "Message": "v1_0_5",
}
METADATA = """<?xml version="1.0" encoding="UTF-8"?>
<edmx:Edmx xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx" Version="4.0">
{references}<edmx:DataServices>
<Schema xmlns="http://docs.oasis-open.org/odata/ns/edm" Namespace="Service">
<EntityContainer Name="Service" Extends="ServiceRoot.v1_3_1.ServiceContainer"/>
</Schema>
</edmx:DataServices>
</edmx:Edmx>
"""
REFERENCE = """<edmx:Reference Uri="http://redfish.dmtf.org/schemas/v1/{name}_v1.xml">
{includes}</edmx:Reference>
"""
INCLUDE = '<edmx:Include Namespace="{namespace}"/>\n'


def show_root(uuid: str) -> dict[str, Any]:
    """All that can be seen without a login."""
    return {
        "@odata.type": "#ServiceRoot.v1_3_1.ServiceRoot",
        "@odata.id": f"{ROOT}/",
        "Id": "RootService",
        "Name": "nometal.ipi BMCs",
        "UUID": uuid,
        "Product": "nometal-bmc",
        "RedfishVersion": "1.5.0",
        **{part: {"@odata.id": f"{ROOT}/{part}"} for part in PARTS},
        "Tasks": {"@odata.id": f"{ROOT}/TaskService"},
        "Links": {"Sessions": {"@odata.id": f"{ROOT}/SessionService/Sessions"}},
    }


def show_odata() -> dict[str, Any]:
    """The same for clients that know OData only."""
    entries = {"Service": f"{ROOT}/", **{part: f"{ROOT}/{part}" for part in PARTS}}
    return {
        "@odata.context": METADATA_PATH,
        "value": [{"name": name, "kind": "Singleton", "url": url} for name, url in entries.items()],
    }


def metadata() -> flask.Response:
    """Where the schemas are that our resources follow; the one document that is not JSON."""
    references = "".join(_reference(name, version) for name, version in SCHEMAS.items())
    return flask.Response(METADATA.format(references=references), content_type="application/xml")


def _reference(name: str, version: str) -> str:
    namespaces = [name, f"{name}.{version}"] if version else [name]
    includes = "".join(INCLUDE.format(namespace=namespace) for namespace in namespaces)
    return REFERENCE.format(name=name, includes=includes)


def show_all_chassis() -> dict[str, Any]:
    """The collection."""
    return collection("Chassis", f"{ROOT}/Chassis", "Chassis", [CHASSIS])


def show_chassis(systems: list[str], serial: str, *, whole: bool) -> dict[str, Any]:
    """The enclosure, with those systems that the client may see; whole: all that are there."""
    log = {"LogServices": {"@odata.id": f"{CHASSIS_PATH}/LogServices"}} if whole else {}
    return {
        "@odata.type": "#Chassis.v1_5_0.Chassis",
        "@odata.id": CHASSIS_PATH,
        "Id": CHASSIS,
        "Name": "Chassis",
        "ChassisType": "Enclosure",
        "Manufacturer": "nometal.ipi",
        "Model": "Lab",
        "SerialNumber": serial,
        "PowerState": "On",
        "Status": {"State": "Enabled", "Health": "OK"},
        **log,
        "Links": {
            "ComputerSystems": [{"@odata.id": f"{ROOT}/Systems/{uuid}"} for uuid in systems],
            "ManagedBy": [{"@odata.id": f"{ROOT}/Managers/{uuid}"} for uuid in systems],
        },
    }


def add_views(app: flask.Flask, current: CurrentConfig, systems: Systems) -> None:
    """Put ours in place of sushy-tools', which describe another server."""

    def identity_of_lab() -> str:
        return str(uuid5(NAMESPACE_URL, f"urn:nometal:ipi:{current.config.lab}"))

    def chassis(identity: str) -> flask.Response:
        if identity != CHASSIS:
            raise not_found(flask.request.path)
        return flask.jsonify(show_chassis(systems.systems, identity_of_lab(), whole=flask.g.account.systems is None))

    app.view_functions.update(
        root_resource=lambda: flask.jsonify(show_root(identity_of_lab())),
        chassis_collection_resource=lambda: flask.jsonify(show_all_chassis()),
        chassis_resource=chassis,
    )
