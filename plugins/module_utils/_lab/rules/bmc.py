# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the management controllers and what network and firmware they can serve."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.nometal.ipi.plugins.module_utils._core.addresses import family_name
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Network
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import HIGHEST_PORT
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import (
    already_used,
    must_be,
    must_not_overlap,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.declared import machine_networks
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.parsed_lab import ParsedLab
from ansible_collections.nometal.ipi.plugins.module_utils._lab.faults import ANY_PATH, NOT_BY_IPMI
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BmcProtocol, Firmware


def protocol(lab: ParsedLab) -> Iterator[Finding]:
    spec = lab.spec
    own = spec.bmc.protocol
    if not own.has_virtual_media and spec.provisioning_network is None:
        media = " or ".join(each for each in BmcProtocol if each.has_virtual_media)
        text = must_be(f"{media} without lab_spec.provisioning_network, from which others boot nodes", own)
        yield Finding("bmc.needs-provisioning-network", "bmc.protocol", text)
    if own != BmcProtocol.IPMI:
        return
    if spec.bmc.tls:
        yield Finding("bmc.ipmi-tls", "bmc.tls", must_be("false with ipmi, which has no TLS", True))
    if spec.nodes.control_plane.fencing:
        text = must_be("false with ipmi, which cannot fence: use bmc.protocol: redfish", True)
        yield Finding("bmc.ipmi-fencing", "nodes.control_plane.fencing", text)
    firmware = [("firmware", spec.firmware)]
    firmware += [
        (f"nodes.overrides.{name}.firmware", item.firmware)
        for name, item in spec.nodes.overrides.items()
        if item.firmware
    ]
    for path, value in firmware:
        if value == Firmware.UEFI_SECURE:
            text = must_be("uefi or bios with ipmi: the installer refuses secure boot", value)
            yield Finding("bmc.ipmi-secure-boot", path, text)


def clients(lab: ParsedLab) -> Iterator[Finding]:
    """Their networks are outside the lab, and of its families: BMCs have an address in each."""
    own = machine_networks(lab.spec)
    inside = [*own, *([lab.spec.provisioning_network.cidr] if lab.spec.provisioning_network else [])]
    families = {network.version for network in own}
    for number, network in enumerate(lab.spec.bmc.clients):
        path = f"bmc.clients[{number}]"
        if network.is_loopback or network.is_multicast or network.is_link_local:
            yield Finding("bmc.client", path, must_be("a network of machines outside the lab", network))
        elif network.version not in families:
            names = " and ".join(map(family_name, sorted(families)))
            yield Finding("bmc.client-family", path, must_be(f"{names}, as the lab is", network))
        elif any(_overlap(network, other) for other in inside):
            text = must_not_overlap("the lab's own networks, whose machines reach the BMCs anyway", network)
            yield Finding("bmc.client-of-lab", path, text)
        elif any(_overlap(network, other) for other in lab.spec.bmc.clients[:number]):
            yield Finding("bmc.client-twice", path, must_not_overlap("one before it", network))


def _overlap(one: Network, other: Network) -> bool:
    return one.version == other.version and one.overlaps(other)


def ports(lab: ParsedLab) -> Iterator[Finding]:
    spec = lab.spec
    if spec.bmc.protocol != BmcProtocol.IPMI:
        return
    taken: dict[int, str] = {}
    for node in sorted(lab.nodes, key=lambda node: node.override.bmc_port is not None):
        path = f"{node.path}.bmc_port"
        if node.bmc_port > HIGHEST_PORT:
            text = must_be(f"so low that the port of {node.name} does not exceed {HIGHEST_PORT}", node.bmc_port)
            yield Finding("bmc.port-too-high", "bmc.port", text)
        earlier = taken.setdefault(node.bmc_port, node.name)
        if earlier != node.name:
            yield Finding("bmc.port-used", path, already_used(f"the node {earlier}", node.bmc_port))


def faults(lab: ParsedLab) -> Iterator[Finding]:
    known = {node.name for node in lab.nodes}
    for number, rule in enumerate(lab.spec.bmc.faults.rules):
        path = f"bmc.faults.rules[{number}]"
        if lab.spec.bmc.protocol == BmcProtocol.IPMI:
            if rule.fault in NOT_BY_IPMI:
                yield Finding(
                    "bmc.ipmi-fault", f"{path}.fault", must_be("a fault that occurs with ipmi, too", rule.fault)
                )
            if rule.methods or rule.path != ANY_PATH:
                text = "must be limited by neither methods nor path with ipmi, which has none"
                yield Finding("bmc.ipmi-fault-limits", path, text)
        for name in rule.nodes:
            if name not in known:
                text = must_be(f"nodes of this lab: {', '.join(sorted(known))}", name)
                yield Finding("bmc.fault-node", f"{path}.nodes", text)
