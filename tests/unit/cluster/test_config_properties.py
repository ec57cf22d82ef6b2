# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever the model accepts gives an install-config.yaml that the installer accepts, for every release."""

from __future__ import annotations

import copy
import json
import os
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from support import installer_rules
from unit.cluster.config_samples import CERTIFICATE, RELEASES, SSH_KEY, complete, lab_of, version_of
from unit.lab.strategies import plausible

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.install_config import install_config
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.manifests import install_manifests
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import LabSpecError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model

SETTINGS = settings(
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    max_examples=int(os.environ.get("NOMETAL_EXAMPLES", "100")),
    suppress_health_check=[HealthCheck.too_slow],
)
MIRRORS = [{"source": "quay.io/okd/scos-release", "mirrors": ["mirror.example.test:5000/okd"]}]
WISHES = st.fixed_dictionaries(
    {},
    optional={
        "distribution": st.sampled_from(["ocp", "okd"]),
        "proxy": st.sampled_from([{"http": "http://proxy.example.test:3128"}, {"https": "https://[fd00::1]:3128"}]),
        "image_mirrors": st.sampled_from([[], MIRRORS]),
        "fips": st.booleans(),
        "capabilities": st.sampled_from(
            [
                {"baseline": "vCurrent"},
                {"baseline": "v4.11", "additional": ["MachineAPI", "Ingress", "OperatorLifecycleManager"]},
                {"baseline": "None", "additional": ["baremetal", "MachineAPI", "Ingress", "Console"]},
            ]
        ),
        "cpu_partitioning": st.booleans(),
        "config": st.sampled_from(
            [{}, {"publish": "External"}, {"platform": {"baremetal": {"libvirtURI": "qemu:///x"}}}]
        ),
    },
)


@st.composite
def wanted(draw: st.DrawFn) -> dict[str, Any]:
    """Labs that people might want, in all that the installer is told of them."""
    spec = draw(plausible())
    spec["firmware"] = draw(st.sampled_from(["uefi", "uefi-secure", "bios"]))
    spec["bmc"]["tls"] = draw(st.booleans())
    if "provisioning_network" in spec and draw(st.booleans()):
        spec["bmc"] = {"protocol": "ipmi"}
    spec["machine_network"]["bridge"] = draw(st.sampled_from(["baremetal", "lab0"]))
    spec["nodes"]["overrides"].setdefault("control-plane-0", {})["network_config"] = draw(
        st.sampled_from([None, {"interfaces": [{"name": "enp1s0"}]}])
    )
    return spec


@SETTINGS
@given(wanted(), WISHES, st.booleans())
def test_an_accepted_lab_is_accepted_by_the_installer(
    spec: dict[str, Any], wishes: dict[str, Any], trusted: bool
) -> None:
    for release in RELEASES:
        version = version_of(release)
        try:
            lab = lab_model({**spec, "install": {**wishes, "version": version}})
        except LabSpecError:
            event("refused")
            continue
        event("accepted")
        before = copy.deepcopy(lab)
        key = "ssh-rsa AAAAB3NzaC1yc2E operator" if wishes.get("fips") else SSH_KEY
        config = install_config(lab, ssh_key=key, bmc_ca=CERTIFICATE if trusted else None)
        assert installer_rules.problems(complete(config), release) == []
        assert json.loads(json.dumps(config)) == config
        assert lab == before
        assert not any("spare" in host["name"] for host in config["platform"]["baremetal"]["hosts"])
        assert bool(install_manifests(lab)) == (lab["control_plane"]["workers"] == 0)


@settings(SETTINGS, max_examples=300, derandomize=True, database=None)
@given(wanted(), st.lists(st.sampled_from(RELEASES), min_size=2, max_size=2, unique=True))
def test_model_configuration_and_installer_agree(spec: dict[str, Any], releases: list[tuple[int, int]]) -> None:
    """300 labs, the same in each run."""
    for release in releases:
        try:
            lab = lab_model({**spec, "install": {"version": version_of(release)}})
        except LabSpecError:
            event("refused")
            continue
        event("accepted")
        config = install_config(lab)
        assert installer_rules.problems(complete(config), release) == []
        platform, networking = config["platform"]["baremetal"], config["networking"]
        assert (config["metadata"]["name"], config["baseDomain"]) == (lab["name"], lab["base_domain"])
        assert [item["cidr"] for item in networking["machineNetwork"]] == lab["machine_networks"]
        vips = [platform.get(f"{name}VIPs", [platform.get(f"{name}VIP")]) for name in ("api", "ingress")]
        assert vips == [lab["vips"]["api"], lab["vips"]["ingress"]]
        nodes = [node for node in lab["nodes"] if node["installer"]]
        assert [(host["name"], host["bootMACAddress"], host["bmc"]["address"]) for host in platform["hosts"]] == [
            (node["name"], node["boot_mac"], node["bmc"]["address"]) for node in nodes
        ]


@SETTINGS
@given(wanted(), st.sampled_from(RELEASES))
def test_a_release_given_beside_the_lab_is_right_or_refused(spec: dict[str, Any], release: tuple[int, int]) -> None:
    """The exact version turns up late; it may even be another release than the lab was planned for."""
    try:
        lab = lab_model(spec)
    except LabSpecError:
        event("refused")
        return
    config = _config_or_refusal(lab, version_of(release))
    event("refused for the release" if isinstance(config, str) else "accepted")
    if isinstance(config, str):
        assert config.startswith("install-config.yaml has ")
    else:
        assert installer_rules.problems(complete(config), release) == []


def _config_or_refusal(lab: dict[str, Any], version: str) -> dict[str, Any] | str:
    try:
        return install_config(lab, version)
    except OperatorError as error:
        return str(error)


LABS = [
    install_config(lab_of(text))
    for text in (
        "provisioning_network: {}",
        "bootstrap: {address: static}",
        "nodes: {control_plane: {count: 2, fencing: true}}",
    )
]
JUNK = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-1, 4), st.sampled_from(["", "x", "192.168.126.5", "fd00::/64", "::1"])
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["name", "cidr"]), inner)),
    max_leaves=4,
)


@st.composite
def damaged(draw: st.DrawFn) -> dict[str, Any]:
    """A configuration in which something is something else. Only what stands in no list can be merged into."""
    config = copy.deepcopy(draw(st.sampled_from(LABS)))
    for _round in range(draw(st.integers(1, 3))):
        value: Any = config
        while True:
            key = draw(st.sampled_from(list(value) if isinstance(value, dict) else range(len(value))))
            if isinstance(value[key], (dict, list)) and value[key] and draw(st.integers(0, 3)):
                value = value[key]
                continue
            value[key] = draw(JUNK)
            break
    return config


@SETTINGS
@given(damaged(), st.sampled_from(RELEASES))
def test_whatever_is_merged_is_right_or_refused(config: dict[str, Any], release: tuple[int, int]) -> None:
    lab = lab_of("")
    lab["install"]["config"] = config
    made = _config_or_refusal(lab, version_of(release))
    event("refused" if isinstance(made, str) else "accepted")
    if isinstance(made, str):
        assert made.startswith("install-config.yaml has ")
    else:
        assert installer_rules.problems(complete(made), release) == []
