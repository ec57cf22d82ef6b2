# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes of a lab, the order in which they are stopped and started, and which of them a stop has switched off."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._lab import paths
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Role

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

ROLES_OF_CONTROL_PLANE = (Role.CONTROL_PLANE, Role.ARBITER)


@dataclass(frozen=True)
class Node:
    name: str
    vm_name: str
    role: str = Role.WORKER
    fqdn: str = ""
    ips: tuple[str, ...] = ()
    macs: tuple[str, ...] = ()

    @classmethod
    def of_model(cls, node: Mapping[str, Any]) -> Node:
        return cls(
            name=str(node["name"]),
            vm_name=str(node["vm_name"]),
            role=str(node.get("role", Role.WORKER)),
            fqdn=str(node.get("fqdn", "")),
            ips=tuple(node.get("ips") or ()),
            macs=tuple(str(nic.get("mac", "")).lower() for nic in node.get("nics") or ()),
        )

    @property
    def is_control_plane(self) -> bool:
        return self.role in ROLES_OF_CONTROL_PLANE

    @property
    def is_in_cluster(self) -> bool:
        """Spares are off until a cluster takes them."""
        return self.role != Role.SPARE


def order_of_stop(nodes: Iterable[Node], holders: Collection[str] = ()) -> list[tuple[Node, ...]]:
    """Workers, then the control plane; at last those of it that hold an address of the API, by MAC address."""
    known = tuple(nodes)
    last = tuple(node for node in known if node.is_control_plane and {*node.macs} & {*holders})
    batches = (
        tuple(node for node in known if not node.is_control_plane),
        tuple(node for node in known if node.is_control_plane and node not in last),
        last,
    )
    return [batch for batch in batches if batch]


def order_of_start(nodes: Iterable[Node]) -> list[tuple[Node, ...]]:
    return [batch for batch in parted(nodes) if batch]


def parted(nodes: Iterable[Node]) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """The control plane, and the others."""
    known = tuple(nodes)
    control_plane = tuple(node for node in known if node.is_control_plane)
    return control_plane, tuple(node for node in known if not node.is_control_plane)


class Record:
    """Which VMs a stop has found switched on: they are what the next start switches on."""

    def __init__(self, home: str | Path, lab: str) -> None:
        self._file = Path(home) / paths.LABS / lab / paths.RECORD_OF_STOP

    def names(self) -> list[str]:
        with suppress(OSError, ValueError, KeyError, TypeError):
            return [str(name) for name in json.loads(self._file.read_text(encoding="utf-8"))["vms"]]
        return []

    def add(self, names: Sequence[str]) -> None:
        """Those of a stop that was interrupted stay: some of them are off by now."""
        known = list(dict.fromkeys([*self.names(), *names]))
        if names:
            files.write_whole(self._file, json.dumps({"vms": known}, indent=2) + "\n", files.OWNER_ALONE)

    def remove(self) -> None:
        files.remove(self._file)
