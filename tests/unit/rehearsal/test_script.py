"""What the bootstrap VM is told."""

from __future__ import annotations

from unit.rehearsal.samples import lab_of, script_of

from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.line import stages_of
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.script import Surroundings, is_our_medium

PROVISIONING = {"mode": "managed", "cidr": "172.22.0.0/24"}


def test_every_node_has_its_own_login_and_must_not_see_others() -> None:
    lab = lab_of()
    told = script_of(lab, Surroundings(strangers=["7c1c3f0e-0000-4000-8000-000000000000"]))
    first, second = told["nodes"][:2]
    assert first["bmc"]["username"] == "rehearsal-control-plane-0"
    assert first["bmc"]["url"] == f"https://192.168.126.1:8000/redfish/v1/Systems/{first['uuid']}"
    assert "/redfish/v1/Systems/7c1c3f0e-0000-4000-8000-000000000000" in first["bmc"]["hidden"]
    assert f"/redfish/v1/Systems/{second['uuid']}" in first["bmc"]["hidden"]
    assert f"/redfish/v1/Systems/{first['uuid']}" not in first["bmc"]["hidden"]


def test_of_a_large_lab_only_some_ask_with_a_wrong_password() -> None:
    lab = lab_of(machine_network={"cidr": "10.0.0.0/16"}, nodes={"workers": {"count": 60}})
    assert sum(node["bmc"]["try_strangers"] for node in script_of(lab)["nodes"]) == 30


def test_a_static_address_comes_with_its_prefix_and_gateway() -> None:
    told = script_of(lab_of(bootstrap={"address": "static", "ip": "192.168.126.9"}))
    assert told["static"] == {"addresses": [{"address": "192.168.126.9", "prefix": 24, "gateway": "192.168.126.1"}]}
    assert script_of(lab_of())["static"] is None


def test_ways_out_are_asked_for_also_where_there_must_be_none() -> None:
    ways = Surroundings(outside=[{"kind": "ping", "address": "198.51.100.1"}])
    isolated = lab_of(machine_network={"cidr": "192.168.126.0/24", "forward": "isolated"})
    for lab in (lab_of(), isolated):
        assert script_of(lab, ways)["outside"] == list(ways.outside)


def test_ipmi_nodes_boot_by_the_network() -> None:
    node = script_of(lab_of(bmc={"protocol": "ipmi"}, provisioning_network=PROVISIONING))["nodes"][0]
    assert (node["bmc"]["protocol"], node["bmc"]["boot"], node["bmc"]["hidden"]) == ("ipmi", "Pxe", [])


def test_a_medium_is_known_by_its_address() -> None:
    assert is_our_medium("demo", f"http://192.168.126.5:6180{script_of(lab_of(name='demo'))['path']}")
    assert not is_our_medium("demo", "http://192.168.126.5:6180/boot.iso")
    assert not is_our_medium("demo", "http://192.168.126.5:6180/nometal-rehearsal-other-00.iso")


def test_stages_last_from_the_first_to_the_last_of_the_nodes_in_them() -> None:
    changes = [(0.0, "bootstrap", "boots"), (5.0, "bootstrap", "serves"), (6.0, "a", "boots"), (7.0, "b", "boots")]
    changes += [(9.0, "a", "is up"), (12.0, "b", "is up"), (13.0, "", "")]
    assert {stage["stage"]: stage["seconds"] for stage in stages_of(changes)} == {
        "bootstrap: boots": 5.0,
        "bootstrap: serves": 8.0,
        "a node: boots": 6.0,
        "a node: is up": 4.0,
    }
