# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manager of a system, which is its BMC: its links, and its clock."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import flask

from nometal_bmc.answers import Refused
from nometal_bmc.config import VERSION
from nometal_bmc.events.log import SETTINGS
from nometal_bmc.machine import notes
from nometal_bmc.redfish.service_views import CHASSIS_PATH
from nometal_bmc.redfish.wishes import Kinds, becomes_event, checked, note, noted

if TYPE_CHECKING:
    from nometal_bmc.broker.client import Machines

CLOCK: Kinds = {"DateTime": (str,), "DateTimeLocalOffset": (str,)}
FIXED = ("Id", "Name", "UUID", "ManagerType", "Status", "PowerState", "FirmwareVersion")
YEARS = range(1970, 2200)
LAST_ZONE = 14  # hours from Greenwich
OFFSET = re.compile(r"([+-])([0-9]{2}):([0-5][0-9])")


def show(domains: Machines, uuid: str) -> dict[str, Any]:
    """The resource."""
    zone, ahead = _clock(notes.read(domains.read(uuid)))
    now = datetime.now(timezone.utc) + timedelta(seconds=ahead)
    return {
        "@odata.type": "#Manager.v1_3_1.Manager",
        "@odata.id": f"/redfish/v1/Managers/{uuid}",
        "Id": uuid,
        "UUID": uuid,
        "Name": f"{domains.names[uuid]}-Manager",
        "ManagerType": "BMC",
        "Model": "nometal-bmc",
        "FirmwareVersion": VERSION,
        "Status": {"State": "Enabled", "Health": "OK"},
        "PowerState": "On",
        "DateTime": now.astimezone(_zone(zone)).isoformat(timespec="seconds"),
        "DateTimeLocalOffset": zone,
        "NetworkProtocol": {"@odata.id": f"/redfish/v1/Managers/{uuid}/NetworkProtocol"},
        "EthernetInterfaces": {"@odata.id": f"/redfish/v1/Managers/{uuid}/EthernetInterfaces"},
        "VirtualMedia": {"@odata.id": f"/redfish/v1/Systems/{uuid}/VirtualMedia"},
        "LogServices": {"@odata.id": f"/redfish/v1/Managers/{uuid}/LogServices"},
        "Links": {
            "ManagerForServers": [{"@odata.id": f"/redfish/v1/Systems/{uuid}"}],
            "ManagerForChassis": [{"@odata.id": CHASSIS_PATH}],
        },
    }


def change(domains: Machines, uuid: str, wanted: dict[str, Any]) -> None:
    """Set the clock: what is kept is by how much it goes before the host's."""
    wishes = checked(wanted, CLOCK, read_only=FIXED)
    if "DateTimeLocalOffset" in wishes:
        _zone(wishes["DateTimeLocalOffset"])
    ahead = _ahead(wishes["DateTime"]) if "DateTime" in wishes else None
    note(**wishes)
    becomes_event(SETTINGS, f"Clock set: {noted()}")
    domains.set_clock(uuid, wishes.get("DateTimeLocalOffset"), None if ahead is None else round(ahead))


def add_views(app: flask.Flask, domains: Machines) -> None:
    """Put ours in place of sushy-tools' view of a manager."""

    def manager(identity: str) -> flask.Response:
        if flask.request.method == "PATCH":
            change(domains, identity, flask.request.json)
            return flask.Response(status=204)
        return flask.jsonify(show(domains, identity))

    app.view_functions["manager_resource"] = manager


def _clock(noted: dict[str, str]) -> tuple[str, float]:
    return noted.get("zone", "+00:00"), float(noted.get("clock", 0))


def _ahead(text: str) -> float:
    try:
        wanted = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        raise _wrong("DateTime", "a date and a time, such as 2026-11-18T19:42:00+00:00") from error
    if wanted.year not in YEARS:
        raise _wrong("DateTime", f"in the years {YEARS[0]} to {YEARS[-1]}")
    if wanted.tzinfo is None:
        wanted = wanted.replace(tzinfo=timezone.utc)
    return (wanted - datetime.now(timezone.utc)).total_seconds()


def _zone(text: str) -> timezone:
    found = OFFSET.fullmatch(text)
    if not found or int(found[2]) > LAST_ZONE:
        raise _wrong("DateTimeLocalOffset", "an offset such as +02:00")
    offset = timedelta(hours=int(found[2]), minutes=int(found[3]))
    return timezone(-offset if found[1] == "-" else offset)


def _wrong(prop: str, should: str) -> Refused:
    return Refused(400, "PropertyValueFormatError", f"{prop} has to be {should}.", prop=prop)
