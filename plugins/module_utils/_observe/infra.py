# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the installer calls a cluster's bootstrap VM, and which of the things that are called so are a lab's."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import LONGEST_INFRA_NAME

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths

SUFFIX = "-bootstrap"
INFRA_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")


@dataclass(frozen=True)
class Named:
    """Whatever on the host has such a name: a domain, a pool, files."""

    name: str
    bridges: frozenset[str] | None = None
    """Into which its domain is plugged; None: it has no domain."""


def base_of(cluster: str) -> str:
    """The part of the infraID that is not random."""
    return re.sub("-{2,}", "-", cluster)[:LONGEST_INFRA_NAME].rstrip("-")


def pattern_of(cluster: str) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(base_of(cluster))}-[a-z0-9]{{5}}{SUFFIX}")


def bootstrap_of(infra_id: str) -> str:
    return f"{infra_id}{SUFFIX}"


def ids_of(paths: Paths) -> frozenset[str]:
    """InfraIDs as the installer has noted them: before the cluster has metadata, or in place of damaged ones."""
    claimed = _read(paths.claimed).get("infraIDs")
    state = _read(paths.assets / ".openshift_install_state.json").get("*installconfig.ClusterID")
    noted = (
        _read(paths.metadata).get("infraID"),
        _read(paths.assets / "terraform.tfvars.json").get("cluster_id"),
        state.get("InfraID") if isinstance(state, dict) else None,
        *(claimed if isinstance(claimed, list) else ()),
    )
    return frozenset(infra for infra in noted if isinstance(infra, str) and INFRA_ID.fullmatch(infra))


def _read(path: Path) -> Mapping[str, Any]:
    with suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    return {}


@dataclass(frozen=True)
class Claim:
    """How a lab knows its own when the installer's notes are gone."""

    cluster: str
    bridges: frozenset[str] = frozenset()
    """Into one of which a domain must be plugged to be this lab's."""
    others: frozenset[str] = frozenset()
    """Bootstrap VMs that are other labs' by the installer's notes."""

    def ours(self, found: Iterable[Named]) -> list[str]:
        """By a domain on the lab's bridges; a pool, files and logs are known by the domain whose name they have."""
        return [thing.name for thing in self._alike(found) if self.bridges & (thing.bridges or frozenset())]

    def unproven(self, found: Iterable[Named]) -> list[str]:
        """What may be the lab's or anybody's: it has no domain, or no bridges are known."""
        return [thing.name for thing in self._alike(found) if thing.bridges is None or not self.bridges]

    def _alike(self, found: Iterable[Named]) -> Iterator[Named]:
        pattern = pattern_of(self.cluster)
        return (thing for thing in found if pattern.fullmatch(thing.name) and thing.name not in self.others)


def kept(name: str, cluster: str, rivals: Collection[str]) -> str:
    whose = " or of ".join([f"lab {cluster}", *rivals])
    return (
        f"what is called {name} (it may be a leftover of {whose}, or anybody's: the installer's notes are gone, and it "
        f"has no VM on the lab's bridges; if it is not in use, virsh undefine --nvram {name}, virsh pool-undefine "
        f"{name} and rm -r /var/lib/libvirt/openshift-images/{name} remove it)"
    )


def rivals_of(cluster: str, labs: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(lab for lab in labs if lab != cluster and base_of(lab) == base_of(cluster)))
