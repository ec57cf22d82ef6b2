# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""BareMetalHosts with their Secrets, for metal3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes.manifests import yaml_of

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.export.rack import Rack

FILE = "bare-metal-hosts.yaml"


def files(rack: Rack) -> dict[str, str]:
    return {FILE: yaml_of(rack.hosts, rack.lab["name"], rack.namespace)}
