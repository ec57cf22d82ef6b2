# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the cluster says of itself. All at once and for a short time: an API that hangs must not hold status up."""

from __future__ import annotations

import base64
import re
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api import objects, signers
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import MACHINE_API
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.errors import ApiError
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.manifests import is_another_network
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.observation import (
    ANSWERS,
    NOT_ASKED,
    OF_SIGNER,
    SILENT,
    Certificate,
    Cluster,
    Member,
    Operator,
    Vip,
    iso,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.vips import API_PORT, CONNECT_SECONDS, look
from ansible_collections.nometal.ipi.plugins.module_utils._observe.host import UnmeasurableError, within

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import Client

    Item = Mapping[str, Any]

API, INGRESS = "API", "ingress"
PORTS = {API: API_PORT, INGRESS: 443}
NAME_SECONDS = 6.0
ANSWER_SECONDS = 30.0
"""For a host that is overloaded; requests themselves have a limit of their own."""
VERSIONS = "clusterversions.config.openshift.io"
KINDS = (objects.NODES, objects.HOSTS, objects.MACHINES, objects.REQUESTS, objects.OPERATORS, VERSIONS)
NETWORKS = '{range .items[?(@.data.nmstate)]}{.metadata.name} {.data.nmstate}{"\\n"}{end}'
FAILING = {"Available": "not available", "Degraded": "degraded"}
CA = re.compile(r"certificate-authority-data:\s*(\S+)")
SERVER = re.compile(r"server:\s*[\"']?https://(?P<host>\[[^\]]+\]|[^:/\s\"']+)(?::(?P<port>\d+))?")
EXPIRED = "certificate has expired"


@dataclass(frozen=True)
class Said:
    cluster: Cluster
    members: Mapping[str, Member] = field(default_factory=dict)
    """By BareMetalHost. The installer calls each as the lab calls the node."""
    networks: Mapping[str, str] = field(default_factory=dict)
    """By BareMetalHost, the Secrets of those that have a network configuration."""


def ask(
    client: Client | None,
    vips: Mapping[str, Sequence[str]],
    macs: Mapping[str, str],
    networks: Mapping[str, Mapping[str, Any]] | None = None,
) -> Said:
    """Vips: by what they are for. Macs: of the nodes, with their names. Networks: what lab_spec configures, by node."""
    if client is None:
        return Said(Cluster(NOT_ASKED, "The host has neither oc nor kubectl.", vips=_vips(vips, macs)))
    silent = _connect(client)
    if silent:
        return Said(Cluster(SILENT, silent, vips=_vips(vips, macs)))
    with ThreadPoolExecutor() as pool:
        held = pool.submit(_vips, vips, macs)
        certificates = pool.submit(_api_certificate, client), pool.submit(_signer, client)
        configured = pool.submit(_networks, client) if networks else None
        said = _said(client)
        if networks and configured:
            said = _compared(said, networks, configured.result())
        known = [each for each in (certificate.result() for certificate in certificates) if each]
        return replace(said, cluster=replace(said.cluster, vips=held.result(), certificates=known))


def _said(client: Client) -> Said:
    try:
        return said_by(_objects(client))
    except (ApiError, UnmeasurableError) as error:
        return Said(Cluster(SILENT, str(error)))


def _connect(client: Client) -> str:
    """Why nothing answers where the kubeconfig says that the API is."""
    server = SERVER.search(client.kubeconfig.read_text(encoding="utf-8", errors="replace"))
    if not server:
        return ""
    host, port = server["host"].strip("[]"), int(server["port"] or PORTS[API])
    error = _error_at(host, port)
    return f"{host}:{port}: {error}" if error else ""


def _networks(client: Client) -> dict[str, str]:
    """What Secrets hold, by their names. No secret comes here with it."""
    words = ("get", "secrets", f"--namespace={MACHINE_API}", f"--output=jsonpath={NETWORKS}")
    with suppress(ApiError, UnmeasurableError):
        lines = within(ANSWER_SECONDS, lambda: client.run(*words)).splitlines()
        return dict(line.split(" ", 1) for line in lines)
    return {}


def _compared(said: Said, networks: Mapping[str, Mapping[str, Any]], secrets: Mapping[str, str]) -> Said:
    """What is not known of a Secret does not differ."""

    def changed(name: str) -> bool:
        secret = said.networks.get(name)
        return is_another_network(secrets.get(secret, "") if secret else None, networks.get(name, {}))

    members = {name: replace(member, network_changed=changed(name)) for name, member in said.members.items()}
    return replace(said, members=members)


def _objects(client: Client) -> dict[str, list[Item]]:
    """By kind. One command for all is quickest; a cluster that lacks a kind refuses it whole."""
    try:
        items = within(ANSWER_SECONDS, lambda: client.get(",".join(KINDS), all_namespaces=True))
    except ApiError as error:
        if error.reason != "not found":
            raise
        with ThreadPoolExecutor() as pool:
            items = [item for found in pool.map(lambda kind: _of_kind(client, kind), KINDS) for item in found]
    found: dict[str, list[Item]] = {}
    for item in items:
        found.setdefault(str(item.get("kind")), []).append(item)
    return found


def _of_kind(client: Client, kind: str) -> list[Item]:
    with suppress(ApiError, UnmeasurableError):
        return within(ANSWER_SECONDS, lambda: client.get(kind, all_namespaces=True))
    return []


def said_by(found: Mapping[str, Sequence[Item]]) -> Said:
    """Found: objects by kind."""
    hosts = [objects.BareMetalHost.from_dict(item) for item in found.get("BareMetalHost", ())]
    machines = [objects.Machine.from_dict(item) for item in found.get("Machine", ())]
    nodes = {node.name: node for node in (objects.Node.from_dict(item) for item in found.get("Node", ()))}
    requests = [objects.CertificateRequest.from_dict(item) for item in found.get("CertificateSigningRequest", ())]
    operators = [_operator(item) for item in found.get("ClusterOperator", ())]
    version = next(iter(found.get("ClusterVersion", ())), {})
    cluster = Cluster(
        state=ANSWERS,
        version=_version(version),
        operators=len(operators),
        operators_failing=[operator for operator in operators if operator.state],
        requests_pending=sum(request.pending for request in requests),
    )
    members = {host.name: _member(host, machines, nodes) for host in hosts}
    return Said(cluster, members, {host.name: host.network for host in hosts if host.network})


def _member(
    host: objects.BareMetalHost, machines: Sequence[objects.Machine], nodes: Mapping[str, objects.Node]
) -> Member:
    machine = next((each for each in machines if each.host == host.name or each.name == host.consumer), None)
    name = machine.node if machine and machine.node else host.name
    node = nodes.get(name) or next((each for each in nodes.values() if each.name.partition(".")[0] == name), None)
    return Member(
        host_state=host.state,
        host_error=host.error_message,
        machine=machine.name if machine else "",
        machine_phase=machine.phase if machine else "",
        machine_error=machine.error if machine else "",
        node=node.name if node else "",
        ready={"True": True, "False": False}.get(node.ready) if node else None,
        cordoned=bool(node and node.unschedulable),
    )


def _operator(item: Item) -> Operator:
    """State: empty where it is well."""
    seen = objects.ClusterOperator.from_dict(item)
    for kind, state in FAILING.items():
        if kind in seen.failing:
            return Operator(seen.name, state, seen.messages[kind])
    return Operator(seen.name)


def _version(item: Item) -> str:
    status = item.get("status") or {}
    completed = (each for each in status.get("history") or [] if each.get("state") == "Completed")
    return str(next(completed, status.get("desired") or {}).get("version") or "")


def _vips(vips: Mapping[str, Sequence[str]], macs: Mapping[str, str]) -> list[Vip]:
    wanted = [(kind, address) for kind, addresses in vips.items() for address in addresses]
    found = look([(address, PORTS[kind]) for kind, address in wanted])
    return [
        Vip(kind, address, macs.get(each.mac, ""), answers=not each.error)
        for (kind, address), each in zip(wanted, found)
    ]


def _error_at(host: str, port: int) -> str:
    """A resolver with a dead name server keeps whoever asks it for long."""
    try:
        within(NAME_SECONDS + CONNECT_SECONDS, lambda: socket.create_connection((host, port), CONNECT_SECONDS).close())
    except (OSError, UnmeasurableError) as error:
        return str(error)
    return ""


def _signer(client: Client) -> Certificate | None:
    with suppress(ApiError, UnmeasurableError):
        expires = within(ANSWER_SECONDS, lambda: signers.not_after(client, signers.TO_KUBELETS))
        if expires:
            return Certificate(OF_SIGNER, expires)
    return None


def _api_certificate(client: Client) -> Certificate | None:
    with suppress(OSError, ValueError, UnmeasurableError):
        text = client.kubeconfig.read_text(encoding="utf-8")
        server, ca = SERVER.search(text), CA.search(text)
        if server and ca:
            return within(NAME_SECONDS + CONNECT_SECONDS, lambda: _served(server, ca[1]))
    return None


def _served(server: re.Match[str], ca: str) -> Certificate | None:
    """Python tells when a certificate expires only if it is valid."""
    context = ssl.create_default_context(cadata=base64.b64decode(ca).decode())
    host, port = server["host"].strip("[]"), int(server["port"] or PORTS[API])
    try:
        plain = socket.create_connection((host, port), CONNECT_SECONDS)
        with context.wrap_socket(plain, server_hostname=host) as connection:
            expires = str((connection.getpeercert() or {}).get("notAfter", ""))
    except ssl.SSLCertVerificationError as error:
        return Certificate("serving the API", expired=True) if EXPIRED in str(error) else None
    return Certificate("serving the API", iso(ssl.cert_time_to_seconds(expires))) if expires else None
