# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A ClusterInstance with its Secrets, for the SiteConfig operator of Advanced Cluster Management."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import yaml_text
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.networking import networking
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.platform import ROLES
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.export.rack import interfaces, no_cluster
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.manifests import bmc_secret, bmc_secret_name
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import release_text
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BOOT_MODES, Firmware

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.export.rack import Rack

FILE = "cluster-instance.yaml"
PULL_SECRET = "pull-secret"  # noqa: S105 - its name
TEMPLATES = "open-cluster-management"


def missing(lab: Mapping[str, Any]) -> str:
    """Without the logins for fencing, which it has no place for, two nodes are no cluster."""
    is_fenced = lab["control_plane"]["fencing"]
    return no_cluster(lab) or ("a ClusterInstance has no place for fencing of the control plane" if is_fenced else "")


def files(rack: Rack) -> dict[str, str]:
    name = rack.lab["name"]
    hosts = [host for host in rack.hosts if not host.is_spare]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    objects = [
        namespace,
        *([_pull_secret(rack)] if rack.pull_secret else []),
        *(bmc_secret(host, name, name) for host in hosts),
        _instance(rack),
    ]
    return {FILE: yaml_text.dump(*objects)}


def _pull_secret(rack: Rack) -> dict[str, Any]:
    encoded = base64.b64encode(rack.pull_secret.encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": PULL_SECRET, "namespace": rack.lab["name"]},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": encoded},
    }


def _instance(rack: Rack) -> dict[str, Any]:
    lab = dict(rack.lab)
    own = networking(lab)
    times = list(lab["ntp_servers"])
    spec = {
        "clusterName": lab["name"],
        "baseDomain": lab["base_domain"],
        "clusterType": "HighlyAvailableArbiter" if lab["control_plane"]["arbiters"] else "HighlyAvailable",
        "clusterImageSetNameRef": rack.image_set or f"openshift-{release_text(rack.release)}",
        "pullSecretRef": {"name": PULL_SECRET},
        **({"sshPublicKey": rack.ssh_key} if rack.ssh_key else {}),
        "apiVIPs": list(lab["vips"]["api"]),
        "ingressVIPs": list(lab["vips"]["ingress"]),
        **({"additionalNTPSources": times} if times else {}),
        "networkType": own["networkType"],
        "machineNetwork": own["machineNetwork"],
        "clusterNetwork": own["clusterNetwork"],
        "serviceNetwork": [{"cidr": network} for network in own["serviceNetwork"]],
        "templateRefs": [{"name": "ai-cluster-templates-v1", "namespace": TEMPLATES}],
        "nodes": [_node(node) for node in rack.installed],
    }
    return {
        "apiVersion": "siteconfig.open-cluster-management.io/v1alpha1",
        "kind": "ClusterInstance",
        "metadata": {"name": lab["name"], "namespace": lab["name"]},
        "spec": spec,
    }


def _node(node: Mapping[str, Any]) -> dict[str, Any]:
    network = {"config": node["network_config"], "interfaces": interfaces(node)}
    return {
        "hostName": node["name"],
        "role": ROLES[node["role"]],
        "bmcAddress": node["bmc"]["address"],
        "bmcCredentialsName": {"name": bmc_secret_name(node["name"])},
        "bootMACAddress": node["boot_mac"],
        "bootMode": BOOT_MODES[Firmware(node["firmware"])],
        "rootDeviceHints": dict(node["root_device_hints"]),
        **({"nodeNetwork": network} if node["network_config"] else {}),
        "templateRefs": [{"name": "ai-node-templates-v1", "namespace": TEMPLATES}],
    }
