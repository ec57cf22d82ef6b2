# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that is looked at when an installation stands still or has failed."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._host import packet_filter
from ansible_collections.nometal.ipi.plugins.module_utils._install import (
    diagnosis_bootstrap,
    diagnosis_cluster,
    diagnosis_host,
    diagnosis_nodes,
)
from ansible_collections.nometal.ipi.plugins.module_utils._install.diagnosis_bootstrap import Bootstrap
from ansible_collections.nometal.ipi.plugins.module_utils._install.diagnosis_host import HostSeen
from ansible_collections.nometal.ipi.plugins.module_utils._libvirt.connection import connect
from ansible_collections.nometal.ipi.plugins.module_utils._redfish import info

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Callable

    from ansible_collections.nometal.ipi.plugins.module_utils._host.packet_filter import Rule
    from ansible_collections.nometal.ipi.plugins.module_utils._install.diagnosis_cluster import MetalHost
    from ansible_collections.nometal.ipi.plugins.module_utils._install.diagnosis_nodes import Node
    from ansible_collections.nometal.ipi.plugins.module_utils._install.place import Place

ANSWER_SECONDS = 30.0
WAITING = "waits for libvirt at"


@dataclass(frozen=True)
class Installation:
    """What is installed, and what there is to look at it with."""

    place: Place
    domain: str = ""
    api_vips: Sequence[str] = ()
    nodes: Sequence[Mapping[str, Any]] = ()
    """As the lab model has them."""
    bmc_home: str = "/var/lib/nometal/bmc"
    tools: str | None = None
    libvirt_uri: str = "qemu:///system"


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
    metal_hosts: Sequence[MetalHost] = ()
    operators: Mapping[str, str] = field(default_factory=dict)
    rules: Sequence[Rule] = ()


def gather(installation: Installation) -> Evidence:
    host = diagnosis_host.look(installation.domain, installation.api_vips)
    bmcs, bmc_trouble = _bmcs(installation)
    seen = _of_libvirt(installation)
    has_api = any(not trouble for trouble in host.api.values())
    oc = diagnosis_cluster.oc_of(installation.tools, installation.place.kubeconfig) if has_api else None
    return Evidence(
        host=host,
        bmcs=bmcs,
        bmc_trouble=bmc_trouble,
        metal_hosts=diagnosis_cluster.metal_hosts(oc) if oc else (),
        operators=diagnosis_cluster.operators(oc) if oc else {},
        rules=packet_filter.read(),
        **seen,
    )


def nodes(installation: Installation) -> list[Node]:
    """Of a libvirt that is being restarted there is nothing to be seen."""
    with suppress(OperatorError):
        return list(_asked(installation.libvirt_uri, lambda there: diagnosis_nodes.look(there, installation.nodes)))
    return []


def _of_libvirt(installation: Installation) -> dict[str, Any]:
    def look(connection: Any) -> dict[str, Any]:
        found = diagnosis_nodes.look(connection, installation.nodes)
        return {
            "nodes": found,
            "consoles": {node.name: diagnosis_nodes.last_words(node.console) for node in found},
            "bootstrap": diagnosis_bootstrap.look(connection, installation.place),
        }

    try:
        return dict(_asked(installation.libvirt_uri, look))
    except OperatorError as error:
        return {"libvirt_trouble": str(error)}


def _asked(uri: str, look: Callable[[Any], Any]) -> Any:
    """A libvirt that hangs lets callers wait without end. Who waits for it is left behind, and nobody joins in."""
    answers: list[Any] = []

    def ask() -> None:
        try:
            with connect(uri) as connection:
                answers.append(look(connection))
        except Exception as error:  # it is raised below
            answers.append(error)

    if not any(thread.name == f"{WAITING} {uri}" for thread in threading.enumerate()):
        thread = threading.Thread(target=ask, name=f"{WAITING} {uri}", daemon=True)
        thread.start()
        thread.join(ANSWER_SECONDS)
    if not answers:
        raise OperatorError(f"{uri} has said nothing for {ANSWER_SECONDS:.0f} seconds.")
    if isinstance(answers[0], Exception):
        raise answers[0]
    return answers[0]


def _bmcs(installation: Installation) -> tuple[dict[str, dict[str, Any]], str]:
    try:
        told = info.information(installation.bmc_home, installation.place.lab)
    except OperatorError as error:
        return {}, str(error)
    return {entry["name"]: entry for entry in told}, ""
