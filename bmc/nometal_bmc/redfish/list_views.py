# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collections: what they look like, and those of systems, managers and drives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flask

from nometal_bmc.media.drives import DEVICE

if TYPE_CHECKING:
    from nometal_bmc.redfish.systems import Systems

ROOT = "/redfish/v1"


def collection(kind: str, path: str, name: str, members: list[str]) -> dict[str, Any]:
    """The collection of what is of a kind; `members` are the last parts of their paths."""
    return {
        "@odata.type": f"#{kind}Collection.{kind}Collection",
        "@odata.id": path,
        "Name": name,
        "Members@odata.count": len(members),
        "Members": [{"@odata.id": f"{path}/{member}"} for member in members],
    }


def add_views(app: flask.Flask, systems: Systems) -> None:
    """Put ours in place of sushy-tools', whose copyright annotation is for mockups only."""

    def all_systems() -> flask.Response:
        return flask.jsonify(collection("ComputerSystem", f"{ROOT}/Systems", "Systems", systems.systems))

    def all_managers() -> flask.Response:
        return flask.jsonify(collection("Manager", f"{ROOT}/Managers", "Managers", systems.systems))

    def all_drives(identity: str) -> flask.Response:
        path = f"{ROOT}/Systems/{systems.uuid(identity)}/VirtualMedia"
        return flask.jsonify(collection("VirtualMedia", path, "Virtual Media", [DEVICE]))

    app.view_functions.update(
        {
            "system_collection_resource": all_systems,
            "manager_collection_resource": all_managers,
            "VirtualMedia.virtual_media_collection_resource": all_drives,
        }
    )
