# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of the cluster that stand for a host of the lab. Pure."""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import MACHINE_API
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import HOST_OF_MACHINE
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import yaml_text
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.wanted import WantedHost

OF_LAB = "nometal.ipi/lab"
"""Label of objects that are removed with the host for which they were made."""
HOLDER = "Lab"
"""Kind of what has a host so that no Machine takes it. Machines take hosts without a consumer only, in all releases."""
NETWORK_KEY = "nmstate"
MACHINE, MACHINE_VERSION = "Machine", "machine.openshift.io/v1beta1"
CA_NAME, CA_KEY = "bmc-verify-ca", "verify_ca.crt"


def bmc_secret_name(host: str) -> str:
    return f"{host}-bmc-secret"


def network_secret_name(host: str) -> str:
    return f"{host}-network-config-secret"


def secrets_of(spec: Mapping[str, Any]) -> list[str]:
    """Of a BareMetalHost, the names that it has of them."""
    names = [(spec.get("bmc") or {}).get("credentialsName"), spec.get("preprovisioningNetworkDataName")]
    return [str(name) for name in names if name]


def of_host(host: WantedHost, lab: str, *, held: bool, namespace: str = MACHINE_API) -> list[dict[str, Any]]:
    """In this order: a BareMetalHost without its Secret has an error until it is looked at again."""
    return [
        bmc_secret(host, lab, namespace),
        *_network_secrets(host, lab, namespace),
        bare_metal_host(host, lab, held=held, namespace=namespace),
    ]


def bmc_secret(host: WantedHost, lab: str, namespace: str = MACHINE_API) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(bmc_secret_name(host.name), lab, namespace),
        "type": "Opaque",
        "data": login_data(host),
    }


def login_data(host: WantedHost) -> dict[str, str]:
    return {"username": _encoded(host.username), "password": _encoded(host.password)}


def bare_metal_host(host: WantedHost, lab: str, *, held: bool, namespace: str = MACHINE_API) -> dict[str, Any]:
    spec = {
        "online": not host.is_spare,
        "bootMACAddress": host.facts["bootMACAddress"],
        "bootMode": host.facts["bootMode"],
        "bmc": {**bmc(host), "credentialsName": bmc_secret_name(host.name)},
        "rootDeviceHints": host.facts["rootDeviceHints"],
        **({"preprovisioningNetworkDataName": network_secret_name(host.name)} if _has_network(host) else {}),
        **({"consumerRef": holder(lab)} if held else {}),
    }
    return {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "metadata": _metadata(host.name, lab, namespace),
        "spec": spec,
    }


def bmc(host: WantedHost) -> dict[str, Any]:
    """How it is reached, without its Secret."""
    given = host.facts["bmc"]
    return {
        "address": given["address"],
        "disableCertificateVerification": bool(given.get("disableCertificateVerification")),
    }


def holder(lab: str) -> dict[str, str]:
    return {"apiVersion": "nometal.ipi/v1", "kind": HOLDER, "name": lab}


def machine(name: str, host: str, labels: Mapping[str, str], spec: Mapping[str, Any]) -> dict[str, Any]:
    """That has this host from the start."""
    metadata = {"name": name, "namespace": MACHINE_API, "labels": dict(labels)}
    return {
        "apiVersion": MACHINE_VERSION,
        "kind": MACHINE,
        "metadata": {**metadata, "annotations": {HOST_OF_MACHINE: f"{MACHINE_API}/{host}"}},
        "spec": dict(spec),
    }


def consumer(machine_name: str) -> dict[str, str]:
    """Of a BareMetalHost: no other Machine takes it, even before there is this one."""
    return {"apiVersion": MACHINE_VERSION, "kind": MACHINE, "name": machine_name, "namespace": MACHINE_API}


def ca_config_map(certificate: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CA_NAME, "namespace": MACHINE_API},
        "data": {CA_KEY: certificate},
    }


def yaml_of(hosts: list[WantedHost], lab: str, namespace: str = MACHINE_API) -> str:
    """To be applied by hand."""
    made = (of_host(host, lab, held=False, namespace=namespace) for host in hosts)
    return yaml_text.dump(*(each for objects in made for each in objects))


def _network_secrets(host: WantedHost, lab: str, namespace: str) -> list[dict[str, Any]]:
    if not _has_network(host):
        return []
    state = yaml_text.dump(host.facts["networkConfig"])
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": _metadata(network_secret_name(host.name), lab, namespace),
            "type": "Opaque",
            "data": {NETWORK_KEY: _encoded(state)},
        }
    ]


def is_another_network(secret: str | None, wanted: Mapping[str, Any]) -> bool:
    """Secret: what it holds, as far as that is known; None if the host has none. The installer writes another form."""
    if secret is None:
        return bool(wanted)
    with suppress(ValueError, OperatorError):
        text = base64.b64decode(secret).decode()
        known = next(iter(yaml_text.documents_in(text, "A network configuration")), None)
        return known is not None and known != wanted
    return False


def _has_network(host: WantedHost) -> bool:
    return bool(host.facts.get("networkConfig"))


def _metadata(name: str, lab: str, namespace: str) -> Mapping[str, Any]:
    return {"name": name, "namespace": namespace, "labels": {OF_LAB: lab}}


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
