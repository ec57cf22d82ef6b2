# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""agent-config.yaml and install-config.yaml of OpenShift's agent-based installer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import yaml_text
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.install_config import content
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.merge import merged
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.platform import ROLES
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.secrets import with_secrets
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.export.rack import interfaces
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.export.rack import Rack

AGENT_CONFIG, INSTALL_CONFIG = "agent-config.yaml", "install-config.yaml"
SECOND_VERSION = (4, 14)
"""The first release that reads v1beta1. Later ones read v1alpha1, too."""
OF_PLATFORM = ("apiVIP", "apiVIPs", "ingressVIP", "ingressVIPs", "loadBalancer")
"""What this installer reads of platform.baremetal. It knows nothing of BMCs: people boot its image."""
NO_PULL_SECRET = '{"auths":{"fake":{"auth":"aWQ6cGFzcwo="}}}'  # noqa: S105 - of no account
"""Has the form of one."""


def files(rack: Rack) -> dict[str, str]:
    return {AGENT_CONFIG: yaml_text.dump(_agent_config(rack)), INSTALL_CONFIG: yaml_text.dump(_install_config(rack))}


def _agent_config(rack: Rack) -> dict[str, Any]:
    nodes = rack.installed
    first = next(node for node in nodes if node["role"] == Role.CONTROL_PLANE)
    times = list(rack.lab["ntp_servers"])
    return {
        "apiVersion": "v1beta1" if rack.release >= SECOND_VERSION else "v1alpha1",
        "kind": "AgentConfig",
        "metadata": {"name": rack.lab["name"]},
        "rendezvousIP": first["ips"][0],
        **({"additionalNTPSources": times} if times else {}),
        "hosts": [_host(node) for node in nodes],
    }


def _host(node: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "hostname": node["name"],
        "role": ROLES[node["role"]],
        "rootDeviceHints": dict(node["root_device_hints"]),
        "interfaces": interfaces(node),
        **({"networkConfig": node["network_config"]} if node["network_config"] else {}),
    }


def _install_config(rack: Rack) -> dict[str, Any]:
    lab = dict(rack.lab)
    config = merged(content(lab, rack.release, ssh_key=rack.ssh_key), (lab["install"] or {}).get("config", {}))
    own = config["platform"]["baremetal"]
    config["platform"] = {"baremetal": {name: value for name, value in own.items() if name in OF_PLATFORM}}
    return with_secrets(config, pull_secret=rack.pull_secret or NO_PULL_SECRET, logins=rack.logins, extra={})
