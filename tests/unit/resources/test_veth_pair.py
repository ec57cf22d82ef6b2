"""The veth pair's decisions by tables: what is done, what is refused, and the script that brings it back."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core import network_hook
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError, OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import from_dict
from ansible_collections.nometal.ipi.plugins.module_utils._observe import veth_entries as hook_entry
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import Link
from ansible_collections.nometal.ipi.plugins.module_utils._observe.veth_entries import entry_text, plugged_by
from ansible_collections.nometal.ipi.plugins.module_utils._observe.wiring import MARK, Plug, Wiring
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth import kernel, port
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth import site as site_of_host
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth.conflicts import refuse_conflicts
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth.declared import Declared
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth.site import Site
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth.state import Bridge, End, VethPair, plan

if TYPE_CHECKING:
    from pathlib import Path

A = End("nmn-demo", "nm-demo", 1500, "nmb-demo")
B = End("nmb-demo", "baremetal", 1500, "nmn-demo")
BRIDGE = Bridge("baremetal", 1500)
ENTRY = "/etc/libvirt/hooks/nometal.d/nmn-demo.veth"
HOOK = {ENTRY: ["#!/bin/sh"]}
UNMANAGED = {"/etc/NetworkManager/conf.d/nometal-nmn-demo.conf": ["[keyfile]"]}
PAIR = VethPair("nmn-demo", ends=(A, B), bridges=(BRIDGE,), hook=HOOK, unmanaged=UNMANAGED)
WRITING = [f"write {ENTRY}", "write /etc/NetworkManager/conf.d/nometal-nmn-demo.conf"]
JOINING = [
    "join nmn-demo (to nm-demo)",
    "up nmn-demo (was down)",
    "join nmb-demo (to baremetal)",
    "up nmb-demo (was down)",
]
ADDING = ["add nmn-demo (with nmb-demo)", *JOINING]


def pair(a: End | None = A, b: End | None = B, **changed: Any) -> VethPair:
    return replace(PAIR, ends=tuple(end for end in (a, b) if end), **changed)


def with_bridge(**changed: Any) -> VethPair:
    return replace(PAIR, bridges=(replace(BRIDGE, **changed),))


@pytest.mark.parametrize(
    ("current", "steps"),
    [
        (None, [*WRITING, "add bridge baremetal", *ADDING]),
        (PAIR, []),
        (pair(a=None, b=None), ADDING),
        (pair(b=None, a=replace(A, peer=None)), ["delete nmn-demo (its peer is elsewhere)", *ADDING]),
        (pair(a=None, b=replace(B, peer="x")), ["delete nmb-demo (with its peer x)", *ADDING]),
        (
            pair(a=replace(A, peer="x"), b=replace(B, peer="y")),
            ["delete nmn-demo (with its peer x)", "delete nmb-demo (with its peer y)", *ADDING],
        ),
        (pair(a=replace(A, up=False)), ["up nmn-demo (was down)"]),
        (pair(b=replace(B, mtu=1400)), ["set mtu of nmb-demo (was 1400)"]),
        (pair(a=replace(A, bridge=None)), ["join nmn-demo (to nm-demo)"]),
        (
            pair(a=replace(A, bridge="baremetal"), b=replace(B, bridge="nm-demo")),
            [
                "release nmn-demo (was on baremetal)",
                "release nmb-demo (was on nm-demo)",
                "join nmn-demo (to nm-demo)",
                "join nmb-demo (to baremetal)",
            ],
        ),
        (pair(bridges=()), ["add bridge baremetal"]),
        (with_bridge(up=False), ["up baremetal (was down)"]),
        (with_bridge(mtu=9000), ["set mtu of baremetal (was 9000)"]),
        (with_bridge(forward_delay=1500), ["set forward delay of baremetal (was 15 s)"]),
        (with_bridge(answers=True), ["silence baremetal (the host answered on it)"]),
        (
            with_bridge(marked=False, up=False),
            ["mark baremetal (its making was cut short)", "up baremetal (was down)"],
        ),
        (pair(hook={ENTRY: [""]}), [f"{WRITING[0]} (was changed)"]),
        (pair(unmanaged={}), WRITING[1:]),
        (pair(unmanaged={**UNMANAGED, "/etc/systemd/network/x": []}), ["remove /etc/systemd/network/x"]),
    ],
)
def test_only_what_differs_is_done(current: VethPair | None, steps: list[str]) -> None:
    assert [str(step) for step in plan(current, PAIR)] == steps


def test_an_end_that_is_to_be_on_no_bridge_is_let_go() -> None:
    wanted = pair(a=replace(A, bridge=None))
    assert [str(step) for step in plan(PAIR, wanted)] == ["release nmn-demo (was on nm-demo)"]


@pytest.mark.parametrize(
    ("current", "steps"),
    [
        (None, []),
        (
            PAIR,
            [
                f"remove {ENTRY}",
                "delete bridge baremetal",
                "delete nmn-demo (with its peer nmb-demo)",
                "remove /etc/NetworkManager/conf.d/nometal-nmn-demo.conf",
            ],
        ),
        (VethPair("nmn-demo", hook=HOOK), [f"remove {ENTRY}"]),
        (VethPair("nmn-demo", bridges=(BRIDGE,)), ["delete bridge baremetal"]),
        (
            VethPair("nmn-demo", ends=(replace(A, peer=None), replace(B, peer="x"))),
            ["delete nmn-demo (its peer is elsewhere)", "delete nmb-demo (with its peer x)"],
        ),
    ],
)
def test_what_there_is_goes_and_the_hook_goes_first(current: VethPair | None, steps: list[str]) -> None:
    assert [str(step) for step in plan(current, None)] == steps


WIRING = Wiring(
    "nmn-demo", Plug("a", "nmn-demo", "nm-demo"), Plug("b", "nmb-demo", "baremetal", make_bridge=True), mtu=1500
)


GIVEN: dict[str, Any] = {
    "name": "nmn-demo",
    "a": {"name": "nmn-demo", "bridge": "nm-demo"},
    "b": {"name": "nmb-demo", "bridge": "baremetal"},
}


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"name": "../x"}, r"name: must be 1 to 64 letters, .* \(got '../x'\)"),
        ({"mtu": 67}, r"mtu: must be a whole number from 68 to 65535 \(got 67\)"),
        ({"mtu": 65536}, r"mtu: must be a whole number from 68 to 65535 \(got 65536\)"),
        (
            {"a": {"name": "nmn-demonstrator"}},
            r"a.name: must be at most 15 characters long, the limit of Linux \(got 'nmn-demonstrator'\)",
        ),
        (
            {"b": {"name": "x", "bridge": "abcdefghijklmnop"}},
            r"b.bridge: must be at most 15 .* \(got 'abcdefghijklmnop'\)",
        ),
        ({"a": {"name": "-x"}}, r"a.name: must be an interface name: .* \(got '-x'\)"),
        ({"a": {"name": "x y"}}, r"a.name: must be an interface name: .* \(got 'x y'\)"),
        ({"a": {"name": ""}}, r"a.name: must be an interface name: .* \(got ''\)"),
        (
            {"b": {"name": "x", "bridge": "all"}},
            r"b.bridge: must be another name than lo, all, .* reserves \(got 'all'\)",
        ),
        ({"a": {"name": "lo"}}, r"a.name: must be another name than lo, .* \(got 'lo'\)"),
        (
            {"b": {"name": "x", "bridge": "nm-demo"}},
            r"b.bridge: must be another name than a.bridge, or the pair would be a loop \(got 'nm-demo'\)$",
        ),
        ({"b": {"name": "nmn-demo", "bridge": "x"}}, r"b.name: must be another name than a.name \(got 'nmn-demo'\)"),
        ({"b": {"name": "x", "bridge": "nmn-demo"}}, r"b.bridge: must be another name than a.name \(got 'nmn-demo'\)"),
        ({"lab": "../demo"}, r"lab: must be lower case letters, .* \(got '../demo'\)"),
    ],
)
def test_nonsense_is_refused_and_named(changed: dict[str, Any], complaint: str) -> None:
    assert from_dict(Declared, GIVEN).wiring == WIRING
    with pytest.raises(OperatorError, match=f"^{complaint}"):
        from_dict(Declared, {**GIVEN, **changed})


def test_all_that_is_wrong_by_itself_is_refused_at_once() -> None:
    wrong = {"name": "", "a": {"name": "lo"}, "b": {"name": "x", "bridge": "y z"}, "mtu": 0}
    with pytest.raises(OperatorError) as refused:
        from_dict(Declared, wrong)
    assert [line.split(":")[0] for line in str(refused.value).splitlines()] == ["name", "a.name", "b.bridge", "mtu"]


def host(*links: Link) -> dict[str, Link]:
    return {link.name: link for link in (Link("nm-demo", "bridge"), *links)}


def cable(a: str, b: str, on_a: str, on_b: str) -> tuple[Link, Link]:
    return Link(a, "veth", master=on_a, peer=b), Link(b, "veth", master=on_b, peer=a)


OURS = Link("baremetal", "bridge", alias=MARK, forward_delay=0)
OUR_ENTRY = {"nmn-demo": {"nmn-demo": "nm-demo", "nmb-demo": "baremetal"}}
OTHERS_ENTRY = {"nmn-other": {"nmn-other": "nm-other", "nmb-other": "othermetal"}}


@pytest.mark.parametrize(
    ("links", "complaint"),
    [
        (host(Link("nmn-demo", "dummy")), "a.name: nmn-demo exists and is not a veth but dummy"),
        (host(Link("nmb-demo")), "b.name: nmb-demo exists and is not a veth but a device of another kind"),
        (host(Link("baremetal", "vxlan")), "b.bridge: baremetal exists and is not a bridge but vxlan"),
        ({}, "a.bridge: there is no bridge nm-demo, and it is not this module's to make"),
        (host(OURS, *cable("x", "y", "baremetal", "nm-demo")), "a.bridge and b.bridge: .* are already joined by y-x,"),
        (
            host(OURS, Link("m", "bridge"), *cable("r", "s", "nm-demo", "m"), *cable("t", "u", "m", "baremetal")),
            "a.bridge and b.bridge: nm-demo and baremetal are already joined by r-s, t-u,",
        ),
        (
            host(Link("nmn-demo", "veth", master="nm-demo")),
            "a.name: nmn-demo exists and is not this pair's: its peer is elsewhere",
        ),
        (host(*cable("nmb-demo", "x", "m", "n")), "b.name: nmb-demo exists and is not this pair's: its peer is x"),
        (
            host(OURS, *cable("nmn-other", "nmb-other", "nm-other", "baremetal")),
            "b.bridge: bridge baremetal is already joined to nm-other by nmb-other: two networks would be one",
        ),
    ],
)
def test_what_stands_in_the_way_is_refused_and_named(links: dict[str, Link], complaint: str) -> None:
    with pytest.raises(OperatorError, match=f"^{complaint}"):
        refuse_conflicts(Site(WIRING, links), foreseeing=False)


def test_all_that_stands_in_the_way_is_refused_at_once() -> None:
    """Each of these alone would be refused."""
    links = {
        **host(Link("nmn-demo", "dummy"), *cable("nmb-demo", "x", "m", "n")),
        **host(Link("baremetal", "bridge"), Link("eth1", master="baremetal")),
    }
    del links["nm-demo"]
    with pytest.raises(OperatorError) as refused:
        refuse_conflicts(Site(WIRING, links), foreseeing=False)
    assert [line.split(":")[0] for line in sorted(str(refused.value).splitlines())] == [
        *("a.bridge", "a.name", "b.bridge", "b.name")
    ]


def test_what_is_of_another_pair_by_its_entry_is_refused_while_its_network_is_stopped() -> None:
    others = replace(WIRING, a=Plug("a", "nmn-other", "nm-demo"))
    with pytest.raises(OperatorError, match=r"^a\.name: nmn-other is an end of veth pair nmn-other\."):
        refuse_conflicts(Site(others, host(), OTHERS_ENTRY), foreseeing=False)
    joined = replace(WIRING, b=Plug("b", "nmb-demo", "othermetal", make_bridge=True))
    with pytest.raises(
        OperatorError, match=r"^b\.bridge: bridge othermetal is already joined to nm-other by nmb-other"
    ):
        refuse_conflicts(Site(joined, host(), OTHERS_ENTRY), foreseeing=False)


def test_a_lan_of_others_is_joined_only_where_it_is_to_be_shared() -> None:
    lan = host(Link("baremetal", "bridge"), Link("eth1", master="baremetal"), *cable("x", "y", "baremetal", "m"))
    with pytest.raises(OperatorError, match=r"^b\.bridge: bridge baremetal has ports of others \(eth1, x\)"):
        refuse_conflicts(Site(WIRING, lan), foreseeing=False)
    refuse_conflicts(Site(replace(WIRING, shared=True), lan), foreseeing=False)
    # Also where the bridge is the lab's own.
    uplink = host(OURS, Link("eth1", master="baremetal"), Link("x", "veth", master="baremetal"))
    with pytest.raises(OperatorError, match=r"^b\.bridge: bridge baremetal has ports of others \(eth1\)"):
        refuse_conflicts(Site(WIRING, uplink), foreseeing=False)
    refuse_conflicts(Site(replace(WIRING, shared=True), uplink), foreseeing=False)


def test_vms_of_others_are_not_served_unless_the_lab_is_there_already() -> None:
    links = host(Link("baremetal", "bridge"), Link("vnet0", "tun", master="baremetal"))
    with pytest.raises(OperatorError, match=r"bridge baremetal has ports of others \(vnet0\)"):
        refuse_conflicts(Site(WIRING, links), foreseeing=False)
    refuse_conflicts(Site(replace(WIRING, shared=True), links), foreseeing=False)
    refuse_conflicts(Site(WIRING, links, OUR_ENTRY), foreseeing=False)  # whose VMs may be the lab's own


def test_no_machine_is_left_behind_on_a_former_bridge() -> None:
    moved = replace(WIRING, b=Plug("b", "nmb-demo", "othermetal", make_bridge=True))
    links = host(OURS, *cable("nmn-demo", "nmb-demo", "nm-demo", "baremetal"))
    site = Site(moved, links, OUR_ENTRY)
    refuse_conflicts(site, foreseeing=False)
    assert site.former_bridges() == {"baremetal": []}
    guests = {name: Link(name, "tun", master="baremetal") for name in ("vnet1", "vnet0")}
    with pytest.raises(OperatorError, match=r"^vnet0, vnet1 are still on baremetal, which nmn-demo is to leave"):
        refuse_conflicts(Site(moved, {**links, **guests}, OUR_ENTRY), foreseeing=False)
    # By hand on another pair's bridge: to take it away from there is a repair.
    astray = host(
        replace(OURS, name="othermetal"),
        *cable("nmn-demo", "nmb-demo", "nm-demo", "othermetal"),
        Link("vnet0", "tun", master="othermetal"),
    )
    refuse_conflicts(Site(WIRING, astray, {**OUR_ENTRY, **OTHERS_ENTRY}), foreseeing=False)


@pytest.mark.parametrize(
    "links",
    [
        host(),
        host(OURS, *cable("nmn-demo", "nmb-demo", "nm-demo", "baremetal")),
        host(OURS, *cable("nmn-demo", "x", "nm-demo", "baremetal")),  # ours with a wrong peer, which goes
        host(OURS, *cable("x", "y", "nm-demo", "nm-other"), Link("nm-other", "bridge")),
        host(OURS, Link("x", "veth", master="nm-demo", peer=None), Link("y", "veth", master="baremetal", peer=None)),
        host(
            Link("baremetal", "bridge"),
            Link("vnet0", "tun", master="baremetal"),
            *cable("nmn-demo", "nmb-demo", "nm-demo", "baremetal"),
        ),
    ],
)
def test_what_does_not_stand_in_the_way_is_let_be(links: dict[str, Link]) -> None:
    refuse_conflicts(Site(WIRING, links, {**OUR_ENTRY, **OTHERS_ENTRY}), foreseeing=False)


@pytest.mark.parametrize(
    ("links", "plugged", "ends"),
    [
        (host(*cable("nmn-demo", "nmb-demo", "nm-demo", "baremetal")), {}, ["nmn-demo", "nmb-demo"]),
        (host(*cable("nmn-demo", "x", "nm-demo", "m")), {}, []),
        (host(*cable("nmn-demo", "x", "nm-demo", "m")), OUR_ENTRY, ["nmn-demo"]),
        (host(Link("nmn-demo", "veth")), {}, []),
        (host(Link("nmn-demo", "veth")), OUR_ENTRY, ["nmn-demo"]),
        (host(Link("nmn-demo", "dummy")), OUR_ENTRY, []),
        (host(*cable("nmn-demo", "nmb-demo", "nm-demo", "m")), {"x": {"nmn-demo": None, "nmb-demo": "m"}}, []),
    ],
)
def test_whose_an_end_is(links: dict[str, Link], plugged: dict[str, dict[str, str | None]], ends: list[str]) -> None:
    assert Site(WIRING, links, plugged).ends == ends


def test_a_bridge_of_libvirt_may_still_come_when_one_foresees() -> None:
    refuse_conflicts(Site(WIRING, {}), foreseeing=True)


@pytest.mark.parametrize(
    ("links", "made", "left_over"),
    [
        (host(), ["baremetal"], []),
        (host(OURS), ["baremetal"], ["baremetal"]),
        (host(OURS, *cable("nmn-demo", "nmb-demo", "nm-demo", "baremetal")), ["baremetal"], ["baremetal"]),
        (host(OURS, Link("nmb-demo", "veth", master="baremetal")), ["baremetal"], []),  # somebody else's end
        (host(OURS, Link("vnet0", "tun", master="baremetal")), ["baremetal"], []),
        (host(replace(OURS, alias=None)), [], []),
        (host(replace(OURS, alias="ours")), [], []),
        # Killed between making and marking it.
        (host(replace(OURS, alias=None, up=False)), ["baremetal"], ["baremetal"]),
        (host(replace(OURS, alias=None, up=False, forward_delay=1500)), [], []),
        # Left by an earlier removal; or another pair's, whose network is stopped.
        (host(replace(OURS, name="oldmetal")), ["baremetal"], ["oldmetal"]),
        (host(replace(OURS, name="oldmetal"), Link("vnet0", "tun", master="oldmetal")), ["baremetal"], []),
        (host(replace(OURS, name="othermetal")), ["baremetal"], []),
    ],
)
def test_whose_a_bridge_is(links: dict[str, Link], made: list[str], left_over: list[str]) -> None:
    assert WIRING.bridges_made(links) == made
    assert Site(WIRING, links, OTHERS_ENTRY).bridges_left_over() == left_over


@pytest.mark.parametrize(
    "wiring",
    [
        WIRING,
        replace(WIRING, a=Plug("a", "nmn-demo")),
        replace(WIRING, b=Plug("b", "nmb-demo", "baremetal"), mtu=9000),
    ],
)
def test_the_script_is_a_good_one(wiring: Wiring) -> None:
    text = entry_text(wiring, wiring.bridges_made({}))
    subprocess.run(["shellcheck", "-"], input=text, text=True, check=True)


def test_the_script_tells_what_it_plugs_in_where() -> None:
    assert plugged_by(entry_text(WIRING, ["baremetal"])) == OUR_ENTRY["nmn-demo"]
    assert plugged_by(entry_text(replace(WIRING, a=Plug("a", "x")), [])) == {"x": None, "nmb-demo": "baremetal"}


def test_the_script_makes_no_bridge_that_others_make() -> None:
    text = entry_text(WIRING, ["baremetal"])
    assert "ip link add baremetal type bridge forward_delay 0" in text
    assert "there nm-demo || exit 0" in text
    assert "add nm-demo" not in text
    text = entry_text(WIRING, [])
    assert "there baremetal || exit 0" in text
    assert "type bridge" not in text


def test_check_mode_on_a_host_without_pyroute2_foresees_all_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel.importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setattr(kernel, "may_change_links", lambda: True)
    params = {
        "name": "nmn-demo",
        "a": {"name": "nmn-demo", "bridge": "nm-demo", "make_bridge": False},
        "b": {"name": "nmb-demo", "bridge": "baremetal", "make_bridge": True},
        "mtu": 1500,
        "shared": False,
        "awaited": [],
        "state": "present",
    }
    result = port.run(params, check_mode=True)
    assert result["changed"]
    assert result["steps"][-6:] == ["add bridge baremetal", *ADDING]
    assert result["diff"]["before"] == ""
    (warning,) = port.warnings(params, check_mode=True)
    assert warning.startswith("a.bridge: there is no bridge nm-demo yet. The run needs it by then")
    assert port.warnings({**params, "awaited": ["nm-demo"]}, check_mode=True) == []
    with pytest.raises(NotThereYetError, match=r"has no pyroute2: role nometal\.ipi\.host_prep installs it"):
        port.run(params, check_mode=False)


def test_it_warns_if_the_pair_would_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_hook, "silence", lambda: "libvirtd was started before the hook was there")
    (warning,) = port.warnings({"name": "nmn-demo", "state": "present"}, check_mode=False)
    assert warning.startswith("nmn-demo will not be back after a reboot: libvirtd was started before")
    assert "Run module nometal.ipi.libvirt_service" in warning
    assert port.warnings({"name": "nmn-demo", "state": "absent"}, check_mode=False) == []


def test_the_pairs_of_a_lab_are_known_without_its_spec(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By the entries that name the lab, and the one that is named after it, also if that was damaged."""
    monkeypatch.setattr(hook_entry, "ENTRIES", tmp_path)
    usual = Wiring("nmn-demo", Plug("a", "nmn-demo"), Plug("b", "nmb-demo"), 1500, owner="demo")
    assert hook_entry.wirings_of("demo") == [usual]

    own = Wiring("mine", Plug("a", "mine0", "nm-demo"), Plug("b", "mine1", "lan", make_bridge=True), 1500, owner="demo")
    theirs = replace(own, name="theirs", owner="other")
    for wiring in (own, theirs, replace(own, name="older", owner="")):
        (tmp_path / f"{wiring.name}.veth").write_text(entry_text(wiring, ["lan"]), encoding="utf-8")
    (tmp_path / "nmn-demo.veth").write_text("#!/bin/sh\n", encoding="utf-8")
    assert hook_entry.wirings_of("demo") == [own, usual]
    assert hook_entry.owners_of_pairs() == {"mine": "demo", "theirs": "other"}

    (tmp_path / "nmn-demo.veth").write_text("#!/bin/sh\n# Lab: other\n", encoding="utf-8")
    assert hook_entry.wirings_of("demo") == [own]


LINKS_THERE = {
    "lan": Link("lan", "bridge", mtu=9000, alias=MARK),
    "mine0": Link("mine0", "veth", up=False, master="lan", peer="mine1"),
    "far": Link("far"),
}


def test_a_link_in_the_way_is_foreseen_without_pyroute2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel.importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setattr(site_of_host, "read_links", lambda: LINKS_THERE)
    monkeypatch.setattr(kernel, "may_change_links", lambda: True)
    assert set(site_of_host.links_found(foreseeing=True)) == {"lan", "mine0", "far"}
    with pytest.raises(NotThereYetError, match="has no pyroute2"):
        site_of_host.links_found(foreseeing=False)


def test_without_pyroute2_the_files_of_a_pair_go_all_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kernel.importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setattr(kernel, "may_change_links", lambda: True)
    monkeypatch.setattr(network_hook, "ENTRIES", tmp_path)
    monkeypatch.setattr(hook_entry, "ENTRIES", tmp_path)
    (tmp_path / "nmn-demo.veth").write_text("#!/bin/sh\n", encoding="utf-8")
    params = {"name": None, "lab": "demo", "state": "absent"}
    assert port.run(params, check_mode=False)["steps"] == [f"remove {tmp_path}/nmn-demo.veth"]
    assert not tmp_path.exists()
    with pytest.raises(OperatorError, match=r"lab: must be lower case letters, .* \(got '../demo'\)"):
        port.run({**params, "lab": "../demo"}, check_mode=False)
