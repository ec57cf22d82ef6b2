# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Conflicts with other labs on the host."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor.finding import blocker, ok
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import Finding
from ansible_collections.nometal.ipi.plugins.module_utils._lab.claims import (
    Claim,
    claims,
    claims_of_name,
    clashes,
    nested,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs
from ansible_collections.nometal.ipi.plugins.module_utils._observe import libvirt_files
from ansible_collections.nometal.ipi.plugins.module_utils._observe.host import names_in
from ansible_collections.nometal.ipi.plugins.module_utils._observe.labs import record_of
from ansible_collections.nometal.ipi.plugins.module_utils._observe.libvirt_files import Pool

LABS = Path("/var/lib/nometal/labs")
POOLS_OF_LABS = "nometal-"
MOST = 4


@dataclass(frozen=True)
class Labs:
    """What each lab claims, with resolved directories, and the directories of pools."""

    own: tuple[Claim, ...]
    others: tuple[tuple[str, tuple[Claim, ...]], ...]
    pools: tuple[Pool, ...] = ()


def measure_labs(needs: Needs) -> Labs:
    names = [name for name in names_in(LABS) if name != needs.name and (LABS / name).is_dir()]
    return Labs(
        own=_real(claims(needs.model)) if needs.model else (),
        others=tuple((name, _real(_claims_of(name))) for name in names),
        pools=tuple(replace(pool, path=os.path.realpath(pool.path)) for pool in libvirt_files.pools()),
    )


def _claims_of(lab: str) -> tuple[Claim, ...]:
    try:
        return claims(dict(record_of(LABS.parent, lab).model))
    except (ValueError, KeyError, TypeError):  # made before labs were recorded, or by roles alone
        return claims_of_name(lab)


def _real(found: Iterable[Claim]) -> tuple[Claim, ...]:
    """With symbolic links resolved, by which two paths may be one."""
    return tuple(
        replace(claim, value=os.path.realpath(claim.value)) if claim.kind == "directory" else claim for claim in found
    )


def judge_labs(found: Labs, needs: Needs) -> Finding:
    if not needs.model:
        return ok("labs.no-model", "no model of the lab given")
    met = [(lab, mine, theirs) for lab, others in found.others for mine, theirs in clashes(found.own, others)]
    conflicts = [f"{mine} by lab {lab}{_as(mine, theirs)}" for lab, mine, theirs in met]
    known = [theirs.value for _lab, _mine, theirs in met]
    keys = [mine.key for _lab, mine, _theirs in met]
    for pool in found.pools:
        for mine in _in_the_way(found.own, pool, needs):
            if pool.path not in known:
                conflicts.append(f"{mine} by storage pool {pool.name}, as {pool.path}")
                keys.append(mine.key)
    if conflicts:
        more = f"; and {len(conflicts) - MOST} more" if len(conflicts) > MOST else ""
        labs = sorted({lab for lab, _mine, _theirs in met})
        instead = f", or remove lab {' and '.join(labs)} first" if labs else ""
        return blocker(
            "labs.conflict",
            f"already used: {'; '.join(conflicts[:MOST])}{more}",
            f"Change {', '.join(dict.fromkeys(keys))}{instead}.",
            labs=labs,
            keys=list(dict.fromkeys(keys)),
        )
    others = [lab for lab, _claims in found.others]
    if not others:
        return ok("labs.none", "no other lab on this host")
    return ok("labs.no-conflict", f"no conflicts with {', '.join(others)}", labs=others)


def _as(mine: Claim, theirs: Claim) -> str:
    if mine.value != theirs.value:
        return f", as {theirs}"
    return "" if mine.what == theirs.what else f", as {theirs.what}"


def _in_the_way(own: Iterable[Claim], pool: Pool, needs: Needs) -> list[Claim]:
    """A lab's pool may be inside a pool of no lab, such as libvirt's /var/lib/libvirt/images."""
    if not pool.path or pool.uuid in needs.pool_uuids:
        return []
    return [
        claim
        for claim in own
        if claim.kind == "directory"
        and nested(claim.value, pool.path)
        and (pool.name.startswith(POOLS_OF_LABS) or len(claim.value) <= len(pool.path))
    ]
