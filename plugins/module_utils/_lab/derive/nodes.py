# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes of the model with their BMCs, and the resources that they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.addresses import V6
from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Address, Network
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import MIB
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import to_dict
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.declared import machine_networks
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.lab import Lab
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.networks import machine_network_name
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.node_list import (
    Node,
    bmc_port,
    disk_serial,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import (
    ROTATING_BUSES,
    BmcProtocol,
    NetworkRole,
    PowerRestore,
    Role,
    Topology,
)


def nodes(lab: Lab) -> list[dict[str, Any]]:
    return [_node(lab, node) for node in lab.nodes]


def _node(lab: Lab, node: Node) -> dict[str, Any]:
    disks = [_disk(lab, node, number) for number in range(len(node.disks))]
    return {
        "name": node.name,
        "role": node.role,
        "installer": node.role != Role.SPARE,
        "hypervisor": node.hypervisor,
        "vm_name": lab.identity.vm_name(node.name),
        "uuid": node.uuid,
        "vcpus": node.vcpus,
        "memory_mib": node.memory // MIB,
        "disks": disks,
        "nics": _nics(lab, node),
        "boot_mac": node.provisioning_mac or node.mac,
        "ips": lab.ips(node),
        "fqdn": lab.fqdn(node.name),
        "firmware": node.firmware,
        "bmc": _node_bmc(lab, node),
        "root_device_hints": _hints(node, disks[0]["serial"]),
        "network_config": node.override.network_config,
    }


def _disk(lab: Lab, node: Node, number: int) -> dict[str, Any]:
    disk = node.disks[number]
    return {
        "name": f"{lab.identity.vm_name(node.name)}-{number}.{disk.format}",
        "size_bytes": disk.size,
        "bus": disk.bus,
        "format": disk.format,
        "serial": disk_serial(lab.identity, node, number),
        "rotational": bool(disk.rotational) if disk.bus in ROTATING_BUSES else None,
    }


def _nics(lab: Lab, node: Node) -> list[dict[str, Any]]:
    """A node with a provisioning network boots from it first, by PXE."""
    own, provisioning = lab.spec.machine_network, lab.spec.provisioning_network
    direct = own.topology == Topology.DIRECT
    machine = {
        "role": NetworkRole.MACHINE,
        "mac": node.mac,
        "network": machine_network_name(lab) if direct else None,
        "bridge": None if direct else own.bridge,
    }
    if provisioning is None:
        return [{**machine, "boot_order": 1}]
    pxe = {
        "role": NetworkRole.PROVISIONING,
        "mac": node.provisioning_mac,
        "network": provisioning.bridge,
        "bridge": None,
    }
    return [{**pxe, "boot_order": 1}, {**machine, "boot_order": 2}]


def _hints(node: Node, first_serial: str) -> dict[str, Any]:
    own = node.override.root_device_hints
    if own is None:
        return {"serialNumber": first_serial}
    return {name: value for name, value in asdict(own).items() if value is not None}


def bmc(lab: Lab) -> dict[str, Any]:
    """BMCs listen on the host's addresses inside the lab only."""
    own = lab.spec.bmc
    by_ipmi = own.protocol == BmcProtocol.IPMI
    ports = sorted({node.bmc_port for node in lab.nodes}) if by_ipmi else [bmc_port(lab.spec)]
    listen = [str(item) for item in _listen(lab)]
    services = [{"protocol": "udp" if by_ipmi else "tcp", "port": port} for port in ports]
    return {
        "protocol": own.protocol,
        "tls": _speaks_tls(lab),
        "port": bmc_port(lab.spec),
        "ports": ports,
        "host": str(_bmc_host(lab)),
        "listen": listen,
        "services": services,
        "restart_timeout": own.restart_timeout,
        "power_restore": own.power_restore
        or (PowerRestore.LAST_STATE if lab.spec.install else PowerRestore.ALWAYS_OFF),
        "faults": _faults(lab),
        "endpoints": [{"address": address, **service} for address in listen for service in services],
        "clients": [str(network) for network in own.clients],
        "media_networks": [str(network) for network in _media_networks(lab)],
        "url": None
        if own.protocol == BmcProtocol.IPMI
        else f"{_web_scheme(lab)}://{_authority(lab, bmc_port(lab.spec))}",
    }


def _faults(lab: Lab) -> dict[str, Any]:
    """By the names of VMs, without what is not given."""
    own = lab.spec.bmc.faults
    rules = [replace(rule, nodes=tuple(map(lab.identity.vm_name, rule.nodes))) for rule in own.rules]
    given = [{name: value for name, value in to_dict(rule).items() if value is not None} for rule in rules]
    return {"seed": own.seed, "rules": given}


def _listen(lab: Lab) -> list[Address]:
    provisioning = [lab.provisioning.host] if lab.provisioning else []
    return [*(family.gateway for family in lab.families), *provisioning]


def _media_networks(lab: Lab) -> Sequence[Network]:
    declared = lab.spec.bmc.media_networks
    return machine_networks(lab.spec) if declared is None else declared


def _bmc_host(lab: Lab) -> Address:
    return lab.primary.gateway


def _node_bmc(lab: Lab, node: Node) -> dict[str, Any]:
    return {
        "protocol": lab.spec.bmc.protocol,
        "host": str(_bmc_host(lab)),
        "port": node.bmc_port,
        "address": _bmc_address(lab, node),
    }


def _bmc_address(lab: Lab, node: Node) -> str:
    """In the format of install-config.yaml."""
    authority, protocol = _authority(lab, node.bmc_port), lab.spec.bmc.protocol
    if protocol == BmcProtocol.IPMI:
        return f"ipmi://{authority}"
    return f"{protocol}+{_web_scheme(lab)}://{authority}/redfish/v1/Systems/{node.uuid}"


def _authority(lab: Lab, port: int) -> str:
    host = _bmc_host(lab)
    return f"[{host}]:{port}" if host.version == V6 else f"{host}:{port}"


def _speaks_tls(lab: Lab) -> bool:
    return lab.spec.bmc.tls is not False and lab.spec.bmc.protocol != BmcProtocol.IPMI


def _web_scheme(lab: Lab) -> str:
    return "https" if _speaks_tls(lab) else "http"


def totals(lab: Lab) -> dict[str, Any]:
    by_host = {name: [node for node in lab.nodes if node.hypervisor == name] for name in lab.spec.hypervisors}
    return {
        "lab": _sum(lab.nodes),
        "hypervisors": {name: _sum(tuple(carried)) for name, carried in by_host.items()},
    }


def _sum(carried: tuple[Node, ...]) -> dict[str, int]:
    return {
        "nodes": len(carried),
        "vcpus": sum(node.vcpus for node in carried),
        "memory_mib": sum(node.memory for node in carried) // MIB,
        "disk_bytes": sum(disk.size for node in carried for disk in node.disks),
    }
