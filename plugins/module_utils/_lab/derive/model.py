# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""lab_spec -> lab: from the operator's specification to the model that every play reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import normalize_text
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import LabSpecError, Problems
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import UNREADABLE
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import CHANNEL_PATTERN
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import to_dict
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.declared import release
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.lab import Lab, planned
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.networks import (
    installer_bridges,
    networks,
    veth_pairs,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.nodes import bmc, nodes, totals
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.parsed_lab import ParsedLab
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import POOL_DIRECTORY
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rules.table import can_be_planned, judge
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.install import Capabilities, Proxy
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.lab import LAB_SPEC
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BootstrapAddress


def lab_model(lab_spec: object, hypervisors: Sequence[str] = ()) -> dict[str, Any]:
    """The model of a lab in JSON types; LabSpecError has all errors of the specification.

    hypervisors: the hosts of the lab, by inventory name; those of the specification when left out.
    """
    problems = Problems.none()
    inventory = tuple(normalize_text(name) for name in hypervisors)
    spec = LAB_SPEC.parse(_with_hypervisors(lab_spec, inventory), "", problems)
    if spec is UNREADABLE:
        raise LabSpecError(problems.found)
    parsed = ParsedLab(spec, inventory)
    judge(parsed, problems)
    lab = planned(parsed, problems) if can_be_planned(problems) else None
    if lab is None:
        raise LabSpecError(problems.found)
    return dict(to_dict(_model(lab)))


def _with_hypervisors(lab_spec: object, inventory: tuple[str, ...]) -> object:
    if not inventory or not isinstance(lab_spec, Mapping) or lab_spec.get("hypervisors") is not None:
        return lab_spec
    return {**lab_spec, "hypervisors": list(inventory)}


def _model(lab: Lab) -> dict[str, Any]:
    spec = lab.spec
    made_nodes = nodes(lab)
    return {
        "name": spec.name,
        "owner": spec.name,
        "uuid": str(lab.identity.uuid),
        "base_domain": spec.base_domain,
        "domain": lab.domain,
        "hypervisors": list(spec.hypervisors),
        "storage_pool": _storage_pool(lab),
        "networks": networks(lab),
        "bridge": spec.machine_network.bridge,
        "topology": spec.machine_network.topology,
        "veth_pairs": veth_pairs(lab),
        "installer_bridges": installer_bridges(lab),
        "machine_networks": [str(family.network) for family in lab.families],
        "ntp_servers": [str(item) for item in spec.machine_network.ntp_servers],
        "vips": _vips(lab),
        "bootstrap": _bootstrap(lab),
        "provisioning_network": _provisioning_network(lab),
        "control_plane": _control_plane(lab),
        "nodes": made_nodes,
        "registers_spares": spec.nodes.spares.register,
        "firmware": spec.firmware,
        "bmc": bmc(lab),
        "install": _install(lab),
        "totals": totals(lab),
    }


def _storage_pool(lab: Lab) -> dict[str, Any]:
    name = lab.identity.prefix
    path = lab.spec.storage_pool.path or f"{POOL_DIRECTORY}/{name}"
    return {"name": name, "path": path, "uuid": lab.identity.uuid_of("storage-pool")}


def _vips(lab: Lab) -> dict[str, Any]:
    return {
        "api": [str(family.api) for family in lab.families if family.api],
        "ingress": [str(family.ingress) for family in lab.families if family.ingress],
    }


def _bootstrap(lab: Lab) -> dict[str, Any]:
    own = lab.spec.bootstrap
    ips = [str(item) for item in lab.bootstrap_ips]
    static = own.address == BootstrapAddress.STATIC
    return {
        "mode": own.address,
        "mac": lab.bootstrap_mac,
        "ip": ips[0] if ips else None,
        "ips": ips,
        "prefix": lab.primary.network.prefixlen,
        "gateway": str(own.gateway or lab.primary.gateway) if static else None,
        "dns": str(own.dns or lab.primary.gateway) if static else None,
    }


def _provisioning_network(lab: Lab) -> dict[str, Any] | None:
    own, plan = lab.spec.provisioning_network, lab.provisioning
    if own is None or plan is None:
        return None
    span = plan.dhcp_range
    return {
        "mode": own.mode,
        "name": own.bridge,
        "bridge": own.bridge,
        "cidr": str(plan.network),
        "host_ip": str(plan.host),
        "bootstrap_ip": str(plan.bootstrap),
        "cluster_ip": str(plan.cluster),
        "dhcp_range": {"start": str(span.start), "end": str(span.end)} if span else None,
    }


def _control_plane(lab: Lab) -> dict[str, Any]:
    own = lab.spec.nodes
    return {
        "replicas": own.control_plane.count,
        "arbiters": own.arbiters.count,
        "workers": own.workers.count,
        "fencing": own.control_plane.fencing,
    }


def _install(lab: Lab) -> dict[str, Any] | None:
    own, numbers = lab.spec.install, release(lab.spec)
    if own is None or numbers is None:
        return None
    is_channel = re.fullmatch(CHANNEL_PATTERN, own.version)
    return {
        "distribution": own.distribution,
        "version": own.version,
        "channel": own.version.partition("-")[0] if is_channel else None,
        "release": {"major": numbers[0], "minor": numbers[1]},
        "release_image": own.release_image,
        "source": own.source,
        "pull_secret_file": own.pull_secret_file,
        "ssh_key_file": own.ssh_key_file,
        "proxy": _proxy(own.proxy),
        "trust_bundle_file": own.trust_bundle_file,
        "image_mirrors": [{"source": item.source, "mirrors": list(item.mirrors)} for item in own.image_mirrors],
        "fips": own.fips,
        "capabilities": _capabilities(own.capabilities),
        "cpu_partitioning": own.cpu_partitioning,
        "manifests_dir": own.manifests_dir,
        "config": own.config,
    }


def _proxy(own: Proxy | None) -> dict[str, Any] | None:
    return {"http": own.http, "https": own.https, "no_proxy": list(own.no_proxy)} if own else None


def _capabilities(own: Capabilities | None) -> dict[str, Any] | None:
    return {"baseline": own.baseline, "additional": list(own.additional)} if own else None
