# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the management controllers and what network and firmware they can serve."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import Problem
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.draft import Draft
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.network import HIGHEST_PORT


def protocol(lab: Draft) -> Iterator[Problem]:
    spec = lab.spec
    own = spec.bmc.protocol
    if own != "redfish-virtualmedia" and spec.provisioning_network is None:
        right = "redfish-virtualmedia is right, or a lab_spec.provisioning_network"
        yield Problem("bmc.protocol", f"is {own}, which boots nodes from a provisioning network; {right}")
    if own != "ipmi":
        return
    if spec.bmc.tls:
        yield Problem("bmc.tls", "is true, and ipmi has no TLS; false is right")
    if spec.nodes.control_plane.fencing:
        yield Problem("nodes.control_plane.fencing", "is true, and ipmi cannot fence; bmc.protocol: redfish is right")
    firmware = [("firmware", spec.firmware)]
    firmware += [
        (f"nodes.overrides.{name}.firmware", item.firmware or "") for name, item in spec.nodes.overrides.items()
    ]
    for path, value in firmware:
        if value == "uefi-secure":
            yield Problem(path, "is uefi-secure, which the installer refuses for ipmi; uefi or bios is right")


def ports(lab: Draft) -> Iterator[Problem]:
    spec = lab.spec
    if spec.bmc.protocol != "ipmi":
        return
    taken: dict[int, str] = {}
    for node in sorted(lab.nodes, key=lambda node: node.override.bmc_port is not None):
        path = f"{node.path}.bmc_port"
        if node.bmc_port > HIGHEST_PORT:
            yield Problem("bmc.port", f"gives {node.name} the port {node.bmc_port}; {HIGHEST_PORT} is the highest")
        earlier = taken.setdefault(node.bmc_port, node.name)
        if earlier != node.name:
            yield Problem(path, f"is {node.bmc_port}, which {earlier} has already; another port is right")
