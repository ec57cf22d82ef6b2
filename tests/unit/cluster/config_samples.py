# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of install-config.yaml have in common."""

from __future__ import annotations

from typing import Any, NamedTuple

import yaml

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.install_config import install_config
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.secrets import with_secrets
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model

RELEASES = [*((4, minor) for minor in range(9, 24)), (5, 0), (5, 1), (5, 2)]
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample operator"
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBeTCCAR+gAwIBAgIUPyeTJ+MoYyT8KfFj7UGQRIkv9G8wCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGbGFiIENBMCAXDTI2MTExOTA1MTYyOFoYDzIxMjYxMDI2MDUx
NjI4WjARMQ8wDQYDVQQDDAZsYWIgQ0EwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AASZFab2eIbgd0BgmFgjAQXrux4WBJ1UU0MkDJX1LvaTNgscBGjyCxcI92wnRTCq
EKVSunmN6NwS36QlQzpAj2YEo1MwUTAdBgNVHQ4EFgQUukVvDGaTyRN2VHgPSj4y
EqF9gnkwHwYDVR0jBBgwFoAUukVvDGaTyRN2VHgPSj4yEqF9gnkwDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiB7bdU64v/VqwWWi7KEK/1FCo2Li0zh
5xDUyWJ21lJuCgIhAKUJi0OCFLHra0pov8fPgt43TMqB7K/mSKFFChCY4GGZ
-----END CERTIFICATE-----
"""
AUTHS = '{"auths":{"registry.example.test":{"auth":"aWQ6cGFzcwo="}}}'

LABS = {
    "compact": "nodes: {control_plane: {count: 3}}",
    "ha": """
        machine_network: {ntp_servers: [192.168.126.1]}
        nodes: {workers: {count: 2}, spares: {count: 1}}
    """,
    "arbiter": "nodes: {control_plane: {count: 2}, arbiters: {count: 1}}",
    "fencing": "nodes: {control_plane: {count: 2, fencing: true}}",
    "ipv6": "machine_network: {cidr_v6: 'fd2e:6f44:5dd8::/64'}",
    "dual-stack": "machine_network: {cidr: 192.168.126.0/24, cidr_v6: 'fd2e:6f44:5dd8::/64'}",
    "managed": """
        provisioning_network: {mode: managed}
        firmware: uefi-secure
    """,
    "unmanaged": """
        provisioning_network: {mode: unmanaged, cidr: 'fd00:1101::/64'}
        bmc: {protocol: redfish, tls: false}
    """,
    "ipmi": """
        provisioning_network: {}
        bmc: {protocol: ipmi}
        firmware: bios
    """,
    "static-bootstrap": """
        bootstrap: {address: static, ip: 192.168.126.9, dns: 192.0.2.53}
        nodes: {overrides: {control-plane-1: {network_config: {interfaces: [{name: enp1s0, type: ethernet}]}}}}
    """,
    "reserved-bootstrap": "bootstrap: {address: reserved}",
    "wishes": """
        install:
          proxy: {http: 'http://proxy.example.test:3128', no_proxy: [.example.test, 10.0.0.0/8]}
          image_mirrors:
            - {source: quay.io/openshift-release-dev/ocp-release, mirrors: ['mirror.example.test:5000/ocp']}
          fips: false
          capabilities: {baseline: vCurrent, additional: [baremetal]}
          cpu_partitioning: true
          config: {platform: {baremetal: {libvirtURI: 'qemu+tcp://192.168.126.1/system'}}, publish: External}
    """,
    "few-capabilities": """
        install: {capabilities: {baseline: None, additional: [baremetal, MachineAPI, Ingress, Console]}}
    """,
    "old-capabilities": "install: {capabilities: {baseline: v4.14}}",
}


class Login(NamedTuple):
    username: str
    password: str


def spec(name: str, version: str) -> dict[str, Any]:
    written = yaml.safe_load(LABS[name])
    return {"name": name, **written, "install": {**written.get("install", {}), "version": version}}


def lab_of(text: str, version: str = "4.20.3") -> dict[str, Any]:
    written = yaml.safe_load(text) or {}
    return lab_model({"name": "ha", **written, "install": {"version": version, **written.get("install", {})}})


def config_of(text: str, version: str = "4.20.3", **given: Any) -> dict[str, Any]:
    return install_config(lab_of(text, version), **given)


def complete(config: dict[str, Any], extra: dict[str, Any] | None = None) -> dict[str, Any]:
    """With secrets, as the installer gets it."""
    logins = {host["name"]: Login("admin", "hidden-word") for host in config["platform"]["baremetal"]["hosts"]}
    return with_secrets(config, pull_secret=AUTHS, logins=logins, extra=extra or {})


def version_of(release: tuple[int, int]) -> str:
    return f"{release[0]}.{release[1]}.3"
