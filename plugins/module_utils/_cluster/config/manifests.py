# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests that a lab wants beside the installer's own."""

from __future__ import annotations

from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.install_config import release_to_install
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.releases import ETCD_SPEED

INGRESS = "cluster-ingress-default-ingresscontroller.yaml"
"""The name by which the installer's documentation has it."""
ETCD = "99-etcd-hardware-speed.yaml"


def install_manifests(lab: dict[str, Any], *, slow_disk: bool = False, version: str | None = None) -> dict[str, Any]:
    """By name of the file, in the directory `manifests` of the installer's."""
    release = release_to_install(lab, version)
    manifests = {}
    if lab["control_plane"]["workers"] == 0:
        manifests[INGRESS] = _one_router()
    if slow_disk and release >= ETCD_SPEED:
        manifests[ETCD] = _patient_etcd()
    return manifests


def _one_router() -> dict[str, Any]:
    return {
        "apiVersion": "operator.openshift.io/v1",
        "kind": "IngressController",
        "metadata": {"name": "default", "namespace": "openshift-ingress-operator"},
        "spec": {"replicas": 1},
    }


def _patient_etcd() -> dict[str, Any]:
    """The operator's own resource is made only where there is none yet, so this one stays."""
    return {
        "apiVersion": "operator.openshift.io/v1",
        "kind": "Etcd",
        "metadata": {"name": "cluster"},
        "spec": {"managementState": "Managed", "controlPlaneHardwareSpeed": "Slower"},
    }
