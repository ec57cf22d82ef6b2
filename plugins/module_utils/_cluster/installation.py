# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is installed, and what there is to look at it with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import BootstrapAddress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths


@dataclass(frozen=True)
class Addressing:
    """How the bootstrap VM gets its address, as the lab model has it."""

    mode: str = BootstrapAddress.POOL
    ips: Sequence[str] = ()
    """Its fixed addresses."""
    mac: str = ""
    """For which they are reserved."""


@dataclass(frozen=True)
class Installation:
    """What is installed, and what there is to look at it with."""

    paths: Paths
    domain: str = ""
    api_vips: Sequence[str] = ()
    nodes: Sequence[Mapping[str, Any]] = ()
    """As the lab model has them."""
    bmc_home: str = "/var/lib/nometal/bmc"
    bootstrap: Addressing = Addressing()
    tools: str | None = None
    ssh_key: str | None = None
    """File with the private key of the cluster's machines."""
    libvirt_uri: str = "qemu:///system"
