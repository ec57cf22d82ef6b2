# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""UpdateService: versions of firmware, and updates of them by the name of an image, which is not fetched."""

from __future__ import annotations

import re
import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit

import flask

from nometal_bmc.answers import Refused, not_found
from nometal_bmc.events.log import SETTINGS, now
from nometal_bmc.media.source import PORTS, place
from nometal_bmc.redfish.list_views import ROOT, collection
from nometal_bmc.redfish.wishes import PARAMETER, Kinds, checked, client, note, one_of

if TYPE_CHECKING:
    from nometal_bmc.bios.store import Store
    from nometal_bmc.events.log import EventLog
    from nometal_bmc.redfish.systems import Systems

SERVICE_PATH, TASKS_SERVICE_PATH = f"{ROOT}/UpdateService", f"{ROOT}/TaskService"
INVENTORY_PATH, TASKS_PATH = f"{SERVICE_PATH}/FirmwareInventory", f"{TASKS_SERVICE_PATH}/Tasks"
UPDATE_PATH = f"{SERVICE_PATH}/Actions/UpdateService.SimpleUpdate"
PROTOCOLS = ("HTTP", "HTTPS")
UPDATE: Kinds = {
    "ImageURI": (str,),
    "Targets": (list,),
    "TransferProtocol": (str,),
    "Username": (str,),
    "Password": (str,),
}
VERSION = re.compile(r"\d{1,9}(?:\.\d{1,9}){1,3}")
OF_BIOS = "BIOS-"
TARGET = re.compile(rf"(?:{ROOT}/Systems/([^/]+)(?:/BIOS)?|{INVENTORY_PATH}/{OF_BIOS}([^/]+))/?")
MOST_TASKS = 200


@dataclass(frozen=True)
class Task:
    """An update that is over."""

    account: str
    text: str
    time: str = field(default_factory=now)
    id: str = field(default_factory=lambda: secrets.token_hex(8))


class Tasks:
    """The last ones; a client looks at its task soon or never."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: OrderedDict[str, Task] = OrderedDict()

    def add(self, task: Task) -> None:
        with self._lock:
            self._tasks[task.id] = task
            if len(self._tasks) > MOST_TASKS:
                self._tasks.popitem(last=False)

    def of_client(self) -> list[Task]:
        account = flask.g.account
        with self._lock:
            return [task for task in self._tasks.values() if account.systems is None or task.account == account.name]


def show_service() -> dict[str, Any]:
    return {
        "@odata.type": "#UpdateService.v1_2_1.UpdateService",
        "@odata.id": SERVICE_PATH,
        "Id": "UpdateService",
        "Name": "Update Service",
        "Status": {"State": "Enabled", "Health": "OK"},
        "ServiceEnabled": True,
        "FirmwareInventory": {"@odata.id": INVENTORY_PATH},
        "Actions": {
            "#UpdateService.SimpleUpdate": {
                "target": UPDATE_PATH,
                "TransferProtocol@Redfish.AllowableValues": PROTOCOLS,
            }
        },
    }


def show_inventory(systems: Systems) -> dict[str, Any]:
    return collection(
        "SoftwareInventory", INVENTORY_PATH, "Firmware Inventory", [OF_BIOS + uuid for uuid in systems.systems]
    )


def show_firmware(store: Store, systems: Systems, name: str) -> dict[str, Any]:
    if not name.startswith(OF_BIOS) or name.removeprefix(OF_BIOS) not in systems.systems:
        raise not_found(f"{INVENTORY_PATH}/{name}")
    uuid = name.removeprefix(OF_BIOS)
    return {
        "@odata.type": "#SoftwareInventory.v1_2_0.SoftwareInventory",
        "@odata.id": f"{INVENTORY_PATH}/{name}",
        "Id": name,
        "Name": f"BIOS of {uuid}",
        "SoftwareId": "BIOS",
        "Version": store.read(uuid).version,
        "Updateable": True,
        "Status": {"State": "Enabled", "Health": "OK"},
        "RelatedItem@odata.count": 1,
        "RelatedItem": [{"@odata.id": f"{ROOT}/Systems/{uuid}/BIOS"}],
    }


def show_task(task: Task) -> dict[str, Any]:
    return {
        "@odata.type": "#Task.v1_2_0.Task",
        "@odata.id": f"{TASKS_PATH}/{task.id}",
        "Id": task.id,
        "Name": task.text,
        "TaskState": "Completed",
        "TaskStatus": "OK",
        "StartTime": task.time,
        "EndTime": task.time,
        "Messages": [],
    }


def show_tasks_service() -> dict[str, Any]:
    return {
        "@odata.type": "#TaskService.v1_1_1.TaskService",
        "@odata.id": TASKS_SERVICE_PATH,
        "Id": "TaskService",
        "Name": "Task Service",
        "Status": {"State": "Enabled", "Health": "OK"},
        "ServiceEnabled": True,
        "DateTime": now(),
        "CompletedTaskOverWritePolicy": "Oldest",
        "LifeCycleEventOnTaskStateChange": False,
        "Tasks": {"@odata.id": TASKS_PATH},
    }


def version_after(version: str, image: str) -> str:
    """The one in the image's name, or else the next one."""
    found = VERSION.findall(PurePosixPath(unquote(urlsplit(image).path)).name)
    if found:
        return str(found[-1])
    major, minor, *rest = version.split(".")
    return ".".join([major, str(int(minor) + 1), *rest])


def update(store: Store, systems: Systems, log: EventLog, body: dict[str, Any]) -> Task:
    """All targets or none."""
    asked = checked(body, UPDATE, words=PARAMETER)
    if not asked.get("ImageURI"):
        raise Refused(400, PARAMETER.missing, "ImageURI is missing.", prop="ImageURI")
    source = _split(asked["ImageURI"])
    if "TransferProtocol" in asked:
        one_of(asked["TransferProtocol"], PROTOCOLS, "TransferProtocol", PARAMETER)
    uuids = _targets(systems, asked.get("Targets"))
    note(ImageURI=place(source), Targets=" ".join(uuids))
    by = client()
    for uuid in uuids:
        with store.change(uuid) as machine:
            before, machine.version = machine.version, version_after(machine.version, asked["ImageURI"])
            text = f"BIOS updated from {before} to {machine.version} with {place(source)}"
        log.add(uuid, SETTINGS, text, by)
    return Task(by.account, f"Update with {place(source)}")


def _split(uri: str) -> SplitResult:
    try:
        parts = urlsplit(uri)
        valid = parts.scheme in PORTS and bool(parts.hostname) and uri.isprintable()
    except ValueError:
        valid = False
    if not valid:
        text = "ImageURI has to be a URL with http or https."
        raise Refused(400, "ActionParameterValueFormatError", text, prop="ImageURI")
    return parts


def _targets(systems: Systems, named: list[Any] | None) -> list[str]:
    if not named:
        if len(systems.systems) == 1:
            return systems.systems
        text = "Targets is missing: there are several systems. It must be a list of paths, as of systems."
        raise Refused(400, PARAMETER.missing, text, prop="Targets")
    found = [TARGET.fullmatch(path) if isinstance(path, str) else None for path in named]
    uuids = [match[1] or match[2] for match in found if match]
    if len(uuids) < len(named) or not set(uuids) <= set(systems.systems):
        text = f"Targets can be paths of systems, of their BIOS, or what {INVENTORY_PATH} lists."
        raise Refused(400, PARAMETER.not_in_list, text, prop="Targets")
    return list(dict.fromkeys(uuids))


def add_views(app: flask.Flask, store: Store, systems: Systems, log: EventLog) -> None:
    """Ours in place of sushy-tools', which change what every client may name."""
    tasks = Tasks()

    def simple_update() -> flask.Response:
        task = update(store, systems, log, flask.request.json)
        tasks.add(task)
        response = flask.jsonify(show_task(task))
        response.status_code = 202
        response.headers["Location"] = f"{TASKS_PATH}/{task.id}"
        return response

    def task(task_id: str) -> dict[str, Any]:
        for each in tasks.of_client():
            if each.id == task_id:
                return show_task(each)
        raise not_found(f"{TASKS_PATH}/{task_id}")

    app.view_functions.update(
        {
            "UpdateService.update_service_resource": lambda: flask.jsonify(show_service()),
            "UpdateService.update_service_simple_update": simple_update,
            "simple_task_service": lambda: flask.jsonify(show_tasks_service()),
        }
    )
    add = app.add_url_rule
    add(INVENTORY_PATH, "firmware_inventory", lambda: show_inventory(systems), methods=["GET"])
    add(f"{INVENTORY_PATH}/<name>", "firmware", lambda name: show_firmware(store, systems, name), methods=["GET"])
    add(
        TASKS_PATH,
        "tasks",
        lambda: collection("Task", TASKS_PATH, "Tasks", [t.id for t in tasks.of_client()]),
        methods=["GET"],
    )
    add(f"{TASKS_PATH}/<task_id>", "task", task, methods=["GET"])
