# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""install-config.yaml: what goes into it, what lab_spec.install.config may do to it, and what is refused."""
# ruff: noqa: E501 - the messages stand here as they are shown

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from support import installer_rules
from unit.cluster.config_samples import CERTIFICATE, SSH_KEY, complete, config_of, lab_of
from unit.lab.test_filter import wrapped

from ansible_collections.nometal.ipi.plugins.filter.install_config import FilterModule
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.install_config import (
    InstallConfigError,
    install_config,
    warnings,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.merge import merged
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model

install_config_filter = FilterModule().filters()["install_config"]

STATIC = "bootstrap: {address: static}"
PRIVATE_KEY = "-----BEGIN PRIVATE KEY-----\nhidden-word\n-----END PRIVATE KEY-----\n"


def platform_of(config: dict[str, Any]) -> dict[str, Any]:
    platform: dict[str, Any] = config["platform"]["baremetal"]
    return platform


def test_it_is_yaml_without_anchors() -> None:
    assert "&id" not in yaml.safe_dump(config_of("nodes: {control_plane: {count: 2}, arbiters: {count: 1}}"))


def test_spares_are_none_of_the_installers_business() -> None:
    config = config_of("nodes: {workers: {count: 1}, spares: {count: 2}}")
    assert [host["role"] for host in platform_of(config)["hosts"]] == ["master", "master", "master", "worker"]
    assert config["compute"][0]["replicas"] == 1


def test_nodes_boot_from_the_provisioning_network_where_there_is_one() -> None:
    lab = lab_of("provisioning_network: {}")
    hosts = platform_of(install_config(lab))["hosts"]
    assert [host["bootMACAddress"] for host in hosts] == [node["nics"][0]["mac"] for node in lab["nodes"]]
    assert {node["nics"][0]["role"] for node in lab["nodes"]} == {"provisioning"}


@pytest.mark.parametrize(
    ("text", "version", "verifies"),
    [
        ("", "4.20.3", False),
        ("", "4.21.0", True),
        ("", "5.0.0", True),
        ("bmc: {tls: false}", "4.21.0", None),
        ("{provisioning_network: {}, bmc: {protocol: ipmi}}", "4.21.0", None),
    ],
)
def test_the_bmcs_are_verified_where_the_release_can(text: str, version: str, verifies: bool | None) -> None:
    platform = platform_of(config_of(text, version, bmc_ca=CERTIFICATE))
    assert ("bmcVerifyCA" in platform) == (verifies is True)
    assert ("disableCertificateVerification" in platform["hosts"][0]["bmc"]) == (verifies is False)


def test_without_a_ca_nothing_is_verified() -> None:
    assert platform_of(config_of("", "4.22.0"))["hosts"][0]["bmc"]["disableCertificateVerification"] is True


@pytest.mark.parametrize(("version", "policy"), [("4.11.0", None), ("4.12.0", "Always")])
def test_a_trust_bundle_is_for_all_nodes(version: str, policy: str | None) -> None:
    config = config_of("", version, trust_bundle=CERTIFICATE)
    assert config["additionalTrustBundle"] == CERTIFICATE
    assert config.get("additionalTrustBundlePolicy") == policy


@pytest.mark.parametrize("version", ["4.20.3", "stable-4.20", "latest-4.20", "4.20.0-okd-scos.3"])
def test_the_version_may_be_given_beside_the_lab(version: str) -> None:
    lab = lab_model({"name": "ha"})
    assert platform_of(install_config(lab, version))["apiVIPs"] == ["192.168.126.5"]


def test_a_lab_of_another_release_is_made_for_the_release_given() -> None:
    config = install_config(lab_of(STATIC, "4.20.3"), "4.11.9")
    assert "bootstrapExternalStaticDNS" not in platform_of(config)
    assert installer_rules.problems(complete(config), (4, 11)) == []


def test_5_0_comes_after_4_23() -> None:
    assert config_of(STATIC, "5.0.1") == config_of(STATIC, "4.23.1")


MERGED = [
    ({"a": 1, "b": {"c": 2}}, {"b": {"d": 3}}, {"a": 1, "b": {"c": 2, "d": 3}}),
    ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
    ({"a": {"b": 1}}, {"a": 5}, {"a": 5}),
    ({"a": 5}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"c": None}, "z": None}, {"b": {}}),
    ({}, {"a": {"b": {"c": 1, "d": None}}}, {"a": {"b": {"c": 1}}}),
]


@pytest.mark.parametrize(("base", "over", "expected"), MERGED)
def test_merging(base: Any, over: Any, expected: Any) -> None:
    before = json.dumps(base)
    assert merged(base, over) == expected
    assert json.dumps(base) == before


def test_the_operators_configuration_has_the_last_word() -> None:
    config = config_of(
        "{machine_network: {ntp_servers: [192.168.126.1]}, install: {fips: false, config: {fips: true, networking: {networkType: Calico}, platform: {baremetal: {additionalNTPServers: null}}}}}"
    )
    assert (config["fips"], config["networking"]["networkType"]) == (True, "Calico")
    assert config["networking"]["machineNetwork"] == [{"cidr": "192.168.126.0/24"}]
    assert "additionalNTPServers" not in platform_of(config)


def test_hosts_may_have_more_than_the_lab_says() -> None:
    lab = lab_of("")
    own = platform_of(install_config(lab))["hosts"]
    more = [{**host, "bootMACAddress": host["bootMACAddress"].upper(), "hardwareProfile": "default"} for host in own]
    config = config_of(json.dumps({"install": {"config": {"platform": {"baremetal": {"hosts": more[::-1]}}}}}))
    assert platform_of(config)["hosts"] == more[::-1]


def test_own_inner_networks_take_the_place_of_the_usual_ones() -> None:
    config = config_of(
        "{machine_network: {cidr: 172.30.5.0/24}, install: {config: {networking: {serviceNetwork: [10.96.0.0/16]}}}}"
    )
    assert installer_rules.problems(complete(config), (4, 20)) == []


def hosts(*written: tuple[str, int]) -> str:
    """Control plane nodes by name, or anything that begins with one, and number."""
    each = [
        f"{{name: {name}, role: master, bootMACAddress: '52:54:00:00:00:0{number}', "
        f"bmc: {{address: 'redfish-virtualmedia://192.0.2.{number}/1'}}}}"
        for name, number in written
    ]
    return f"{{platform: {{baremetal: {{hosts: [{', '.join(each)}]}}}}}}"


PREVIEWS = "one of TechPreviewNoUpgrade, DevPreviewNoUpgrade, CustomNoUpgrade"

REFUSED = [
    ("a key that nobody knows", "{speed: fast}", "4.20.3", ["speed: unknown key in release 4.20; remove it"]),
    (
        "a misspelt key",
        "{aditionalTrustBundle: x}",
        "4.20.3",
        ["aditionalTrustBundle: unknown key in release 4.20; did you mean additionalTrustBundle?"],
    ),
    (
        "a key of a later release",
        "{platform: {baremetal: {provisioningNetworkGateway: 172.22.0.1}}}",
        "4.21.3",
        [
            "platform.baremetal.provisioningNetworkGateway: not available in release 4.21; the first release with it is 4.22"
        ],
    ),
    (
        "keys of hosts",
        hosts(("a, nam: 1", 1), ("b, nam: 2", 2), ("c, nam: 3", 3)),
        "4.20.3",
        [f"platform.baremetal.hosts[{n}].nam: unknown key in release 4.20; did you mean name?" for n in (0, 1, 2)],
    ),
    (
        "another platform",
        "{platform: {none: {}}}",
        "4.20.3",
        ["platform: must be baremetal alone (got 'baremetal, none')"],
    ),
    (
        "no hosts",
        "{platform: {baremetal: {hosts: null}}}",
        "4.20.3",
        ["platform.baremetal.hosts: must be a list of mappings, or left to the lab (got nothing)"],
    ),
    (
        "too few hosts",
        hosts(("a", 1)),
        "4.20.3",
        ["platform.baremetal.hosts: must have 3 of the role master, one for each replica (got 1)"],
    ),
    (
        "hosts that are one",
        hosts(("a", 1), ("a", 1), ("b", 2)),
        "4.20.3",
        [
            "platform.baremetal.hosts[1].name: already used by hosts[0]: choose another (got 'a')",
            "platform.baremetal.hosts[1].bootMACAddress: already used by hosts[0]: choose another (got '52:54:00:00:00:01')",
            "platform.baremetal.hosts[1].bmc.address: already used by hosts[0]: choose another (got 'redfish-virtualmedia://192.0.2.1/1')",
        ],
    ),
    (
        "hosts of nobody knows what",
        "{controlPlane: {replicas: 3}, platform: {baremetal: {hosts: [{name: a, role: boss, bootMode: bios, bootMACAddress: x, bmc: {address: 'ipmi://192.0.2.1'}}]}}}",
        "4.20.3",
        [
            "platform.baremetal.hosts: must have 3 of the role master, one for each replica (got 0)",
            "platform.baremetal.hosts[0].role: must be one of master, arbiter, worker (got 'boss')",
            "platform.baremetal.hosts[0].bootMACAddress: must be six pairs of hex digits (got 'x')",
            "platform.baremetal.hosts[0].bootMode: must be one of UEFI, UEFISecureBoot, legacy (got 'bios')",
            "platform.baremetal.hosts[0].bmc.address: must be one of redfish-virtualmedia, idrac-virtualmedia, ilo5-virtualmedia without a provisioning network (got 'ipmi')",
        ],
    ),
    (
        "more replicas than nodes",
        "{compute: [{name: worker, replicas: 2}]}",
        "4.20.3",
        ["platform.baremetal.hosts: must have 2 of the role worker, one for each replica (got 0)"],
    ),
    (
        "one control plane node",
        "{controlPlane: {replicas: 1}}",
        "4.20.3",
        ["controlPlane.replicas: must be 3 or more, or 2 with an arbiter or with two fencing credentials (got 1)"],
    ),
    (
        "a pool without its number, which would be 3",
        "{compute: [{name: worker, hyperthreading: Disabled}]}",
        "4.20.3",
        ["compute[0].replicas: must be a whole number (got nothing)"],
    ),
    (
        "credentials of strangers",
        "{controlPlane: {fencing: {credentials: [{hostName: a, address: x}, {hostName: control-plane-1}, {}]}}}",
        "4.20.3",
        [
            f"featureSet: must be {PREVIEWS} with fencing, a technology preview in release 4.20 (got nothing)",
            "controlPlane.fencing.credentials: must have 2 items, one for each control plane node (got 3)",
            "controlPlane.fencing.credentials[0].hostName: must be the name of a control plane host (got 'a')",
            "controlPlane.fencing.credentials[1].address: must be the address of its BMC (got nothing)",
            "controlPlane.fencing.credentials[2].hostName: must be the name of a control plane host (got nothing)",
            "controlPlane.fencing.credentials[2].address: must be the address of its BMC (got nothing)",
        ],
    ),
    (
        "credentials by MAC too early, and by another spelling",
        "{featureSet: TechPreviewNoUpgrade, controlPlane: {fencing: {credentials: [{hostName: control-plane-0, macAddress: x, address: x}, {hostname: control-plane-1, address: y}]}}}",
        "4.22.3",
        [
            "controlPlane.fencing.credentials[0].macAddress: not available in release 4.22; the first release with it is 4.23",
            "controlPlane.fencing.credentials[1].hostname: unknown key in release 4.22; did you mean hostName?",
            "controlPlane.fencing.credentials[1].hostName: must be the name of a control plane host (got nothing)",
        ],
    ),
    (
        "credentials by name and MAC, and by the MAC of another",
        "{controlPlane: {fencing: {credentials: [{hostName: control-plane-0, macAddress: x, address: x}, {macAddress: x, address: y}]}}}",
        "4.23.3",
        [
            "controlPlane.fencing.credentials[0].macAddress: must not be used with hostName: remove one of the two",
            "controlPlane.fencing.credentials[1].macAddress: must be the boot MAC of a control plane host (got 'x')",
        ],
    ),
    (
        "what is for other platforms",
        "{publish: Internal, credentialsMode: Manual, operatorPublishingStrategy: {ingress: Internal}, networking: {clusterNetworkMTU: 1400}}",
        "4.20.3",
        [
            "publish: must be External (got 'Internal')",
            *(
                f"{key}: must be left out: not available on the platform baremetal"
                for key in ("credentialsMode", "operatorPublishingStrategy", "networking.clusterNetworkMTU")
            ),
        ],
    ),
    (
        "values that are none",
        "{additionalTrustBundle: x, cpuPartitioningMode: Some, controlPlane: {hyperthreading: 'On'}, compute: [{name: worker, replicas: 0, architecture: arm64}], platform: {baremetal: {loadBalancer: {type: Mine}}}}",
        "4.20.3",
        [
            "cpuPartitioningMode: must be None or AllNodes (got 'Some')",
            "platform.baremetal.loadBalancer.type: must be OpenShiftManagedDefault or UserManaged (got 'Mine')",
            "controlPlane.hyperthreading: must be Enabled or Disabled (got 'On')",
            "compute[0].architecture: must be left out, as that of controlPlane (got 'arm64')",
            "additionalTrustBundle: must be one or more CA certificates in PEM",
        ],
    ),
    (
        "exceptions from the proxy with wildcards",
        "{proxy: {httpProxy: 'http://192.0.2.1', noProxy: 'example.test,.example.test,10.0.0.0/8,10.0.0.1,fd00::1,*.example.test, b'}}",
        "4.20.3",
        [
            f"proxy.noProxy: must be domains, addresses and networks without wildcards, capital letters and spaces: .example.test has all names below example.test (got '{entry}')"
            for entry in ("*.example.test", " b")
        ],
    ),
    (
        "a network type that has gone",
        "{networking: {networkType: OpenShiftSDN}}",
        "4.15.3",
        ["networking.networkType: not available from release 4.15 on: use OVNKubernetes (got 'OpenShiftSDN')"],
    ),
    (
        "two service networks of one IP version",
        "{networking: {serviceNetwork: [10.96.0.0/16, 10.97.0.0/16]}}",
        "4.20.3",
        ["networking.serviceNetwork: must have one network of each IP version (got 2)"],
    ),
    (
        "both ways to give a VIP",
        "{platform: {baremetal: {apiVIP: 192.168.126.5}}}",
        "4.20.3",
        ["platform.baremetal.apiVIP: must not be used with apiVIPs: remove one of the two"],
    ),
    (
        "wrong types and unknown keys at depth",
        "{fips: 'yes', proxy: {httpProxi: x}, controlPlane: {platform: x, osImageStream: x}, platform: {baremetal: {additionalNTPServers: 192.168.126.1, loadBalancer: [], bmcVerifyCA: {}}}, imageDigestSources: [{mirror: x, source: {}}]}",
        "4.21.3",
        [
            "controlPlane.osImageStream: unknown key in release 4.21; remove it",
            "proxy.httpProxi: unknown key in release 4.21; did you mean httpProxy?",
            "imageDigestSources[0].mirror: unknown key in release 4.21; did you mean mirrors?",
            "controlPlane.platform: must be a mapping (got 'x')",
            "platform.baremetal.additionalNTPServers: must be a list (got '192.168.126.1')",
            "platform.baremetal.loadBalancer: must be a mapping (got a list)",
            "platform.baremetal.bmcVerifyCA: must be text (got a mapping)",
            "fips: must be true or false, without quotes (got 'yes')",
            "imageDigestSources[0].source: must be text (got a mapping)",
        ],
    ),
    (
        "platforms of pools",
        "{controlPlane: {platform: {aws: {}, baremetal: []}}, compute: [{name: worker, replicas: 0, platform: {baremetal: {type: x}}}], platform: {baremetal: {defaultMachinePlatform: []}}}",
        "4.20.3",
        [
            "compute[0].platform.baremetal.type: unknown key in release 4.20; remove it",
            "controlPlane.platform.aws: must be left out: not available on the platform baremetal",
            "controlPlane.platform.baremetal: must be a mapping (got a list)",
            "platform.baremetal.defaultMachinePlatform: must be a mapping (got a list)",
        ],
    ),
    (
        "features and gates that do not go together",
        "{featureSet: Everything, featureGates: [A]}",
        "4.20.3",
        [
            "featureSet: must be one of LatencySensitive, TechPreviewNoUpgrade, DevPreviewNoUpgrade, CustomNoUpgrade, OKD (got 'Everything')",
            "featureGates: must be left out unless featureSet is CustomNoUpgrade",
            "featureGates[0]: must be a gate with its state, such as Name=true (got 'A')",
        ],
    ),
    (
        "technology previews without their feature set",
        "{pki: {}, controlPlane: {diskSetup: [{type: etcd}]}, platform: {baremetal: {bgpVIPConfig: {}, dnsRecordsType: External}}}",
        "5.1.3",
        [
            f"{key}: a technology preview: set featureSet to {PREVIEWS}"
            for key in (
                "pki",
                "platform.baremetal.bgpVIPConfig",
                "controlPlane.diskSetup",
                "platform.baremetal.dnsRecordsType",
            )
        ],
    ),
    (
        "a VIP elsewhere",
        "{platform: {baremetal: {apiVIPs: [192.0.2.5]}}}",
        "4.20.3",
        ["platform.baremetal.apiVIPs: must be an address in the machine network (got '192.0.2.5')"],
    ),
    (
        "VIPs that are one",
        "{platform: {baremetal: {apiVIPs: [192.168.126.6]}}}",
        "4.20.3",
        [
            "platform.baremetal.ingressVIPs: already used by the API: choose another (got '192.168.126.6')",
            "platform.baremetal.apiVIPs: must be 192.168.126.5, as lab_spec.machine_network.vips.api gives it (got '192.168.126.6')",
        ],
    ),
    (
        "no VIP: DNS would be asked",
        "{platform: {baremetal: {apiVIPs: null}}}",
        "4.20.3",
        ["platform.baremetal.apiVIP: missing; must be an address in the machine network, or one of each IP version"],
    ),
    (
        "two VIPs of one version",
        "{platform: {baremetal: {apiVIPs: [192.168.126.5, 192.168.126.7], ingressVIPs: [192.168.126.6, 192.168.126.8]}}}",
        "4.20.3",
        [
            f"platform.baremetal.{name}VIPs: must be one address of each IP version (got '192.168.126.{one}, 192.168.126.{two}')"
            for name, one, two in (("api", 5, 7), ("ingress", 6, 8))
        ],
    ),
    (
        "half a static address",
        "{platform: {baremetal: {bootstrapExternalStaticIP: 192.168.126.9}}}",
        "4.20.3",
        [
            "platform.baremetal.bootstrapExternalStaticGateway: missing; required with bootstrapExternalStaticIP",
            "platform.baremetal.bootstrapExternalStaticDNS: missing; required with bootstrapExternalStaticIP",
        ],
    ),
    (
        "a static address that is a VIP",
        "{platform: {baremetal: {bootstrapExternalStaticIP: 192.168.126.5, bootstrapExternalStaticGateway: 192.0.2.1, bootstrapExternalStaticDNS: dns}}}",
        "4.20.3",
        [
            "platform.baremetal.bootstrapExternalStaticGateway: must be an address in the machine network (got '192.0.2.1')",
            "platform.baremetal.bootstrapExternalStaticDNS: must be an address (got 'dns')",
            "platform.baremetal.bootstrapExternalStaticIP: already used by a VIP or the gateway: choose another (got '192.168.126.5')",
        ],
    ),
    (
        "a MAC that a host has",
        "{platform: {baremetal: {externalMACAddress: '52:54:00:2C:A0:17'}}}",
        "4.20.3",
        ["platform.baremetal.externalMACAddress: already used by a host: choose another (got '52:54:00:2c:a0:17')"],
    ),
    (
        "networks that overlap",
        "{networking: {clusterNetwork: [{cidr: 172.30.0.0/15, hostPrefix: 23}]}}",
        "4.20.3",
        ["networking.serviceNetwork: must not overlap 172.30.0.0/15 of clusterNetwork (got 172.30.0.0/16)"],
    ),
    (
        "a host prefix that does not fit",
        "{networking: {clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 12}]}}",
        "4.20.3",
        ["networking.clusterNetwork[0].hostPrefix: must be 14 to 32 (got 12)"],
    ),
    (
        "a key of networking that nobody knows",
        "{networking: {networkTyp: OVNKubernetes}}",
        "4.20.3",
        ["networking.networkTyp: unknown key in release 4.20; did you mean networkType?"],
    ),
    (
        "networks of other versions",
        "{networking: {serviceNetwork: ['fd02::/112']}}",
        "4.20.3",
        ["networking.serviceNetwork: must have one network of each IP version of machineNetwork"],
    ),
    (
        "no networks",
        "{networking: {clusterNetwork: [10.128.0.0], machineNetwork: ['']}}",
        "4.20.3",
        [
            "networking.machineNetwork: must be a list of networks, one of each IP version",
            "platform.baremetal.apiVIPs: must be an address in the machine network (got '192.168.126.5')",
            "platform.baremetal.ingressVIPs: must be an address in the machine network (got '192.168.126.6')",
            "networking.clusterNetwork[0]: must be a mapping (got '10.128.0.0')",
        ],
    ),
    (
        "another name",
        "{metadata: {name: a.b}}",
        "4.20.3",
        ["metadata.name: must be a name of at most 54 characters, without a dot (got 'a.b')"],
    ),
    (
        "another cluster",
        "{metadata: {name: other}, baseDomain: example.test}",
        "4.20.3",
        [
            "metadata.name: must be ha, as lab_spec.name gives it (got 'other')",
            "baseDomain: must be lab.example.test, as lab_spec.base_domain gives it (got 'example.test')",
        ],
    ),
    (
        "other networks",
        "{networking: {machineNetwork: [{cidr: 192.168.0.0/16}]}, platform: {baremetal: {externalBridge: br0, apiVIPs: [192.168.126.7], provisioningNetwork: Managed}}}",
        "4.20.3",
        [
            "platform.baremetal.externalBridge: must be baremetal, as lab_spec.machine_network.bridge gives it (got 'br0')",
            "platform.baremetal.provisioningNetwork: must be Disabled, as lab_spec.provisioning_network gives it (got 'Managed')",
            "networking.machineNetwork: must be 192.168.126.0/24, as lab_spec.machine_network.cidr gives it (got '192.168.0.0/16')",
            "platform.baremetal.apiVIPs: must be 192.168.126.5, as lab_spec.machine_network.vips.api gives it (got '192.168.126.7')",
        ],
    ),
    (
        "no bridge",
        "{platform: {baremetal: {externalBridge: null}}}",
        "4.20.3",
        [
            "platform.baremetal.externalBridge: must be baremetal, as lab_spec.machine_network.bridge gives it (got nothing)"
        ],
    ),
    (
        "other hosts",
        hosts(("a", 1), ("control-plane-1", 2), ("control-plane-2", 3)),
        "4.20.3",
        [
            "platform.baremetal.hosts: must be as lab_spec.nodes gives the hosts in name, role, bootMACAddress and bmc.address (got 'control-plane-0, control-plane-1, control-plane-2, a')"
        ],
    ),
    (
        "a list for a mapping",
        "{networking: []}",
        "4.20.3",
        ["networking: must be a mapping, or left to the lab (got a list)"],
    ),
    (
        "a provisioning network in the machine network",
        "{platform: {baremetal: {provisioningNetwork: Managed, provisioningNetworkCIDR: 192.168.126.0/25, bootstrapProvisioningIP: 10.0.0.1}}}",
        "4.20.3",
        [
            "platform.baremetal.provisioningNetworkCIDR: must not overlap the machine network 192.168.126.0/24 (got 192.168.126.0/25)",
            "platform.baremetal.bootstrapProvisioningIP: must be an address in 192.168.126.0/25 (got '10.0.0.1')",
        ],
    ),
]


@pytest.mark.parametrize(("config", "version", "expected"), [pytest.param(*case[1:], id=case[0]) for case in REFUSED])
def test_refuses_what_merging_breaks(config: str, version: str, expected: list[str]) -> None:
    with pytest.raises(InstallConfigError) as caught:
        config_of(f"install: {{config: {config}}}", version)
    heading, *lines = str(caught.value).splitlines()
    assert lines == [f"- {line}" for line in expected]
    release = version.rpartition(".")[0]
    assert (
        heading == f"install-config.yaml has {len(lines)} error{'s' if len(lines) > 1 else ''} for release {release}:"
    )


def test_refuses_what_the_release_given_beside_the_lab_does_not_know() -> None:
    with pytest.raises(
        InstallConfigError,
        match=r"bootstrapExternalStaticIP: not available in release 4.10; the first release with it is 4.11",
    ):
        install_config(lab_of(STATIC, "4.20.3"), "4.10.3")
    with pytest.raises(
        InstallConfigError, match=r"arbiter: not available in release 4.18; the first release with it is 4.19"
    ):
        install_config(lab_of("nodes: {control_plane: {count: 2}, arbiters: {count: 1}}"), "4.18.3")


QUOTED_MTU = "nodes: {overrides: {control-plane-0: {network_config: {interfaces: [{name: enp1s0, mtu: '1500'}]}}}}"
DUAL_STACK = """
machine_network: {cidr: 192.168.126.0/24, cidr_v6: 'fd2e:6f44:5dd8::/64'}
install: {config: {networking: {serviceNetwork: ['fd02::/112', 172.30.0.0/16]}}}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            QUOTED_MTU,
            "platform.baremetal.hosts[0].networkConfig.interfaces[0].mtu: must be a number, without quotes (got '1500')",
        ),
        (DUAL_STACK, "networking.serviceNetwork: must begin with IPv4, as machineNetwork does"),
    ],
)
def test_refuses_what_the_lab_says(text: str, expected: str) -> None:
    with pytest.raises(InstallConfigError) as caught:
        config_of(text)
    assert str(caught.value).splitlines()[1:] == [f"- {expected}"]


ACCEPTED = [
    ("{pki: {signer: x}, featureSet: TechPreviewNoUpgrade}", "4.23.3", "pki"),
    ("{controlPlane: {management: ClusterAPI}}", "4.22.3", "management"),
    ("{networking: {networkObservability: {}}}", "5.1.3", "networkObservability"),
    ("{platform: {baremetal: {bgpVIPConfig: {}}}, featureSet: DevPreviewNoUpgrade}", "5.1.3", "bgpVIPConfig"),
    ("{featureSet: CustomNoUpgrade, featureGates: ['A=true', 'B=false']}", "4.20.3", "featureGates"),
    ("{proxy: {httpProxy: 'http://192.0.2.1', noProxy: '*'}}", "4.20.3", "noProxy"),
    ("{networking: {networkType: OpenShiftSDN}}", "4.14.3", "OpenShiftSDN"),
    ("{additionalTrustBundlePolicy: Always, cpuPartitioningMode: AllNodes, publish: External}", "4.20.3", "AllNodes"),
]


@pytest.mark.parametrize(("config", "version", "there"), ACCEPTED)
def test_accepts_what_the_release_takes(config: str, version: str, there: str) -> None:
    made = config_of(f"install: {{config: {config}}}", version)
    assert there in json.dumps(made)
    major, minor, _patch = map(int, version.split("."))
    assert installer_rules.problems(complete(made), (major, minor)) == []


def test_fenced_nodes_may_be_named_by_their_macs_and_hosts_may_have_peers() -> None:
    lab = lab_of("nodes: {control_plane: {count: 2, fencing: true}}", "5.1.3")
    own = install_config(lab)
    credentials = [
        {"macAddress": host["bootMACAddress"], "address": credential["address"]}
        for host, credential in zip(platform_of(own)["hosts"], own["controlPlane"]["fencing"]["credentials"])
    ]
    peers = [{**host, "bgpPeers": ["192.168.126.1"]} for host in platform_of(own)["hosts"]]
    lab["install"]["config"] = {
        "featureSet": "TechPreviewNoUpgrade",
        "controlPlane": {"fencing": {"credentials": credentials}},
        "platform": {"baremetal": {"hosts": peers}},
    }
    made = complete(install_config(lab))
    assert installer_rules.problems(made, (5, 1)) == []
    assert {item["username"] for item in made["controlPlane"]["fencing"]["credentials"]} == {"admin"}


def test_unknown_keys_are_warnings_for_releases_that_are_newer_than_the_table() -> None:
    lab = lab_of("install: {config: {speed: fast, fips: 'no'}}", "5.3.1")
    with pytest.raises(InstallConfigError, match=r"has 1 error for release 5\.3:\n- fips: "):
        install_config(lab)
    lab["install"]["config"]["fips"] = False
    made = install_config(lab)
    assert made["speed"] == "fast"
    assert warnings(lab, made) == [
        "install-config.yaml: speed: unknown key in release 5.3; remove it (the newest release whose keys are known here is 5.2)"
    ]
    assert warnings(lab, install_config(lab_of("", "5.3.1"))) == []


TEXTS = [
    ({"bmc_ca": "nothing"}, "The CA of the BMC service cannot be read as certificates"),
    (
        {"bmc_ca": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"},
        "The CA of the BMC service cannot be read",
    ),
    (
        {"trust_bundle": CERTIFICATE + PRIVATE_KEY},
        "The trust bundle contains a private key, which would be copied to every node",
    ),
    ({"ssh_key": PRIVATE_KEY}, "lab_spec.install.ssh_key_file names a file with a private key"),
    ({"ssh_key": "hidden-word"}, "lab_spec.install.ssh_key_file must name a file with public keys only"),
]


@pytest.mark.parametrize(("given", "expected"), TEXTS)
def test_refuses_texts_that_are_not_what_they_should_be(given: dict[str, str], expected: str) -> None:
    with pytest.raises(OperatorError, match=f"^{expected}") as caught:
        config_of("", "4.21.3", **given)
    assert "hidden-word" not in str(caught.value)


@pytest.mark.parametrize("text", ["install: {fips: true}", "install: {config: {fips: true}}"])
def test_a_key_that_fips_has_not(text: str) -> None:
    with pytest.raises(OperatorError, match="names a key of a type that FIPS does not allow: use RSA or ECDSA"):
        config_of(text, ssh_key=SSH_KEY)
    assert config_of(text, ssh_key="ssh-rsa AAAA me\n# more\necdsa-sha2-nistp256 AAAA you\n")["sshKey"].count("\n") == 1


def test_a_lab_without_a_release() -> None:
    with pytest.raises(OperatorError, match="has no release"):
        install_config(lab_model({"name": "ha"}))
    with pytest.raises(OperatorError, match=r"version must be 4.9 or later, such as stable-4.20 \(got 'newest'\)"):
        install_config(lab_model({"name": "ha"}), "newest")


def test_the_filter_takes_what_ansible_hands_over() -> None:
    lab = lab_of("nodes: {workers: {count: 1}}")
    assert install_config_filter(wrapped(lab), version=wrapped("4.20.3"), ssh_key=wrapped(SSH_KEY)) == install_config(
        lab, ssh_key=SSH_KEY
    )
    with pytest.raises(AnsibleFilterError, match=r"^version must be .*\(got 'x'\)"):
        install_config_filter(lab, "x")


def test_the_filter_gives_a_config_that_is_not_the_lab_itself() -> None:
    lab = lab_of("")
    install_config_filter(lab)["platform"]["baremetal"]["hosts"].clear()
    assert install_config_filter(lab) == install_config(lab)
