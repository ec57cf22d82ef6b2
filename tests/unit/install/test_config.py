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
from unit.install.config_samples import CERTIFICATE, SSH_KEY, complete, config_of, lab_of
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
    ("a key that nobody knows", "{speed: fast}", "4.20.3", ["speed: is no key of 4.20; leave it out"]),
    (
        "a misspelt key",
        "{aditionalTrustBundle: x}",
        "4.20.3",
        ["aditionalTrustBundle: is no key of 4.20; did you mean additionalTrustBundle?"],
    ),
    (
        "a key of a later release",
        "{platform: {baremetal: {provisioningNetworkGateway: 172.22.0.1}}}",
        "4.21.3",
        ["platform.baremetal.provisioningNetworkGateway: is no key of 4.21; 4.22 is the first release that has it"],
    ),
    (
        "keys of hosts",
        hosts(("a, nam: 1", 1), ("b, nam: 2", 2), ("c, nam: 3", 3)),
        "4.20.3",
        [f"platform.baremetal.hosts[{n}].nam: is no key of 4.20; did you mean name?" for n in (0, 1, 2)],
    ),
    (
        "another platform",
        "{platform: {none: {}}}",
        "4.20.3",
        ["platform: has baremetal, none; baremetal alone is right"],
    ),
    (
        "no hosts",
        "{platform: {baremetal: {hosts: null}}}",
        "4.20.3",
        ["platform.baremetal.hosts: is no list of mappings; leave it to the lab, or give such a list"],
    ),
    (
        "too few hosts",
        hosts(("a", 1)),
        "4.20.3",
        ["platform.baremetal.hosts: has 1 of the role master for 3 replicas; as many are right"],
    ),
    (
        "hosts that are one",
        hosts(("a", 1), ("a", 1), ("b", 2)),
        "4.20.3",
        [
            "platform.baremetal.hosts[1].name: is 'a', which hosts[0] has already",
            "platform.baremetal.hosts[1].bootMACAddress: is '52:54:00:00:00:01', which hosts[0] has already",
            "platform.baremetal.hosts[1].bmc.address: is 'redfish-virtualmedia://192.0.2.1/1', which hosts[0] has already",
        ],
    ),
    (
        "hosts of nobody knows what",
        "{controlPlane: {replicas: 3}, platform: {baremetal: {hosts: [{name: a, role: boss, bootMode: bios, bootMACAddress: x, bmc: {address: 'ipmi://192.0.2.1'}}]}}}",
        "4.20.3",
        [
            "platform.baremetal.hosts: has 0 of the role master for 3 replicas; as many are right",
            "platform.baremetal.hosts[0].role: is 'boss'; master, arbiter, worker are right",
            "platform.baremetal.hosts[0].bootMACAddress: is 'x'; six pairs of hex digits are right",
            "platform.baremetal.hosts[0].bootMode: is 'bios'; UEFI, UEFISecureBoot, legacy are right",
            "platform.baremetal.hosts[0].bmc.address: is one of ipmi, which boots from a provisioning network; redfish-virtualmedia, idrac-virtualmedia, ilo5-virtualmedia are right without one",
        ],
    ),
    (
        "more replicas than nodes",
        "{compute: [{name: worker, replicas: 2}]}",
        "4.20.3",
        ["platform.baremetal.hosts: has 0 of the role worker for 2 replicas; as many are right"],
    ),
    (
        "one control plane node",
        "{controlPlane: {replicas: 1}}",
        "4.20.3",
        ["controlPlane.replicas: is 1; 3 or more are right, or 2 with an arbiter or with two fencing credentials"],
    ),
    (
        "a pool without its number, which would be 3",
        "{compute: [{name: worker, hyperthreading: Disabled}]}",
        "4.20.3",
        ["compute[0].replicas: is empty; a whole number is right"],
    ),
    (
        "credentials of strangers",
        "{controlPlane: {fencing: {credentials: [{hostname: a, address: x}, {hostname: control-plane-1}, {}]}}}",
        "4.20.3",
        [
            "featureSet: is empty beside fencing, a technology preview in 4.20; TechPreviewNoUpgrade or CustomNoUpgrade is right",
            "controlPlane.fencing.credentials: has 3; 2 are right, one for each control plane node",
            "controlPlane.fencing.credentials[0].hostname: is 'a'; a control plane host is right",
            "controlPlane.fencing.credentials[1].address: is empty; the address of its BMC is right",
            "controlPlane.fencing.credentials[2].hostname: is empty; a control plane host is right",
            "controlPlane.fencing.credentials[2].address: is empty; the address of its BMC is right",
        ],
    ),
    (
        "a VIP elsewhere",
        "{platform: {baremetal: {apiVIPs: [192.0.2.5]}}}",
        "4.20.3",
        ["platform.baremetal.apiVIPs: has '192.0.2.5'; an address in the machine network is right"],
    ),
    (
        "VIPs that are one",
        "{platform: {baremetal: {apiVIPs: [192.168.126.6]}}}",
        "4.20.3",
        [
            "platform.baremetal.ingressVIPs: has '192.168.126.6', which is a VIP of the API already; another one is right",
            "platform.baremetal.apiVIPs: is '192.168.126.6', and the lab has 192.168.126.5; lab_spec.machine_network.vips.api is the place for it",
        ],
    ),
    (
        "no VIP: DNS would be asked",
        "{platform: {baremetal: {apiVIPs: null}}}",
        "4.20.3",
        ["platform.baremetal.apiVIP: names no address; one in the machine network is right, or one of each IP version"],
    ),
    (
        "two VIPs of one version",
        "{platform: {baremetal: {apiVIPs: [192.168.126.5, 192.168.126.7], ingressVIPs: [192.168.126.6, 192.168.126.8]}}}",
        "4.20.3",
        [
            f"platform.baremetal.{name}VIPs: has two addresses of one IP version; one of each is right"
            for name in ("api", "ingress")
        ],
    ),
    (
        "half a static address",
        "{platform: {baremetal: {bootstrapExternalStaticIP: 192.168.126.9}}}",
        "4.20.3",
        [
            "platform.baremetal.bootstrapExternalStaticGateway: is missing beside bootstrapExternalStaticIP; they go together",
            "platform.baremetal.bootstrapExternalStaticDNS: is missing beside bootstrapExternalStaticIP; they go together",
        ],
    ),
    (
        "a static address that is a VIP",
        "{platform: {baremetal: {bootstrapExternalStaticIP: 192.168.126.5, bootstrapExternalStaticGateway: 192.0.2.1, bootstrapExternalStaticDNS: dns}}}",
        "4.20.3",
        [
            "platform.baremetal.bootstrapExternalStaticGateway: is 192.0.2.1; an address in the machine network is right",
            "platform.baremetal.bootstrapExternalStaticDNS: is 'dns'; an address is right",
            "platform.baremetal.bootstrapExternalStaticIP: is '192.168.126.5', which is a VIP or the gateway; another one is right",
        ],
    ),
    (
        "a MAC that a host has",
        "{platform: {baremetal: {externalMACAddress: '52:54:00:2C:A0:17'}}}",
        "4.20.3",
        ["platform.baremetal.externalMACAddress: is 52:54:00:2c:a0:17, which a host has already; another one is right"],
    ),
    (
        "networks that overlap",
        "{networking: {clusterNetwork: [{cidr: 172.30.0.0/15, hostPrefix: 23}]}}",
        "4.20.3",
        [
            "networking.serviceNetwork: has 172.30.0.0/16, which overlaps 172.30.0.0/15 of clusterNetwork; networks apart are right"
        ],
    ),
    (
        "a host prefix that does not fit",
        "{networking: {clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 12}]}}",
        "4.20.3",
        ["networking.clusterNetwork[0].hostPrefix: is 12; 14 to 32 are right"],
    ),
    (
        "a key of networking that nobody knows",
        "{networking: {networkTyp: OVNKubernetes}}",
        "4.20.3",
        ["networking.networkTyp: is no key of 4.20; did you mean networkType?"],
    ),
    (
        "networks of other versions",
        "{networking: {serviceNetwork: ['fd02::/112']}}",
        "4.20.3",
        ["networking.serviceNetwork: has not the IP versions of machineNetwork; one network of each is right"],
    ),
    (
        "no networks",
        "{networking: {clusterNetwork: [10.128.0.0], machineNetwork: ['']}}",
        "4.20.3",
        [
            "networking.machineNetwork: is no list of networks; one network of each IP version is right",
            "platform.baremetal.apiVIPs: has '192.168.126.5'; an address in the machine network is right",
            "platform.baremetal.ingressVIPs: has '192.168.126.6'; an address in the machine network is right",
        ],
    ),
    (
        "another name",
        "{metadata: {name: a.b}}",
        "4.20.3",
        ["metadata.name: is 'a.b'; at most 54 characters, with no dot, are right"],
    ),
    (
        "another cluster",
        "{metadata: {name: other}, baseDomain: example.test}",
        "4.20.3",
        [
            "metadata.name: is 'other', and the lab has ha; lab_spec.name is the place for it",
            "baseDomain: is 'example.test', and the lab has lab.example.test; lab_spec.base_domain is the place for it",
        ],
    ),
    (
        "other networks",
        "{networking: {machineNetwork: [{cidr: 192.168.0.0/16}]}, platform: {baremetal: {externalBridge: br0, apiVIPs: [192.168.126.7], provisioningNetwork: Managed}}}",
        "4.20.3",
        [
            "platform.baremetal.externalBridge: is 'br0', and the lab has baremetal; lab_spec.machine_network.bridge is the place for it",
            "platform.baremetal.provisioningNetwork: is 'Managed', and the lab has Disabled; lab_spec.provisioning_network is the place for it",
            "networking.machineNetwork: is '192.168.0.0/16', and the lab has 192.168.126.0/24; lab_spec.machine_network.cidr is the place for it",
            "platform.baremetal.apiVIPs: is '192.168.126.7', and the lab has 192.168.126.5; lab_spec.machine_network.vips.api is the place for it",
        ],
    ),
    (
        "no bridge",
        "{platform: {baremetal: {externalBridge: null}}}",
        "4.20.3",
        [
            "platform.baremetal.externalBridge: is empty, and the lab has baremetal; lab_spec.machine_network.bridge is the place for it"
        ],
    ),
    (
        "other hosts",
        hosts(("a", 1), ("control-plane-1", 2), ("control-plane-2", 3)),
        "4.20.3",
        [
            "platform.baremetal.hosts: has control-plane-0, control-plane-1, control-plane-2, a: not as the lab's nodes in name, role, bootMACAddress and bmc.address; lab_spec.nodes is the place for it"
        ],
    ),
    (
        "a list for a mapping",
        "{networking: []}",
        "4.20.3",
        ["networking: is no mapping; leave it to the lab, or give a mapping"],
    ),
    (
        "a provisioning network in the machine network",
        "{platform: {baremetal: {provisioningNetwork: Managed, provisioningNetworkCIDR: 192.168.126.0/25, bootstrapProvisioningIP: 10.0.0.1}}}",
        "4.20.3",
        [
            "platform.baremetal.provisioningNetworkCIDR: is 192.168.126.0/25, which overlaps the machine network 192.168.126.0/24; a network apart is right",
            "platform.baremetal.bootstrapProvisioningIP: is '10.0.0.1'; an address in 192.168.126.0/25 is right",
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
    with pytest.raises(InstallConfigError, match=r"bootstrapExternalStaticIP: is no key of 4.10; 4.11 is the first"):
        install_config(lab_of(STATIC, "4.20.3"), "4.10.3")
    with pytest.raises(InstallConfigError, match=r"arbiter: is no key of 4.19; 4.20 is the first"):
        install_config(lab_of("nodes: {control_plane: {count: 2}, arbiters: {count: 1}}"), "4.19.3")


TEXTS = [
    ({"bmc_ca": "nothing"}, "The CA of the BMC service cannot be read as certificates"),
    (
        {"bmc_ca": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"},
        "The CA of the BMC service cannot be read",
    ),
    ({"trust_bundle": CERTIFICATE + PRIVATE_KEY}, "The trust bundle holds a private key, which would go to every node"),
    ({"ssh_key": PRIVATE_KEY}, "lab_spec.install.ssh_key_file names a file with a private key"),
    ({"ssh_key": "hidden-word"}, "lab_spec.install.ssh_key_file names a file with something else than public keys"),
]


@pytest.mark.parametrize(("given", "expected"), TEXTS)
def test_refuses_texts_that_are_not_what_they_should_be(given: dict[str, str], expected: str) -> None:
    with pytest.raises(OperatorError, match=f"^{expected}") as caught:
        config_of("", "4.21.3", **given)
    assert "hidden-word" not in str(caught.value)


@pytest.mark.parametrize("text", ["install: {fips: true}", "install: {config: {fips: true}}"])
def test_a_key_that_fips_has_not(text: str) -> None:
    with pytest.raises(
        OperatorError, match="names a key of a kind that FIPS does not have: one of RSA or ECDSA is right"
    ):
        config_of(text, ssh_key=SSH_KEY)
    assert config_of(text, ssh_key="ssh-rsa AAAA me\n# more\necdsa-sha2-nistp256 AAAA you\n")["sshKey"].count("\n") == 1


def test_a_lab_without_a_release() -> None:
    with pytest.raises(OperatorError, match="names no release"):
        install_config(lab_model({"name": "ha"}))
    with pytest.raises(OperatorError, match=r"The version is 'newest': 4.9 or later is right"):
        install_config(lab_model({"name": "ha"}), "newest")


def test_the_filter_takes_what_ansible_hands_over() -> None:
    lab = lab_of("nodes: {workers: {count: 1}}")
    assert install_config_filter(wrapped(lab), version=wrapped("4.20.3"), ssh_key=wrapped(SSH_KEY)) == install_config(
        lab, ssh_key=SSH_KEY
    )
    with pytest.raises(AnsibleFilterError, match=r"^The version is 'x'"):
        install_config_filter(lab, "x")


def test_the_filter_gives_a_config_that_is_not_the_lab_itself() -> None:
    lab = lab_of("")
    install_config_filter(lab)["platform"]["baremetal"]["hosts"].clear()
    assert install_config_filter(lab) == install_config(lab)
