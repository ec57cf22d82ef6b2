# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processors of a system: one, which has all of the VM's as its cores. An inspection counts its threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flask

from nometal_bmc.answers import not_found
from nometal_bmc.machine.definition import part
from nometal_bmc.redfish.list_views import collection

if TYPE_CHECKING:
    from nometal_bmc.broker.client import Machines

ONLY = "CPU0"
SETS = {"x86_64": ("x86", "x86-64"), "i686": ("x86", "x86"), "aarch64": ("ARM", "ARM-A64")}


def show_all(uuid: str) -> dict[str, Any]:
    """The collection."""
    return collection("Processor", f"/redfish/v1/Systems/{uuid}/Processors", "Processors", [ONLY])


def show(domains: Machines, uuid: str) -> dict[str, Any]:
    """The one."""
    root = domains.read_present(uuid)
    architecture, instructions = SETS.get(part(root, "os/type").get("arch", ""), ("OEM", "OEM"))
    cores = int(root.findtext("vcpu", "1"))
    return {
        "@odata.type": "#Processor.v1_0_4.Processor",
        "@odata.id": f"/redfish/v1/Systems/{uuid}/Processors/{ONLY}",
        "Id": ONLY,
        "Name": "Processor",
        "Socket": "CPU 0",
        "ProcessorType": "CPU",
        "ProcessorArchitecture": architecture,
        "InstructionSet": instructions,
        "Model": root.findtext("cpu/model", "virtual"),
        "TotalCores": cores,
        "TotalThreads": cores,
        "Status": {"State": "Enabled", "Health": "OK"},
    }


def add_views(app: flask.Flask, domains: Machines) -> None:
    """Put ours in place of sushy-tools' views of processors."""

    def collection(identity: str) -> flask.Response:
        domains.active(identity)  # it is there, or that is refused
        return flask.jsonify(show_all(identity))

    def processor(identity: str, processor_id: str) -> flask.Response:
        if processor_id != ONLY:
            raise not_found(flask.request.path)
        return flask.jsonify(show(domains, identity))

    app.view_functions.update(processors_collection=collection, processor=processor)
