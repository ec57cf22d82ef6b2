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

from ansible_collections.nometal.ipi.plugins.module_utils._errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from ansible_collections.nometal.ipi.plugins.module_utils._install.place import Place

LONGEST_BASE = 21
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
    return re.sub("-{2,}", "-", cluster)[:LONGEST_BASE].rstrip("-")


def pattern_of(cluster: str) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(base_of(cluster))}-[a-z0-9]{{5}}{SUFFIX}")


def bootstrap_of(infra_id: str) -> str:
    return f"{infra_id}{SUFFIX}"


def ids_of(place: Place) -> frozenset[str]:
    """InfraIDs as the installer has noted them: before the cluster has metadata, or in place of damaged ones."""
    state = _read(place.assets / ".openshift_install_state.json").get("*installconfig.ClusterID")
    noted = (
        _read(place.metadata).get("infraID"),
        _read(place.assets / "terraform.tfvars.json").get("cluster_id"),
        state.get("InfraID") if isinstance(state, dict) else None,
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
    """Into one of which a domain must be plugged to be this lab's; any, if none is told."""
    others: frozenset[str] = frozenset()
    """Bootstrap VMs that are other labs' by the installer's notes."""
    rivals: tuple[str, ...] = ()
    """Other labs on this host for whose cluster the installer takes the same names."""

    def ours(self, found: Iterable[Named]) -> Iterator[str]:
        pattern = pattern_of(self.cluster)
        alike = [thing for thing in found if pattern.fullmatch(thing.name) and thing.name not in self.others]
        for thing in alike:
            plugged = bool(self.bridges) and thing.bridges is not None
            if not plugged and self.rivals:
                raise OperatorError(_undecided(thing, self.cluster, self.rivals))
            if not plugged or self.bridges & (thing.bridges or frozenset()):
                yield thing.name


def rivals_of(cluster: str, labs: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(lab for lab in labs if lab != cluster and base_of(lab) == base_of(cluster)))


def _undecided(thing: Named, cluster: str, rivals: Collection[str]) -> str:
    return (
        f"{thing.name} may be a leftover of cluster {cluster} or of {', '.join(rivals)}: the installer gives all of "
        "them the same names, and its notes that tell them apart are gone. Nothing was removed. If it is not in use, "
        f"remove it by hand (virsh undefine --nvram {thing.name}, virsh pool-undefine {thing.name}, "
        f"rm -r /var/lib/libvirt/openshift-images/{thing.name}), then run this again."
    )
