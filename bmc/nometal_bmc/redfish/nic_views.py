# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network interfaces of a system, by their MAC addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flask

from nometal_bmc.answers import not_found
from nometal_bmc.machine.definition import values
from nometal_bmc.redfish.list_views import collection

if TYPE_CHECKING:
    from lxml import etree

    from nometal_bmc.broker.client import Machines

SPEEDS = {"e1000": 1000, "e1000e": 1000, "igb": 1000, "rtl8139": 100}
"""What these models pretend to. Others, such as virtio, have no speed."""


def show_all(domains: Machines, uuid: str) -> dict[str, Any]:
    """The collection."""
    addresses = values(domains.read_present(uuid), "devices/interface/mac/@address")
    return collection("EthernetInterface", _path(uuid), "Network interfaces", addresses)


def show(domains: Machines, uuid: str, address: str) -> dict[str, Any]:
    """One of them."""
    root, live = domains.read_both(uuid)
    for nic in (root if live is None else live).iterfind("devices/interface"):
        if values(nic, "mac/@address") == [address]:
            return _nic(nic, address, _path(uuid), live is not None)
    raise not_found(flask.request.path)


def _nic(nic: etree._Element, address: str, path: str, runs: bool) -> dict[str, Any]:
    [model] = values(nic, "model/@type") or [""]
    is_up = runs and values(nic, "link/@state") != ["down"]
    return {
        "@odata.type": "#EthernetInterface.v1_4_0.EthernetInterface",
        "@odata.id": f"{path}/{address}",
        "Id": address,
        "Name": f"VNIC {address}",
        "Status": {"State": "Enabled", "Health": "OK"},
        "InterfaceEnabled": True,
        "LinkStatus": "LinkUp" if is_up else "LinkDown",
        "SpeedMbps": SPEEDS.get(model),
        "PermanentMACAddress": address,
        "MACAddress": address,
    }


def _path(uuid: str) -> str:
    return f"/redfish/v1/Systems/{uuid}/EthernetInterfaces"


def add_views(app: flask.Flask, domains: Machines) -> None:
    """Put ours in place of sushy-tools', which know no more than the address."""

    def nics(identity: str) -> flask.Response:
        return flask.jsonify(show_all(domains, identity))

    def nic(identity: str, nic_id: str) -> flask.Response:
        return flask.jsonify(show(domains, identity, nic_id))

    app.view_functions.update(ethernet_interfaces_collection=nics, ethernet_interface=nic)
