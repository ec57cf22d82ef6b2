#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: installer_bridges
short_description: Whether the OpenShift installer will find its bridges
version_added: 0.1.0
description:
  - Asks libvirt, at the socket that the installer dials, the questions that the installer asks about its bridges,
    and fails as the installer would, an hour earlier.
  - A bridge is found when an active libvirt network is called like its bridge, or when libvirt lists it among the
    active interfaces, which takes a port that has carrier. Changes nothing.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.read_only
options:
  bridges:
    description: The bridges, as C(externalBridge) and C(provisioningBridge) of install-config.yaml name them.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Ask what the installer asks
  nometal.ipi.installer_bridges:
    bridges: [baremetal]
"""

RETURN = r"""
found:
  description: As what libvirt knows each bridge.
  returned: success
  type: dict
  sample:
    baremetal: interface baremetal, which is up and has carrier
"""

import time
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError, run_module
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect
from ansible_collections.nometal.ipi.plugins.module_utils._observe.installer_view import URI, InstallerView, look

if TYPE_CHECKING:
    from typing import Any

ARGUMENTS = {"bridges": {"type": "list", "elements": "str", "required": True}}
PATIENCE = 5.0  # a bridge has carrier a moment after its first port is up


def run(params: dict[str, Any], **_options: bool) -> dict[str, Any]:
    with connect(URI) as connection:
        deadline = time.monotonic() + PATIENCE
        while missing_in(view := look(connection), params["bridges"]) and time.monotonic() < deadline:
            time.sleep(0.1)
    if missing := missing_in(view, params["bridges"]):
        raise OperatorError(
            f"The installer would not find bridge {', '.join(missing)}. libvirt has these active interfaces: "
            f"{', '.join(sorted(view.interfaces)) or 'none'}; and these active networks called like their bridge: "
            f"{', '.join(sorted(view.networks)) or 'none'}. A bridge without a port that is up is not among them."
        )
    return {"changed": False, "found": {bridge: view.explain(bridge) for bridge in params["bridges"]}}


def missing_in(view: InstallerView, bridges: list[str]) -> list[str]:
    return [bridge for bridge in bridges if not view.finds(bridge)]


def main() -> None:
    run_module(ARGUMENTS, run)


if __name__ == "__main__":
    main()
