# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Terraform's lines about the bootstrap VM and the control plane: up to 4.15, they are all that the log has of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

ADDRESS = re.compile(
    r"(?:module\.\w+\.)?(?:data\.)?(?P<kind>libvirt_domain|ironic_\w+)\.(?:bootstrap|openshift-master-\w+)"
    r'(?:\[(?P<host>\d+|"[^"]+")\])?: (?P<said>(?:Still )?(?:[Cc]reating|[Rr]eading)|(?:Creation|Read) complete)'
)
STATES = {
    ("ironic_node_v1", False): "inspecting",
    ("ironic_node_v1", True): "available",
    ("ironic_introspection", False): "inspecting",
    ("ironic_deployment", False): "provisioning",
    ("ironic_deployment", True): "provisioned",
}
"""By kind of resource and whether it is made. One of a node registers it and looks into it."""


@dataclass(frozen=True)
class Said:
    bootstrap_made: bool = False
    host: str | None = None
    """Its number or name."""
    state: str = ""


def said(msg: str) -> Said | None:
    found = ADDRESS.match(msg.lstrip()) if "_" in msg else None
    if not found:
        return None
    done = found["said"] in ("Creation complete", "Read complete")
    if found["kind"] == "libvirt_domain":
        return Said(bootstrap_made=done)
    state = STATES.get((found["kind"], done))
    return Said(host=(found["host"] or "0").strip('"'), state=state) if state else None
