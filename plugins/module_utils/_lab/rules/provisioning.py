# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about the provisioning network."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Address
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import Problem
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive import pinned
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.draft import Draft
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.provisioning import plan_provisioning
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rules.addresses import (
    against_cluster,
    outside,
    sized,
)

ROOT = "provisioning_network"
OWNER = "the provisioning network"


def network(lab: Draft) -> Iterator[Problem]:
    spec = lab.spec
    if spec.provisioning_network is None:
        return
    own, path = spec.provisioning_network.cidr, f"{ROOT}.cidr"
    yield from against_cluster(spec, own, path)
    for net in pinned.machine_networks(spec):
        if net.version == own.version and net.overlaps(own):
            yield Problem(path, f"is {own}, which overlaps the machine network {net}; a network apart is right")


def addresses(lab: Draft) -> Iterator[Problem]:
    spec = lab.spec
    if spec.provisioning_network is None:
        return
    plan = plan_provisioning(spec.provisioning_network)
    taken: dict[Address, str] = {}
    for name, item in (("host_ip", plan.host), ("bootstrap_ip", plan.bootstrap), ("cluster_ip", plan.cluster)):
        yield from outside(item, plan.network, f"{ROOT}.{name}", OWNER)
        earlier = taken.setdefault(item, name)
        if earlier != name:
            yield Problem(f"{ROOT}.{name}", f"is {item}, which {earlier} has already; another one is right")
        if plan.dhcp_range and item in plan.dhcp_range:
            yield Problem(
                f"{ROOT}.{name}", f"is {item}, inside the DHCP range ({plan.dhcp_range}); one outside is right"
            )


def dhcp_range(lab: Draft) -> Iterator[Problem]:
    spec = lab.spec
    own = spec.provisioning_network
    if own is None:
        return
    path, nodes = f"{ROOT}.dhcp_range", len(lab.nodes)
    if own.dhcp_range and own.mode == "unmanaged":
        yield Problem(path, "means nothing with mode: unmanaged, where DHCP is not OpenShift's; leave it out")
        return
    plan = plan_provisioning(own)
    if own.mode == "managed" and plan.dhcp_range is None:
        wrong = "has no range from start to end" if own.dhcp_range else f"has no room left in {own.cidr}"
        yield Problem(path, f"{wrong}; one with {nodes} addresses or more is right")
    if plan.dhcp_range is None:
        return
    yield from sized(plan.dhcp_range, path, max(1, nodes))
    if own.dhcp_range:
        yield from outside(plan.dhcp_range.start, own.cidr, f"{path}.start", OWNER)
        yield from outside(plan.dhcp_range.end, own.cidr, f"{path}.end", OWNER)
