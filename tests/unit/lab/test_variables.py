"""Keys of lab_spec as variables, as they come from a survey or from the command line."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import Section, keys_of
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.lab import LAB_SPEC
from ansible_collections.nometal.ipi.plugins.module_utils._lab.spec.variables import variables, with_variables

SHIPPED = {"name": "ha", "machine_network": {"cidr": "192.168.126.0/24"}, "nodes": {"workers": {"count": 1}}}


def merged(lab_spec: Any = SHIPPED, **given: Any) -> Any:
    result, found = with_variables(lab_spec, given)
    assert found == []
    return result


def test_every_variable_is_one_key() -> None:
    def leaves(section: type) -> int:
        types = [key.value_type for key in keys_of(section)]
        return sum(leaves(each.declared) if isinstance(each, Section) else 1 for each in types)

    mappings_and_lists_of_them = 6  # reservations, pools, records, overrides, image mirrors, config
    assert len(variables()) == leaves(LAB_SPEC.declared) - mappings_and_lists_of_them


@pytest.mark.parametrize(
    ("variable", "answer", "path", "value"),
    [
        ("lab_spec_name", "demo", "name", "demo"),
        ("lab_spec_name", " demo \n", "name", "demo"),
        ("lab_spec_machine_network_cidr", "10.1.0.0/24", "machine_network cidr", "10.1.0.0/24"),
        ("lab_spec_nodes_workers_count", "2", "nodes workers count", "2"),
        ("lab_spec_nodes_workers_count", 2, "nodes workers count", 2),
        ("lab_spec_nodes_workers_count", 0, "nodes workers count", 0),
        ("lab_spec_bmc_tls", False, "bmc tls", False),
        ("lab_spec_nodes_spares_disks", "1GiB", "nodes spares disks", [{"size": "1GiB"}]),
        (
            "lab_spec_nodes_spares_disks",
            "1GiB\r\n\n 2GiB\n",
            "nodes spares disks",
            [{"size": "1GiB"}, {"size": "2GiB"}],
        ),
        ("lab_spec_nodes_spares_disks", [{"size": "1GiB"}], "nodes spares disks", [{"size": "1GiB"}]),
        ("lab_spec_machine_network_dns_forwarders", "192.0.2.53\n192.0.2.54", "machine_network dns forwarders", None),
        ("lab_spec_machine_network_vips_api", "192.168.126.5", "machine_network vips api", "192.168.126.5"),
        ("lab_spec_machine_network_vips_api", "192.168.126.5\nfd2e::5", "machine_network vips api", None),
        ("lab_spec_install_version", "4.20.3", "install version", "4.20.3"),
    ],
)
def test_a_variable_is_its_key(variable: str, answer: Any, path: str, value: Any) -> None:
    found = merged(**{variable: answer})
    for key in path.split():
        found = found[key]
    assert found == (answer.split("\n") if value is None else value)


def test_what_no_variable_says_comes_from_lab_spec() -> None:
    spec = {"name": "ha", "nodes": {"workers": {"count": 1, "vcpus": 3}, "spares": {"count": 1}}}
    now = merged(spec, lab_spec_nodes_workers_count="2")
    assert now == {"name": "ha", "nodes": {"workers": {"count": "2", "vcpus": 3}, "spares": {"count": 1}}}
    assert spec["nodes"]["workers"]["count"] == 1  # type: ignore[index]


@pytest.mark.parametrize("answer", ["", "  \n", None, []])
def test_an_empty_answer_says_nothing(answer: Any) -> None:
    assert merged(lab_spec_name=answer, lab_spec_install_version=answer, lab_spec_nodes_spares_disks=answer) == SHIPPED


def test_a_lab_of_variables_alone() -> None:
    assert merged(None, lab_spec_name="demo", lab_spec_nodes_workers_count="2") == {
        "name": "demo",
        "nodes": {"workers": {"count": "2"}},
    }


@pytest.mark.parametrize("lab_spec", ["text", {"nodes": "text"}, {"nodes": {"workers": ["text"]}}])
def test_what_is_no_mapping_stays_to_be_reported(lab_spec: Any) -> None:
    assert merged(lab_spec, lab_spec_nodes_workers_count="2") == lab_spec


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("lab_spec_node_worker_count", "did you mean lab_spec_nodes_workers_count?"),
        ("lab_spec_zzz", "unknown variable. Keys that have no variable can be set in lab_spec"),
        ("lab_spec_nodes_overrides", "Keys that have no variable"),
    ],
)
def test_an_unknown_variable_is_named(variable: str, hint: str) -> None:
    result, [finding] = with_variables(SHIPPED, {variable: "1"})
    assert result == SHIPPED
    assert finding.subject == variable
    assert hint in finding.message


def test_a_mapping_is_a_part_that_the_inventory_puts_together() -> None:
    assert with_variables(SHIPPED, {"lab_spec_common": {"bmc": {"tls": False}}}) == (SHIPPED, [])


def test_answers_in_text_make_the_same_lab() -> None:
    """As AWX hands them over, a lab of numbers and lists."""
    given = {
        "name": "demo",
        "base_domain": "example.test",
        "machine_network": {"cidr": "10.1.0.0/24", "mtu": 1400},
        "nodes": {
            "control_plane": {"count": 3, "vcpus": 8, "memory": "16GiB", "disks": [{"size": "120GiB"}]},
            "workers": {"count": 2, "disks": [{"size": "120GiB"}, {"size": "1TiB"}]},
        },
        "bmc": {"tls": False},
    }
    answers = {
        "lab_spec_name": "demo",
        "lab_spec_base_domain": "example.test",
        "lab_spec_machine_network_cidr": "10.1.0.0/24",
        "lab_spec_machine_network_mtu": "1400",
        "lab_spec_nodes_control_plane_count": "3",
        "lab_spec_nodes_control_plane_vcpus": "8",
        "lab_spec_nodes_control_plane_memory": "16GiB",
        "lab_spec_nodes_control_plane_disks": "120GiB",
        "lab_spec_nodes_workers_count": "2",
        "lab_spec_nodes_workers_disks": "120GiB\n1TiB\n",
        "lab_spec_bmc_tls": "false",
    }
    assert lab_model(merged(SHIPPED, **answers)) == lab_model(given)
