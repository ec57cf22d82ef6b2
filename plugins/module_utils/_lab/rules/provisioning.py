# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the provisioning network."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Address
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import already_used, must_not_overlap
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive import declared
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.parsed_lab import ParsedLab
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.provisioning import plan_provisioning
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rules.addresses import (
    INVALID_RANGE,
    against_cluster,
    in_range,
    outside,
    sized,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import ProvisioningMode

ROOT = "provisioning_network"
OWNER = "the provisioning network"


def network(lab: ParsedLab) -> Iterator[Finding]:
    spec = lab.spec
    if spec.provisioning_network is None:
        return
    own, path = spec.provisioning_network.cidr, f"{ROOT}.cidr"
    yield from against_cluster(spec, own, path)
    for net in declared.machine_networks(spec):
        if net.version == own.version and net.overlaps(own):
            text = must_not_overlap(f"the machine network {net}", own)
            yield Finding("provisioning.overlaps-machine-network", path, text)


def addresses(lab: ParsedLab) -> Iterator[Finding]:
    spec = lab.spec
    if spec.provisioning_network is None:
        return
    plan = plan_provisioning(spec.provisioning_network)
    taken: dict[Address, str] = {}
    for name, item in (("host_ip", plan.host), ("bootstrap_ip", plan.bootstrap), ("cluster_ip", plan.cluster)):
        yield from outside(item, plan.network, f"{ROOT}.{name}", OWNER)
        earlier = taken.setdefault(item, name)
        if earlier != name:
            yield Finding("provisioning.address-used", f"{ROOT}.{name}", already_used(earlier, item))
        if plan.dhcp_range and item in plan.dhcp_range:
            yield in_range(item, "the DHCP range", plan.dhcp_range, f"{ROOT}.{name}")


def dhcp_range(lab: ParsedLab) -> Iterator[Finding]:
    spec = lab.spec
    own = spec.provisioning_network
    if own is None:
        return
    path, nodes = f"{ROOT}.dhcp_range", len(lab.nodes)
    if own.dhcp_range and own.mode == ProvisioningMode.UNMANAGED:
        text = "must be left out with mode: unmanaged, where OpenShift serves no DHCP"
        yield Finding("provisioning.range-unused", path, text)
        return
    plan = plan_provisioning(own)
    if own.mode == ProvisioningMode.MANAGED and plan.dhcp_range is None:
        too_small = f"no addresses left in {own.cidr}: use a larger lab_spec.{ROOT}.cidr"
        text = INVALID_RANGE if own.dhcp_range else too_small
        yield Finding("provisioning.no-range", path, text)
    if plan.dhcp_range is None:
        return
    yield from sized(plan.dhcp_range, path, max(1, nodes))
    if own.dhcp_range:
        yield from outside(plan.dhcp_range.start, own.cidr, f"{path}.start", OWNER)
        yield from outside(plan.dhcp_range.end, own.cidr, f"{path}.end", OWNER)
