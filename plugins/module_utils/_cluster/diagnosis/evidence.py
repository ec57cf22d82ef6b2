# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that is looked at when an installation stands still or has failed."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import info
from ansible_collections.nometal.ipi.plugins.module_utils._cluster import vips
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import MACHINE_API, client_of
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.errors import ApiError
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.objects import (
    HOSTS,
    OPERATORS,
    BareMetalHost,
    ClusterOperator,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import bootstrap as diagnosis_bootstrap
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import bootstrap_services
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import nodes as diagnosis_nodes
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.bootstrap import Bootstrap
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.nodes import asked
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.installation import Installation
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._observe import host, packet_filter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import Client
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.nodes import Node
    from ansible_collections.nometal.ipi.plugins.module_utils._observe.packet_filter import Rule

NAME_SECONDS = 6
PRESSURE = Path("/proc/pressure")
PARTS = ("cpu", "memory", "io")


@dataclass(frozen=True)
class HostSeen:
    load: float = 0.0
    """Of the last minute."""
    cores: int = 1
    memory_available: float = 1.0
    """A share."""
    pressure: Mapping[str, float] = field(default_factory=dict)
    """Percent of the last minute in which something waited; of those kinds that the kernel tells."""
    api: Mapping[str, str] = field(default_factory=dict)
    """By virtual address, why the API is not reached there; empty when it is."""
    api_refused: Sequence[str] = ()
    """Virtual addresses that a machine uses, without an API."""
    api_macs: Mapping[str, str] = field(default_factory=dict)
    """By virtual address, which of the host's neighbours holds it; of those that one holds."""
    api_name: str = ""
    api_addresses: Sequence[str] = ()
    """What the host's resolver says to that name."""


def look(domain: str, api_vips: Sequence[str]) -> HostSeen:
    name = f"api.{domain}" if domain else ""
    seen = vips.look_for_api(api_vips)
    return HostSeen(
        load=os.getloadavg()[0],
        cores=os.cpu_count() or 1,
        memory_available=_memory_available(),
        pressure={part: some for part in PARTS if (some := _pressure(part)) is not None},
        api={address: _said(vip.error) for address, vip in seen.items()},
        api_refused=[address for address, vip in seen.items() if isinstance(vip.error, ConnectionRefusedError)],
        api_macs={address: vip.mac for address, vip in seen.items() if vip.mac},
        api_name=name,
        api_addresses=_addresses(name) if name else (),
    )


def silent_holders(api_vips: Sequence[str]) -> dict[str, str]:
    """By virtual address at which there is no API, the MAC address of the host's neighbour that holds it."""
    return {address: vip.mac for address, vip in vips.look_for_api(api_vips).items() if vip.error and vip.mac}


def _said(error: OSError | None) -> str:
    return (error.strerror or str(error) or type(error).__name__) if error else ""


def _addresses(name: str) -> list[str]:
    """A resolver with a dead name server keeps whoever asks it for long."""
    found: set[str] = set()

    def ask() -> None:
        with suppress(OSError, UnicodeError):
            found.update(str(answer[4][0]) for answer in socket.getaddrinfo(name, None))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(NAME_SECONDS)
    return sorted(found)


def _memory_available() -> float:
    with suppress(OSError, ValueError, KeyError, ZeroDivisionError):
        total, available = host.memory()
        return available / total
    return 1.0


def _pressure(part: str) -> float | None:
    with suppress(OSError, ValueError, StopIteration):
        line = (PRESSURE / part).read_text(encoding="ascii").splitlines()[0]
        return float(next(word for word in line.split() if word.startswith("avg60="))[len("avg60=") :])
    return None


def metal_hosts(client: Client) -> list[BareMetalHost]:
    return [BareMetalHost.from_dict(item) for item in _answered(client, HOSTS, MACHINE_API)]


def _answered(client: Client, kind: str, namespace: str = "") -> list[Mapping[str, Any]]:
    """Nothing if there is no answer."""
    try:
        return client.get(kind, namespace=namespace)
    except ApiError:
        return []


def hosts_without_error(installation: Installation) -> set[str]:
    """As the cluster says; none if it does not answer."""
    client = client_of(installation.paths, installation.tools)
    return {host.name for host in metal_hosts(client) if not host.error_message} if client else set()


def operators(client: Client) -> dict[str, str]:
    """Those that are degraded or not available, and what they say."""
    found = (ClusterOperator.from_dict(item) for item in _answered(client, OPERATORS))
    return {each.name: next(filter(None, map(each.messages.get, each.failing)), "") for each in found if each.failing}


@dataclass(frozen=True)
class Evidence:
    host: HostSeen = field(default_factory=HostSeen)
    bootstrap: Bootstrap = field(default_factory=Bootstrap)
    nodes: Sequence[Node] = ()
    consoles: Mapping[str, str] = field(default_factory=dict)
    """The last words of each node."""
    libvirt_trouble: str = ""
    bmcs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By VM, what its BMC says of itself."""
    bmc_trouble: str = ""
    metal_hosts: Sequence[BareMetalHost] = ()
    operators: Mapping[str, str] = field(default_factory=dict)
    rules: Sequence[Rule] = ()


def gather(installation: Installation) -> Evidence:
    host = look(installation.domain, installation.api_vips)
    bmcs, bmc_trouble = _bmcs(installation)
    seen = _of_libvirt(installation)
    has_api = any(not trouble for trouble in host.api.values())
    client = client_of(installation.paths, installation.tools) if has_api else None
    return Evidence(
        host=host,
        bmcs=bmcs,
        bmc_trouble=bmc_trouble,
        metal_hosts=metal_hosts(client) if client else (),
        operators=operators(client) if client else {},
        rules=packet_filter.read(),
        **_asked_by_ssh(seen, installation),
    )


def _asked_by_ssh(seen: dict[str, Any], installation: Installation) -> dict[str, Any]:
    bootstrap = seen.get("bootstrap")
    if bootstrap is None or bootstrap.state != "running" or not bootstrap.address:
        return seen
    services = bootstrap_services.look(bootstrap.address, installation.ssh_key)
    return {**seen, "bootstrap": replace(bootstrap, services=services)}


def _of_libvirt(installation: Installation) -> dict[str, Any]:
    def look(connection: Any) -> dict[str, Any]:
        found = diagnosis_nodes.look(connection, installation.nodes)
        return {
            "nodes": found,
            "consoles": {node.name: diagnosis_nodes.last_words(node.console) for node in found if node.has_spoken},
            "bootstrap": diagnosis_bootstrap.look(connection, installation.paths, installation.bootstrap),
        }

    try:
        return dict(asked(installation.libvirt_uri, look))
    except OperatorError as error:
        return {"libvirt_trouble": str(error)}


def _bmcs(installation: Installation) -> tuple[dict[str, dict[str, Any]], str]:
    try:
        told = info.information(installation.bmc_home, installation.paths.lab)
    except OperatorError as error:
        return {}, str(error)
    return {entry["name"]: entry for entry in told["nodes"]}, ""
