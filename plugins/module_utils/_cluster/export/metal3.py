# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""BareMetalHosts with their Secrets, for metal3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.manifests import yaml_of

if TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.export.rack import Rack

FILE = "bare-metal-hosts.yaml"
RUNNING = (
    "{file} names nodes of the cluster that is installed on lab {lab}. Do not apply it while that cluster is needed: "
    "metal3 inspects the hosts, and for that restarts them."
)


def files(rack: Rack) -> dict[str, str]:
    return {FILE: yaml_of(rack.hosts, rack.lab["name"], rack.namespace)}


def warning(directory: Path, lab: str) -> str:
    return RUNNING.format(file=directory / FILE, lab=lab)
