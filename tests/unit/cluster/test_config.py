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
        "{controlPlane: {fencing: {credentials: [{hostname: a, address: x}, {hostname: control-plane-1}, {}]}}}",
        "4.20.3",
        [
            "featureSet: must be TechPreviewNoUpgrade or CustomNoUpgrade with fencing, a technology preview in release 4.20 (got nothing)",
            "controlPlane.fencing.credentials: must have 2 items, one for each control plane node (got 3)",
            "controlPlane.fencing.credentials[0].hostname: must be a control plane host (got 'a')",
            "controlPlane.fencing.credentials[1].address: must be the address of its BMC (got nothing)",
            "controlPlane.fencing.credentials[2].hostname: must be a control plane host (got nothing)",
            "controlPlane.fencing.credentials[2].address: must be the address of its BMC (got nothing)",
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
        InstallConfigError, match=r"arbiter: not available in release 4.19; the first release with it is 4.20"
    ):
        install_config(lab_of("nodes: {control_plane: {count: 2}, arbiters: {count: 1}}"), "4.19.3")


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
