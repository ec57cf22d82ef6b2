# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab's storage pool as libvirt has it, and how one becomes another. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class StoragePool:
    """A libvirt pool of type dir. Pools carry no metadata, so the UUID, derived from the lab, is the owner's mark."""

    name: str
    uuid: str
    path: str
    directory: bool = True
    active: bool = True
    autostart: bool = True
    defined: bool = True
    """Or else there is but the directory, of a run that was killed."""


def plan(current: StoragePool | None, desired: StoragePool | None) -> Sequence[Step]:
    if desired is not None:
        return _plan_presence(current, desired)
    return [] if current is None else _plan_removal(current)


def _plan_presence(current: StoragePool | None, desired: StoragePool) -> Sequence[Step]:
    steps = {
        "define": current is None or not current.defined,
        "build": current is None or not current.directory,
        "start": current is None or not current.active,
        "autostart": current is None or not current.autostart,
    }
    return [Step(verb, desired.name) for verb, needed in steps.items() if needed]


def _plan_removal(current: StoragePool) -> Sequence[Step]:
    # The definition goes last: as long as it is there, the next run can tell what is still to be removed.
    steps = {"stop": current.active, "delete": current.directory, "undefine": current.defined}
    return [Step(verb, current.name) for verb, needed in steps.items() if needed]
