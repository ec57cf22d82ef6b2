# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes with their ports, as `baremetal create` reads them into Ironic."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.export.rack import redfish_of
from ansible_collections.nometal.ipi.plugins.module_utils._core.sizes import GIB
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rules.hints import BY_PATH
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BOOT_MODES, BmcProtocol, Firmware

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._bmc.credentials import Login
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.export.rack import Rack

FILE = "nodes.json"
CAPABILITIES = {
    "UEFI": "boot_mode:uefi",
    "UEFISecureBoot": "boot_mode:uefi,secure_boot:true",
    "legacy": "boot_mode:bios",
}
"""By the boot modes of OpenShift."""
HINTS = {
    "deviceName": ("name", "s== {}"),
    "hctl": ("hctl", "s== {}"),
    "model": ("model", "<in> {}"),
    "vendor": ("vendor", "<in> {}"),
    "serialNumber": ("serial", "s== {}"),
    "minSizeGigabytes": ("size", ">= {}"),
    "wwn": ("wwn", "s== {}"),
    "rotational": ("rotational", "{}"),
}
"""By the names that OpenShift has for them: Ironic's names, and how it compares."""
LINK = ("by_path", "s== {}")
"""Likewise of a device by its path. Ironic's name of a device is that of the kernel."""


def files(rack: Rack) -> dict[str, str]:
    nodes = [_node(node, rack.logins[node["name"]], rack) for node in rack.nodes]
    return {FILE: json.dumps({"nodes": nodes}, indent=2) + "\n"}


def _node(node: Mapping[str, Any], login: Login, rack: Rack) -> dict[str, Any]:
    protocol = BmcProtocol(node["bmc"]["protocol"])
    return {
        "name": node["name"],
        "uuid": node["uuid"],
        "driver": "ipmi" if protocol == BmcProtocol.IPMI else "redfish",
        **({"boot_interface": "redfish-virtual-media"} if protocol.has_virtual_media else {}),
        "driver_info": _by_ipmi(node, login) if protocol == BmcProtocol.IPMI else _by_redfish(node, login, rack),
        "properties": {
            "cpu_arch": "x86_64",
            "cpus": node["vcpus"],
            "memory_mb": node["memory_mib"],
            "local_gb": max(disk["size_bytes"] for disk in node["disks"]) // GIB,
            "capabilities": CAPABILITIES[BOOT_MODES[Firmware(node["firmware"])]],
            "root_device": dict(_hint(name, value) for name, value in node["root_device_hints"].items()),
        },
        "ports": [{"address": nic["mac"], "pxe_enabled": nic["mac"] == node["boot_mac"]} for nic in node["nics"]],
    }


def _by_redfish(node: Mapping[str, Any], login: Login, rack: Rack) -> dict[str, Any]:
    service, system = redfish_of(node)
    return {
        "redfish_address": service,
        "redfish_system_id": system,
        "redfish_username": login.username,
        "redfish_password": login.password,
        **({"redfish_verify_ca": rack.ca_file or False} if rack.lab["bmc"]["tls"] else {}),
    }


def _by_ipmi(node: Mapping[str, Any], login: Login) -> dict[str, Any]:
    return {
        "ipmi_address": node["bmc"]["host"],
        "ipmi_port": node["bmc"]["port"],
        "ipmi_username": login.username,
        "ipmi_password": login.password,
    }


def _hint(name: str, value: object) -> tuple[str, str]:
    own, comparison = LINK if str(value).startswith(BY_PATH) else HINTS[name]
    return own, comparison.format(str(value).lower() if isinstance(value, bool) else value)
