# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that is looked at when an installation stands still or has failed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import info
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import bootstrap as diagnosis_bootstrap
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import cluster as diagnosis_cluster
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import host as diagnosis_host
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import nodes as diagnosis_nodes
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.bootstrap import Bootstrap
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.host import HostSeen
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.nodes import asked
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.installation import Installation
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._observe import packet_filter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.cluster import MetalHost
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.nodes import Node
    from ansible_collections.nometal.ipi.plugins.module_utils._observe.packet_filter import Rule


@dataclass(frozen=True)
class Evidence:
    host: HostSeen = field(default_factory=HostSeen)
    bootstrap: Bootstrap = field(default_factory=Bootstrap)
    nodes: Sequence[Node] = ()
    consoles: Mapping[str, str] = field(default_factory=dict)
    """The last words of each node."""
    libvirt_trouble: str = ""
    bmcs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By VM, what its BMC says of itself."""
    bmc_trouble: str = ""
    metal_hosts: Sequence[MetalHost] = ()
    operators: Mapping[str, str] = field(default_factory=dict)
    rules: Sequence[Rule] = ()


def gather(installation: Installation) -> Evidence:
    host = diagnosis_host.look(installation.domain, installation.api_vips)
    bmcs, bmc_trouble = _bmcs(installation)
    seen = _of_libvirt(installation)
    has_api = any(not trouble for trouble in host.api.values())
    oc = diagnosis_cluster.oc_of(installation.tools, installation.paths.kubeconfig) if has_api else None
    return Evidence(
        host=host,
        bmcs=bmcs,
        bmc_trouble=bmc_trouble,
        metal_hosts=diagnosis_cluster.metal_hosts(oc) if oc else (),
        operators=diagnosis_cluster.operators(oc) if oc else {},
        rules=packet_filter.read(),
        **seen,
    )


def _of_libvirt(installation: Installation) -> dict[str, Any]:
    def look(connection: Any) -> dict[str, Any]:
        found = diagnosis_nodes.look(connection, installation.nodes)
        return {
            "nodes": found,
            "consoles": {node.name: diagnosis_nodes.last_words(node.console) for node in found},
            "bootstrap": diagnosis_bootstrap.look(connection, installation.paths),
        }

    try:
        return dict(asked(installation.libvirt_uri, look))
    except OperatorError as error:
        return {"libvirt_trouble": str(error)}


def _bmcs(installation: Installation) -> tuple[dict[str, dict[str, Any]], str]:
    try:
        told = info.information(installation.bmc_home, installation.paths.lab)
    except OperatorError as error:
        return {}, str(error)
    return {entry["name"]: entry for entry in told}, ""
