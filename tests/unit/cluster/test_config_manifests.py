# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests that a lab wants beside the installer's own."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from unit.cluster.config_samples import lab_of

from ansible_collections.nometal.ipi.plugins.filter.install_manifests import FilterModule
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model

install_manifests = FilterModule().filters()["install_manifests"]
INGRESS, ETCD = "cluster-ingress-default-ingresscontroller.yaml", "99-etcd-hardware-speed.yaml"


@pytest.mark.parametrize(
    ("workers", "slow", "version", "expected"),
    [
        (0, False, "4.20.3", [INGRESS]),
        (2, False, "4.20.3", []),
        (0, True, "4.20.3", [INGRESS, ETCD]),
        (2, True, "5.0.1", [ETCD]),
        (2, True, "4.16.0", [ETCD]),
        (2, True, "4.15.9", []),
    ],
)
def test_which_manifests(workers: int, slow: bool, version: str, expected: list[str]) -> None:
    lab = lab_of(f"nodes: {{workers: {{count: {workers}}}}}", version)
    assert list(install_manifests(lab, slow_disk=slow)) == expected


def test_what_they_say() -> None:
    made = install_manifests(lab_of(""), True)
    assert made[INGRESS]["spec"] == {"replicas": 1}
    assert made[ETCD]["spec"]["controlPlaneHardwareSpeed"] == "Slower"
    assert [(item["apiVersion"], item["kind"], item["metadata"]["name"]) for item in made.values()] == [
        ("operator.openshift.io/v1", "IngressController", "default"),
        ("operator.openshift.io/v1", "Etcd", "cluster"),
    ]


def test_the_version_given_beside_the_lab_counts() -> None:
    assert list(install_manifests(lab_of(""), slow_disk=True, version="4.15.1")) == [INGRESS]
    with pytest.raises(AnsibleFilterError, match="has no release"):
        install_manifests(lab_model({"name": "ha"}))
