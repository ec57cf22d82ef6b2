# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a manager is reached: its protocols, and its one network interface, which is the service's."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import flask

from nometal_bmc.answers import not_found
from nometal_bmc.redfish.list_views import ROOT, collection

if TYPE_CHECKING:
    from nometal_bmc.config.reading import CurrentConfig
    from nometal_bmc.config.settings import Config
    from nometal_bmc.redfish.systems import Systems

NIC = "BMC"


def show_protocols(config: Config, uuid: str) -> dict[str, Any]:
    port = config.listen[0].port if config.listen else None
    ipmi = next((bmc.port for bmc in config.ipmi if bmc.uuid == uuid), None)
    return {
        "@odata.type": "#ManagerNetworkProtocol.v1_2_0.ManagerNetworkProtocol",
        "@odata.id": f"{ROOT}/Managers/{uuid}/NetworkProtocol",
        "Id": "NetworkProtocol",
        "Name": "Network protocols",
        "Status": {"State": "Enabled", "Health": "OK"},
        "HostName": None,
        "FQDN": None,
        "HTTP": _protocol(None if config.tls else port),
        "HTTPS": _protocol(port if config.tls else None),
        "IPMI": _protocol(ipmi),
    }


def _protocol(port: int | None) -> dict[str, Any]:
    return {"ProtocolEnabled": port is not None, "Port": port}


def show_nics(uuid: str) -> dict[str, Any]:
    return collection("EthernetInterface", _path(uuid), "Network interfaces", [NIC])


def show_nic(config: Config, uuid: str) -> dict[str, Any]:
    """With the addresses that are the hypervisor's."""
    addresses = [ip_address(listen.address) for listen in config.listen]
    return {
        "@odata.type": "#EthernetInterface.v1_4_0.EthernetInterface",
        "@odata.id": f"{_path(uuid)}/{NIC}",
        "Id": NIC,
        "Name": "Network interface",
        "Status": {"State": "Enabled", "Health": "OK"},
        "InterfaceEnabled": True,
        "LinkStatus": "LinkUp",
        "IPv4Addresses": [_address(address) for address in addresses if address.version == 4],  # noqa: PLR2004
        "IPv6Addresses": [_address(address) for address in addresses if address.version == 6],  # noqa: PLR2004
    }


def _address(address: object) -> dict[str, Any]:
    return {"Address": str(address), "AddressOrigin": "Static"}


def _path(uuid: str) -> str:
    return f"{ROOT}/Managers/{uuid}/EthernetInterfaces"


def add_views(app: flask.Flask, current: CurrentConfig, systems: Systems) -> None:
    """Add what sushy-tools does not have."""

    def protocols(identity: str) -> dict[str, Any]:
        return show_protocols(current.config, systems.uuid(identity))

    def nics(identity: str) -> dict[str, Any]:
        return show_nics(systems.uuid(identity))

    def nic(identity: str, nic_id: str) -> dict[str, Any]:
        uuid = systems.uuid(identity)
        if nic_id != NIC:
            raise not_found(flask.request.path)
        return show_nic(current.config, uuid)

    manager = f"{ROOT}/Managers/<identity>"
    app.add_url_rule(f"{manager}/NetworkProtocol", "manager_protocols", protocols)
    app.add_url_rule(f"{manager}/EthernetInterfaces", "manager_nics", nics)
    app.add_url_rule(f"{manager}/EthernetInterfaces/<nic_id>", "manager_nic", nic)
