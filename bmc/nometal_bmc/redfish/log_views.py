# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The event log as clients see it: a LogService of each system and its manager, and one of the enclosure."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import flask

from nometal_bmc.answers import not_found
from nometal_bmc.events.log import MOST_EVENTS
from nometal_bmc.redfish.list_views import ROOT, collection
from nometal_bmc.redfish.service_views import CHASSIS, CHASSIS_PATH
from nometal_bmc.redfish.wishes import EVENT, PARAMETER, checked, client

if TYPE_CHECKING:
    from collections.abc import Callable

    from nometal_bmc.events.log import Event, EventLog

NAME = "EventLog"
OF_A_SYSTEM = ("Systems", "Managers")
HTTP_ERRORS = 400


def show_all(owner: str) -> dict[str, Any]:
    """The collection, which has one log."""
    return collection("LogService", f"{owner}/LogServices", "Log Services", [NAME])


def show(owner: str) -> dict[str, Any]:
    path = f"{owner}/LogServices/{NAME}"
    return {
        "@odata.type": "#LogService.v1_1_0.LogService",
        "@odata.id": path,
        "Id": NAME,
        "Name": "Event Log",
        "LogEntryType": "Event",
        "MaxNumberOfRecords": MOST_EVENTS,
        "OverWritePolicy": "WrapsWhenFull",
        "DateTime": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "DateTimeLocalOffset": "+00:00",
        "ServiceEnabled": True,
        "Status": {"State": "Enabled", "Health": "OK"},
        "Entries": {"@odata.id": f"{path}/Entries"},
        "Actions": {"#LogService.ClearLog": {"target": f"{path}/Actions/LogService.ClearLog"}},
    }


def show_entries(owner: str, events: list[Event]) -> dict[str, Any]:
    """All of them at once, the oldest first: who has switched this off stands on one page."""
    return {
        "@odata.type": "#LogEntryCollection.LogEntryCollection",
        "@odata.id": f"{owner}/LogServices/{NAME}/Entries",
        "Name": "Log Entries",
        "Members@odata.count": len(events),
        "Members": [show_entry(owner, event) for event in events],
    }


def show_entry(owner: str, event: Event) -> dict[str, Any]:
    origin = f"{ROOT}/Systems/{event.system}" if event.system else CHASSIS_PATH
    return {
        "@odata.type": "#LogEntry.v1_3_0.LogEntry",
        "@odata.id": f"{owner}/LogServices/{NAME}/Entries/{event.id}",
        "Id": str(event.id),
        "Name": f"Log Entry {event.id}",
        "EntryType": "Event",
        "Severity": "Warning" if event.failed else "OK",
        "Created": event.time,
        "Message": event.message,
        "MessageArgs": event.arguments,
        "Links": {"OriginOfCondition": {"@odata.id": origin}},
    }


def add_views(app: flask.Flask, log: EventLog) -> None:
    """Add the routes. After each request, what it was for becomes an event, with its outcome."""
    for kind in OF_A_SYSTEM:
        _add_routes(app, log, f"{ROOT}/{kind}", _system_of)
    _add_routes(app, log, f"{ROOT}/Chassis", _nothing_of)

    def record(response: flask.Response) -> flask.Response:
        if EVENT in flask.request.environ:
            _record(log, response)
        return response

    app.after_request(record)


def _record(log: EventLog, response: flask.Response) -> None:
    kind, text = flask.request.environ[EVENT]
    failed = response.status_code >= HTTP_ERRORS
    if failed:
        text = f"{text} failed ({response.get_json()['error']['message']})"
    system = (flask.request.view_args or {}).get("identity")
    log.add(system, kind, text, client(), failed=failed)


def _add_routes(app: flask.Flask, log: EventLog, owners: str, system_of: Callable[[str], str | None]) -> None:
    one = f"{owners}/<identity>/LogServices/{NAME}"

    def services(identity: str) -> dict[str, Any]:
        system_of(identity)
        return show_all(f"{owners}/{identity}")

    def service(identity: str) -> dict[str, Any]:
        system_of(identity)
        return show(f"{owners}/{identity}")

    def entries(identity: str) -> dict[str, Any]:
        return show_entries(f"{owners}/{identity}", log.events(system_of(identity)))

    def entry(identity: str, number: str) -> dict[str, Any]:
        for event in log.events(system_of(identity)):
            if str(event.id) == number:
                return show_entry(f"{owners}/{identity}", event)
        raise not_found(flask.request.path)

    def clear(identity: str) -> flask.Response:
        system = system_of(identity)
        checked(flask.request.json, {}, words=PARAMETER)
        log.clear(system, client())
        return flask.Response(status=204)

    routes: dict[str, Callable[..., Any]] = {
        f"{owners}/<identity>/LogServices": services,
        one: service,
        f"{one}/Entries": entries,
        f"{one}/Entries/<number>": entry,
    }
    for rule, view in routes.items():
        app.add_url_rule(rule, rule, view, methods=["GET"])
    action = f"{one}/Actions/LogService.ClearLog"
    app.add_url_rule(action, action, clear, methods=["POST"])


def _system_of(identity: str) -> str | None:
    uuid: str = flask.current_app.systems.uuid(identity)  # type: ignore[attr-defined]
    return uuid


def _nothing_of(identity: str) -> str | None:
    """The service's own log is for those who command all systems: it names everybody who tries to come in."""
    if identity != CHASSIS or flask.g.account.systems is not None:
        raise not_found(flask.request.path)
    return None
