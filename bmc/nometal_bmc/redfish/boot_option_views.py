# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boot order of a system: what it can boot from, as lab_spec and the definition of its VM have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flask

from nometal_bmc.answers import not_found
from nometal_bmc.machine.boot import Option, options
from nometal_bmc.redfish.list_views import ROOT, collection

if TYPE_CHECKING:
    from lxml import etree

    from nometal_bmc.broker.client import Machines

NAMES = {"Pxe": "Network card", "Cd": "CD-ROM drive", "Hdd": "Disk"}


def of_boot(root: etree._Element, uuid: str) -> dict[str, Any]:
    """What the boot of a system shows of it."""
    return {
        "BootOptions": {"@odata.id": f"{ROOT}/Systems/{uuid}/BootOptions"},
        "BootOrder": [option.reference for option in options(root) if option.place is not None],
    }


def show(option: Option, uuid: str) -> dict[str, Any]:
    name = f"{NAMES[option.target]} {option.device}"
    related = [{"@odata.id": f"{ROOT}/Systems/{uuid}/EthernetInterfaces/{option.device}"}]
    return {
        "@odata.type": "#BootOption.v1_0_0.BootOption",
        "@odata.id": f"{ROOT}/Systems/{uuid}/BootOptions/{option.reference}",
        "Id": option.reference,
        "Name": name,
        "DisplayName": name,
        "BootOptionReference": option.reference,
        "BootOptionEnabled": option.place is not None,
        "Alias": option.target,
        **({"RelatedItem": related, "RelatedItem@odata.count": 1} if option.target == "Pxe" else {}),
    }


def add_views(app: flask.Flask, domains: Machines) -> None:
    """Add the routes, which sushy-tools has not got."""

    def all_options(identity: str) -> dict[str, Any]:
        references = [option.reference for option in options(domains.read(identity))]
        return collection("BootOption", f"{ROOT}/Systems/{identity}/BootOptions", "Boot Options", references)

    def one_option(identity: str, reference: str) -> dict[str, Any]:
        for option in options(domains.read(identity)):
            if option.reference == reference:
                return show(option, identity)
        raise not_found(flask.request.path)

    path = f"{ROOT}/Systems/<identity>/BootOptions"
    app.add_url_rule(path, "boot_options", all_options, methods=["GET"])
    app.add_url_rule(f"{path}/<reference>", "boot_option", one_option, methods=["GET"])
