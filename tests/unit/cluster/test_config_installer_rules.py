# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The other side of the tests: the rules of the installer find what is wrong, each at its time."""

from __future__ import annotations

from typing import Any

import pytest
from support import installer_rules
from unit.cluster.config_samples import RELEASES, complete, config_of, version_of

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import keys, rules
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.merge import merged

STATIC = "bootstrapExternalStatic"


def platform(**keys: Any) -> dict[str, Any]:
    return {"platform": {"baremetal": keys}}


def test_nothing_is_wrong_with_the_sample() -> None:
    assert installer_rules.problems(complete(config_of("")), (4, 20)) == []


AT_ONCE = [
    ({"metadata": {"name": "a.b"}}, "metadata.name"),
    ({"metadata": {"name": "a" * 55}}, "metadata.name"),
    ({"pullSecret": ""}, "pullSecret"),
    ({"platform": {"none": {}}}, "platform"),
    ({"controlPlane": {"replicas": 1}}, "controlPlane.replicas"),
    ({"controlPlane": {"platform": {"aws": {}}}}, "controlPlane.platform.aws"),
    ({"controlPlane": {"replicas": 2}}, "controlPlane.replicas"),
    ({"arbiter": {"name": "arbiter", "replicas": 1}}, "arbiter.replicas"),
    ({"compute": [{"name": "worker", "replicas": 1}]}, "platform.baremetal.hosts"),
    ({"networking": {"serviceNetwork": ["192.168.126.0/28"]}}, "networking.serviceNetwork[0]"),
    (
        {"networking": {"clusterNetwork": [{"cidr": "fd01::/48", "hostPrefix": 60}]}},
        "networking.clusterNetwork[0].hostPrefix",
    ),
    (platform(apiVIPs=["192.0.2.5"]), "platform.baremetal.apiVIPs"),
    (platform(apiVIPs=["192.168.126.6"]), "platform.baremetal.apiVIPs"),
    (platform(apiVIPs=None), "platform.baremetal.apiVIP"),
    (platform(hosts=[]), "platform.baremetal.hosts"),
]


@pytest.mark.parametrize(("change", "where"), AT_ONCE)
def test_refused_before_anything_is_made(change: dict[str, Any], where: str) -> None:
    found = installer_rules.refused(merged(complete(config_of("")), change), (4, 20))
    assert where in [problem.split(": ")[0] for problem in found]


LATER = [
    (platform(bootstrapExternalStaticIP="192.168.126.9"), (4, 20)),
    (platform(bootstrapExternalStaticIP="192.168.126.9", bootstrapExternalStaticGateway="192.168.126.1"), (4, 14)),
    (platform(externalMACAddress="52:54:00"), (4, 20)),
    (platform(provisioningNetwork="Managed", provisioningNetworkCIDR="192.168.126.0/25"), (4, 20)),
]


@pytest.mark.parametrize(("change", "release"), LATER)
def test_refused_only_at_the_start(change: dict[str, Any], release: tuple[int, int]) -> None:
    config = merged(complete(config_of("")), change)
    assert installer_rules.refused(config, release) == []
    assert installer_rules.refused_at_start(config, release)


def test_pxe_needs_a_provisioning_network() -> None:
    config = complete(config_of("{provisioning_network: {}, bmc: {protocol: ipmi}}"))
    assert installer_rules.problems(config, (4, 20)) == []
    found = installer_rules.refused_at_start(merged(config, platform(provisioningNetwork="Disabled")), (4, 20))
    assert any("driver ipmi requires provisioning network" in problem for problem in found)


NEVER = [
    {f"{STATIC}IP": "192.168.126.5", f"{STATIC}Gateway": "192.168.126.1", f"{STATIC}DNS": "192.168.126.1"},
    {f"{STATIC}IP": "192.0.2.9", f"{STATIC}Gateway": "192.168.126.1", f"{STATIC}DNS": "192.168.126.1"},
    {f"{STATIC}IP": "nine", f"{STATIC}Gateway": "192.168.126.1", f"{STATIC}DNS": "192.168.126.1"},
    {"bmcVerifyCA": "trust me"},
]


@pytest.mark.parametrize("change", NEVER)
def test_stumbled_over_without_a_word(change: dict[str, Any]) -> None:
    config = merged(complete(config_of("", "4.21.3")), platform(**change))
    assert installer_rules.refused(config, (4, 21)) + installer_rules.refused_at_start(config, (4, 21)) == []
    assert installer_rules.traps(config)


BASELINES = ["None", "vCurrent", "all", *(f"v4.{minor}" for minor in range(10, 21))]
ADDITIONAL = [
    [],
    ["MachineAPI"],
    ["MachineAPI", "Ingress"],
    ["MachineAPI", "Ingress", "OperatorLifecycleManager"],
    ["baremetal", "MachineAPI", "Ingress", "Console"],
    ["baremetal", "MachineAPI", "Ingress", "marketplace"],
    ["OperatorLifecycleManagerV1"],
    ["Speed"],
]


@pytest.mark.parametrize("release", RELEASES)
def test_both_sides_agree_about_capabilities(release: tuple[int, int]) -> None:
    """But for MachineAPI, which the installer can do without and the nodes of a lab cannot."""
    for baseline in BASELINES:
        for additional in ADDITIONAL:
            own = {"baselineCapabilitySet": baseline, "additionalEnabledCapabilities": additional}
            config = merged(complete(config_of("", version_of(release))), {"capabilities": own})
            found = rules.problems(config, release)
            ours = [finding for finding in found if not finding.message.startswith("must include MachineAPI, which")]
            theirs = installer_rules.problems(config, release)
            assert bool(ours) == bool(theirs), (baseline, additional, ours, theirs)


TABLES: dict[str, dict[str, tuple[int, int]]] = {
    "install-config": installer_rules.TOP,
    "metadata": installer_rules.METADATA,
    "networking": installer_rules.NETWORKING,
    "machineNetwork": installer_rules.MACHINE_NETWORK,
    "clusterNetwork": installer_rules.CLUSTER_NETWORK,
    "pool": installer_rules.POOL,
    "poolPlatform": installer_rules.POOL_PLATFORM,
    "machinePool": installer_rules.MACHINE_POOL,
    "fencing": installer_rules.FENCING,
    "fencingCredential": installer_rules.FENCING_CREDENTIAL,
    "proxy": installer_rules.PROXY,
    "imageContentSource": installer_rules.CONTENT_SOURCE,
    "imageDigestSource": installer_rules.DIGEST_SOURCE,
    "capabilities": installer_rules.CAPABILITIES,
    "platform": {"baremetal": (4, 9)},
    "platform.baremetal": installer_rules.BAREMETAL,
    "loadBalancer": installer_rules.LOAD_BALANCER,
    "host": installer_rules.HOST,
    "bmc": installer_rules.BMC,
    "rootDeviceHints": installer_rules.HINTS,
}


def test_both_sides_know_the_same_keys_from_the_same_releases_on() -> None:
    assert {section: {name: key.since for name, key in own.items()} for section, own in keys.KEYS.items()} == TABLES


LAST_WITHOUT = {
    "apiVIPs": (4, 11),
    "bootstrapExternalStaticDNS": (4, 13),
    "additionalNTPServers": (4, 17),
    "bmcVerifyCA": (4, 20),
    "provisioningNetworkGateway": (4, 21),
    "speed": (5, 2),
}


@pytest.mark.parametrize(("key", "last"), LAST_WITHOUT.items())
def test_keys_that_a_release_does_not_know(key: str, last: tuple[int, int]) -> None:
    config = merged(complete(config_of("", "4.9.3")), platform(**{key: "x"}))
    named = [f'unknown field "platform.baremetal.{key}"']
    assert installer_rules.unknown_keys(config, last) == named
    assert installer_rules.unknown_keys(config, (last[0], last[1] + 1)) == (named if key == "speed" else [])
