# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What two labs must not share on one host."""

from __future__ import annotations

from typing import Any

import pytest
from unit.lab.samples import INVENTORIES, model_of, shipped

from ansible_collections.nometal.ipi.plugins.module_utils._lab.claims import claims, claims_of_name, clashes
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model

DEMO = "name: demo"
APART = "machine_network: {cidr: 192.168.140.0/24, bridge: othermetal}"
INSTALL = "install: {version: stable-4.20}, bmc: {port: 8100}"
LONG = "a-lab-with-a-long-name"


def met(one: str, other: str) -> set[tuple[str, str, str]]:
    """Kind, value and key of what the first one would have to change."""
    pairs = clashes(claims(model_of(one)), claims(model_of(other)))
    return {(mine.kind, mine.value, mine.key) for mine, _theirs in pairs}


@pytest.mark.parametrize(
    ("mine", "found"),
    [
        (f"{{name: other, {APART}}}", set()),
        (
            f"{{name: demo-media, {APART}}}",
            {
                ("storage pool", "nometal-demo-media", "lab_spec.name"),
                ("directory", "/var/lib/libvirt/images/nometal-demo-media", "lab_spec.name"),
            },
        ),
        (
            f"{{name: other, {APART}, storage_pool: {{path: /var/lib/libvirt/images/nometal-demo/x}}}}",
            {("directory", "/var/lib/libvirt/images/nometal-demo/x", "lab_spec.storage_pool.path")},
        ),
        (
            f"{{name: other, {APART}, storage_pool: {{path: /var/lib/libvirt/images/nometal-demo-too}}}}",
            set(),
        ),
        (
            "{name: other, machine_network: {cidr: 192.168.140.0/24}}",
            {("interface", "baremetal", "lab_spec.machine_network.bridge")},
        ),
        (
            "{name: other, machine_network: {cidr: 192.168.140.0/24, bridge: nm-demo}}",
            {("interface", "nm-demo", "lab_spec.machine_network.bridge")},
        ),
        (
            "{name: other, machine_network: {cidr: 192.168.0.0/16, bridge: othermetal}}",
            {("subnet", "192.168.0.0/16", "lab_spec.machine_network.cidr")},
        ),
        (
            f"{{name: other, {APART}, nodes: {{overrides: {{control-plane-0: {{mac: '52:54:00:00:00:0A'}}}}}}}}",
            {("MAC", "52:54:00:00:00:0a", "lab_spec.nodes")},
        ),
    ],
)
def test_what_meets(mine: str, found: set[tuple[str, str, str]]) -> None:
    demo = "{name: demo, nodes: {overrides: {control-plane-0: {mac: '52:54:00:00:00:0a'}}}}"
    assert met(mine, demo) == found
    assert bool(met(demo, mine)) == bool(found)


def test_vms_meet_where_names_of_labs_and_nodes_run_together() -> None:
    one, other = model_of(DEMO), model_of(f"{{name: demo-x, {APART}}}")
    one["nodes"][0]["vm_name"] = "demo-x-control-plane-0"
    assert [mine.value for mine, _theirs in clashes(claims(one), claims(other))] == ["demo-x-control-plane-0"]


def test_the_bootstrap_vms_of_two_installations_meet_where_their_names_begin_alike() -> None:
    assert met(f"{{name: {LONG}-1, {INSTALL}}}", f"{{name: {LONG}-2, {INSTALL}, {APART}}}") == {
        ("bootstrap VM", f"{LONG[:21]}-?????-bootstrap", "lab_spec.name")
    }
    other = model_of(f"{{name: demo-ab1de, {APART}}}")
    other["nodes"][0]["vm_name"] = "demo-ab1de-bootstrap"
    [(mine, theirs)] = clashes(claims(model_of(f"{{name: demo, {INSTALL}}}")), claims(other))
    assert (mine.value, theirs.value) == ("demo-?????-bootstrap", "demo-ab1de-bootstrap")


@pytest.mark.parametrize("inventory", INVENTORIES)
def test_all_of_the_shipped_labs_is_claimed_once_and_meets_itself(inventory: str) -> None:
    model: dict[str, Any] = lab_model(shipped(inventory))
    found = claims(model)
    assert {"storage pool", "directory", "libvirt network", "interface", "VM", "UUID", "MAC", "subnet", "domain"} <= {
        claim.kind for claim in found
    }
    assert len(list(clashes(found, found))) >= len(found)


def test_of_a_lab_without_a_model_its_pools_are_known() -> None:
    assert {claim.value for claim in claims_of_name("demo")} == {
        "nometal-demo",
        "nometal-demo-media",
        "/var/lib/libvirt/images/nometal-demo-media",
    }
