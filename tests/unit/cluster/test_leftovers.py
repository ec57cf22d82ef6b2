"""Whose a bootstrap VM is, and in which order an installation is removed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.removal import boot_override, leftovers
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.removal import wipe as blank
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.removal.leftovers import Leftovers, Remains
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.removal.wipe import Traces
from ansible_collections.nometal.ipi.plugins.module_utils._lab import paths
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths
from ansible_collections.nometal.ipi.plugins.module_utils._observe import infra
from ansible_collections.nometal.ipi.plugins.module_utils._observe.infra import Claim, Named
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm import leftovers as vm_leftovers
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm import state as vm_state

LONG = "production-cluster-number-1", "production-cluster-number-2"
SHARED = "production-cluster-nu"


@pytest.mark.parametrize(
    ("cluster", "base"),
    [
        ("demo", "demo"),
        (LONG[0], SHARED),
        ("a--b", "a-b"),
        ("twenty-characters-xy-z", "twenty-characters-xy"),
        ("d-", "d"),
    ],
)
def test_the_part_of_the_infra_id_that_is_not_random(cluster: str, base: str) -> None:
    assert infra.base_of(cluster) == base


@pytest.mark.parametrize(
    ("cluster", "name", "own"),
    [
        ("demo", "demo-x7k2p-bootstrap", True),
        ("demo", "demo2-x7k2p-bootstrap", False),
        ("demo", "demo-2-x7k2p-bootstrap", False),
        ("demo", "demo-x7k2p-yyyyy-bootstrap", False),
        ("demo", "demo-rehearsal-bootstrap", False),
        ("demo", "my-demo-x7k2p-bootstrap", False),
        ("demo", "demo-x7k2p-bootstrap2", False),
        ("demo", "demo-X7K2P-bootstrap", False),
        ("demo-2", "demo-2-x7k2p-bootstrap", True),
        ("demo-2", "demo-x7k2p-bootstrap", False),
        ("d.mo", "demo-x7k2p-bootstrap", False),
        (LONG[0], f"{SHARED}-x7k2p-bootstrap", True),
    ],
)
def test_without_notes_the_name_and_the_bridge_tell(cluster: str, name: str, own: bool) -> None:
    claim, bridges = Claim(cluster, frozenset({"baremetal"})), frozenset({"baremetal", "prov"})
    assert claim.ours([Named(name, bridges)]) == ([name] if own else [])
    assert claim.unproven([Named(name)]) == ([name] if own else [])


def test_clusters_of_the_same_first_letters_are_told_apart_by_bridges_and_notes() -> None:
    mine, theirs = f"{SHARED}-aaaaa-bootstrap", f"{SHARED}-bbbbb-bootstrap"
    found = [Named(mine, frozenset({"baremetal", "prov"})), Named(theirs, frozenset({"other"})), Named("x")]
    claim = Claim(LONG[0], bridges=frozenset({"baremetal"}))
    assert (claim.ours(found), claim.unproven(found)) == ([mine], [])
    assert Claim(LONG[0], bridges=frozenset({"third"})).ours(found) == []
    assert Claim(LONG[0], others=frozenset({theirs})).unproven(found) == [mine]


@pytest.mark.parametrize(
    ("plugged", "bridges"), [(None, {"baremetal"}), (frozenset({"baremetal"}), set()), (None, set())]
)
def test_what_nothing_proves_stays_and_is_named(plugged: frozenset[str] | None, bridges: set[str]) -> None:
    name = f"{SHARED}-aaaaa-bootstrap"
    claim = Claim(LONG[0], bridges=frozenset(bridges))
    assert (claim.ours([Named(name, plugged)]), claim.unproven([Named(name, plugged)])) == ([], [name])
    assert f"{name} (it may be a leftover of lab {LONG[0]} or of {LONG[1]}" in infra.kept(name, LONG[0], [LONG[1]])


def test_rivals() -> None:
    assert infra.rivals_of(LONG[0], {*LONG, "demo", "production-cluster-n"}) == (LONG[1],)
    assert infra.rivals_of("demo", {"demo2", "demo-2"}) == ()


@pytest.mark.parametrize(
    ("file", "text", "ids"),
    [
        ("metadata.json", {"clusterName": "demo", "infraID": "demo-x7k2p"}, {"demo-x7k2p"}),
        ("terraform.tfvars.json", {"cluster_id": "demo-x7k2p"}, {"demo-x7k2p"}),
        (".openshift_install_state.json", {"*installconfig.ClusterID": {"InfraID": "demo-x7k2p"}}, {"demo-x7k2p"}),
        (".openshift_install_state.json", {"*installconfig.ClusterID": None}, set()),
        ("metadata.json", {"infraID": "../../etc"}, set()),
        ("metadata.json", {"infraID": ""}, set()),
        ("metadata.json", [], set()),
        ("metadata.json", None, set()),
        ("../claimed.json", {"infraIDs": ["demo-x7k2p"]}, {"demo-x7k2p"}),
    ],
)
def test_infra_ids_are_read_where_the_installer_notes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: Any, ids: set[str]
) -> None:
    monkeypatch.setattr(paths, "INSTALLS", tmp_path)
    mine = Paths("demo")
    mine.assets.mkdir(parents=True)
    mine.assets.joinpath(file).write_text("{half" if text is None else json.dumps(text))
    assert infra.ids_of(mine) == ids


def test_notes_go_last_and_nodes_are_all_off_before_one_is_touched() -> None:
    name = "demo-x7k2p-bootstrap"
    nodes = (
        Traces("demo-0", running=True, written=("/d0",), medium="/m", override="Hdd (Continuous)", nvram=("/n0",)),
        Traces("demo-1", running=True, written=("/d1a", "/d1b"), has_spoken=True),
        Traces("demo-2", has_spoken=True),
    )
    own = Leftovers((name,), (name,), ("/pools/own", "/pools"), ("/log",), ("/nvram",))
    steps = leftovers.plan(Remains(True, own, nodes, ("/install/demo",)))
    assert [str(step) for step in steps] == [
        "stop installer",
        f"undefine {name}",
        "switch off demo-0",
        "switch off demo-1",
        "blank /d0",
        "eject medium of demo-0",
        "clear boot override of demo-0",
        "remove /n0",
        "rotate console of demo-1",
        "blank /d1a",
        "blank /d1b",
        f"undefine pool {name}",
        *("remove /nvram", "remove /pools/own", "remove /pools", "remove /log"),
        "remove /install/demo",
    ]
    assert leftovers.plan(Remains(False, Leftovers(), (Traces("demo-2", has_spoken=True),), ())) == []
    assert leftovers.plan(None) == []
    assert blank.plan([]) == []
    assert own
    assert not Leftovers()


NOTED = """<domain>
  <metadata><bmc:state xmlns:bmc='urn:nometal:ipi:bmc' nvram='plain' {notes}/></metadata>
  <devices>
    <disk device='disk'><target dev='sda'/>{sda}</disk>
    <disk device='cdrom'><target dev='sdz'/>{sdz}</disk>
    <interface><mac address='52:54:00:00:00:01'/>{nic}</interface>
    <interface><mac address='52:54:00:00:00:02'/>{late}</interface>
  </devices>
</domain>"""


def noted(notes: str, **orders: int) -> Any:
    numbers = {key: f"<boot order='{orders[key]}'/>" if key in orders else "" for key in ("sda", "sdz", "nic", "late")}
    return etree.fromstring(NOTED.format(notes=notes, **numbers))


def orders(root: Any) -> list[str]:
    devices = [*root.findall("devices/disk"), *root.findall("devices/interface")]
    return ["".join(boot.get("order") for boot in device.findall("boot")) for device in devices]


def test_a_boot_override_is_taken_back() -> None:
    order = "order='52:54:00:00:00:01=1 sda=2 sdz=-'"
    root = noted(f"target='Cd' enabled='Once' boot='ab12' {order}", sdz=1, nic=2, sda=3, late=4)
    assert boot_override.of(root) == "Cd (Once)"
    boot_override.forget(root)
    assert boot_override.of(root) == ""
    assert orders(root) == ["2", "", "1", "3"]
    assert dict(root.find(boot_override.NOTES).attrib) == {"nvram": "plain"}


def test_without_an_override_there_is_nothing_to_take_back() -> None:
    assert boot_override.of(noted("")) == ""
    assert boot_override.of(etree.fromstring("<domain/>")) == ""
    root = noted("http='http://192.0.2.1/x'", sda=1)
    assert boot_override.of(root) == "None (Disabled)"
    boot_override.forget(root)
    assert (boot_override.of(root), orders(root)) == ("", ["1", "", "", ""])


def test_consoles_are_rotated_as_virtlogd_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vm_state, "CONSOLES", tmp_path)
    log = tmp_path / "demo-0-console.log"
    assert not vm_leftovers.has_spoken("demo-0")
    for number in range(5):
        log.write_text(str(number))
        assert vm_leftovers.has_spoken("demo-0")
        vm_leftovers.rotate_console("demo-0")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        f"{log.name}.{number}": str(4 - number) for number in range(3)
    }
