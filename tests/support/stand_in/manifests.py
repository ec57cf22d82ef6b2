"""The manifests of `create manifests`: those by which somebody may look for something, and the secret ones."""

from __future__ import annotations

import base64
from typing import Any

from support.stand_in import documents
from support.stand_in.lab import Lab

Manifest = dict[str, Any]


def manifests(lab: Lab, password: str) -> dict[str, str]:
    """By file name."""
    found = {**_of_the_cluster(lab), **_of_the_hosts(lab, password)}
    return {name: documents.dump(manifest) for name, manifest in found.items()}


def _of_the_cluster(lab: Lab) -> dict[str, Manifest]:
    config = "config.openshift.io/v1"
    pull_secret = {".dockerconfigjson": _base64(str(lab.config["pullSecret"]))}
    return {
        "manifests/cluster-config.yaml": _manifest(
            "v1", "ConfigMap", "cluster-config-v1", data={"install-config": documents.dump(_without_secrets(lab))}
        ),
        "manifests/cluster-infrastructure-02-config.yml": _manifest(
            config, "Infrastructure", "cluster", status={"infrastructureName": lab.infra_id, "platform": "BareMetal"}
        ),
        "manifests/cluster-ingress-02-config.yml": _manifest(
            config, "Ingress", "cluster", spec={"domain": f"apps.{lab.domain}"}
        ),
        "manifests/openshift-config-secret-pull-secret.yaml": _manifest(
            "v1", "Secret", "pull-secret", data=pull_secret, type="kubernetes.io/dockerconfigjson"
        ),
    }


def _of_the_hosts(lab: Lab, password: str) -> dict[str, Manifest]:
    found = {
        "openshift/99_kubeadmin-password-secret.yaml": _manifest(
            "v1", "Secret", "kubeadmin", data={"kubeadmin": _base64(password)}
        ),
        "openshift/99_baremetal-provisioning-config.yaml": _manifest(
            "metal3.io/v1alpha1",
            "Provisioning",
            "provisioning-configuration",
            spec={"provisioningNetwork": lab.provisioning_network, "watchAllNamespaces": False},
        ),
    }
    for number, host in enumerate(lab.platform["hosts"]):
        login = {key: _base64(host["bmc"][key]) for key in ("username", "password")}
        secret = f"{host['name']}-bmc-secret"
        bmc = {"address": host["bmc"]["address"], "credentialsName": secret}
        found[f"openshift/99_openshift-cluster-api_host-bmc-secrets-{number}.yaml"] = _manifest(
            "v1", "Secret", secret, data=login
        )
        found[f"openshift/99_openshift-cluster-api_hosts-{number}.yaml"] = _manifest(
            "metal3.io/v1alpha1",
            "BareMetalHost",
            host["name"],
            spec={"bmc": bmc, "bootMACAddress": host["bootMACAddress"], "online": True},
        )
    return found


def _manifest(version: str, kind: str, name: str, **rest: Any) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **rest}


def _without_secrets(lab: Lab) -> dict[str, Any]:
    own = ("username", "password")
    hosts = [
        {**host, "bmc": {key: value for key, value in host["bmc"].items() if key not in own}}
        for host in lab.platform["hosts"]
    ]
    platform = {"baremetal": {**lab.platform, "hosts": hosts}}
    return {**lab.config, "pullSecret": "", "platform": platform}


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
