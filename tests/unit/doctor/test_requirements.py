# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requirements in the README and in the inventories, as the doctor would judge such a host."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from unit.lab.samples import INVENTORIES, TREE, shipped

from ansible_collections.nometal.ipi.plugins.module_utils._checks.doctor import compute, storage
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import BLOCKER, OK
from ansible_collections.nometal.ipi.plugins.module_utils._core.sizes import GIB
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model
from ansible_collections.nometal.ipi.plugins.module_utils._lab.needs import Needs

ROW = re.compile(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|([^|]*)\|([^|]*)\|", re.MULTILINE)


class Requirements(NamedTuple):
    """The least, and what is recommended of CPUs and of disk."""

    cpus: list[int]
    memory_gib: int
    disk_gib: list[int]


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall("[0-9]+", text)]


REQUIREMENTS = {
    name: Requirements(numbers(cpus), numbers(memory)[0], numbers(disk))
    for name, cpus, memory, disk in ROW.findall((TREE / "README.md").read_text(encoding="utf-8"))
}


def needs_of(inventory: str) -> Needs:
    nodes = lab_model(shipped(inventory))["nodes"]
    return Needs(
        name=inventory,
        install=inventory != "rehearsal",
        memory_mib=sum(node["memory_mib"] for node in nodes),
        vcpus=sum(node["vcpus"] for node in nodes),
        disk_bytes=sum(disk["size_bytes"] for node in nodes for disk in node["disks"]),
    )


def storage_with(free: int) -> storage.Storage:
    space = storage.Space(directory="/var", device=1, free=free * GIB, used=0)
    return storage.Storage(pool=space, installer=space)


@pytest.mark.parametrize("inventory", INVENTORIES)
def test_a_host_that_meets_them_can_carry_the_lab(inventory: str) -> None:
    least, needs = REQUIREMENTS[inventory], needs_of(inventory)
    free = least.memory_gib * 1024 * 15 // 16  # the host itself takes some
    assert compute.judge_cpus(least.cpus[0], needs).severity == OK
    assert compute.judge_memory(compute.Memory(least.memory_gib * 1024, free, 0), needs).severity != BLOCKER
    assert storage.judge_pool_space(storage_with(least.disk_gib[0]), needs).severity != BLOCKER
    assert storage.judge_installer_space(storage_with(least.disk_gib[0]), needs).severity != BLOCKER
    assert storage.judge_pool_space(storage_with(least.disk_gib[-1]), needs).severity == OK


@pytest.mark.parametrize("inventory", INVENTORIES)
def test_the_inventory_says_the_same(inventory: str) -> None:
    text = (TREE / f"inventory/{inventory}/group_vars/all/lab.yml").read_text(encoding="utf-8")
    needs = re.findall(r"needs ([^.]*)\.", text, re.IGNORECASE)[0]
    least = REQUIREMENTS[inventory]
    assert numbers(needs) == [*least.cpus, least.memory_gib, *least.disk_gib]
