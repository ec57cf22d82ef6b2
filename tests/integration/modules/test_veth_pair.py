"""veth_pair on a real kernel and libvirtd: made, changed and removed, each repeated, each first in check mode."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support import private_libvirtd
from support.modules import run_beside

from ansible_collections.nometal.ipi.plugins.module_utils._core.network_hook import DISPATCHER, DISPATCHER_TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.private_libvirtd import PrivateLibvirtd

NETWORK = "<network><name>demo</name><bridge name='nm-demo' stp='off'/></network>"
PAIR: dict[str, Any] = {
    "name": "nmn-demo",
    "a": {"name": "nmn-demo", "bridge": "nm-demo"},
    "b": {"name": "nmb-demo", "bridge": "baremetal"},
}
JUMBO = {**PAIR, "mtu": 9000}
ABSENT = {**PAIR, "state": "absent"}
ENTRY = "/etc/libvirt/hooks/nometal.d/nmn-demo.veth"
JOINING = [
    "join nmn-demo (to nm-demo)",
    "up nmn-demo (was down)",
    "join nmb-demo (to baremetal)",
    "up nmb-demo (was down)",
]
MAKING = [f"write {ENTRY}", "add bridge baremetal", "add nmn-demo (with nmb-demo)", *JOINING]
ENLARGING = [
    f"write {ENTRY} (was changed)",
    "set mtu of baremetal (was 1500)",
    "set mtu of nmn-demo (was 1500)",
    "set mtu of nmb-demo (was 1500)",
]
REMOVING = [f"remove {ENTRY}", "delete bridge baremetal", "delete nmn-demo (with its peer nmb-demo)"]

# Into another network namespace, which lives as long as the process; and the bridge is deleted.
TAKE_AN_END_AWAY = """
ip link delete baremetal
unshare --net sleep 20 >/dev/null 2>&1 &
until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
ip link set nmb-demo netns $!
"""
MAY_CHANGE_LINKS = """
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth.kernel import may_change_links
print(may_change_links())
"""


@pytest.fixture(scope="module")
def libvirtd() -> Iterator[PrivateLibvirtd]:
    """With a running network, and with the hook as libvirt_service installs it."""
    with private_libvirtd.start() as started:
        dispatcher = started.path(str(DISPATCHER))
        dispatcher.parent.mkdir(parents=True)
        dispatcher.write_text(DISPATCHER_TEXT, encoding="utf-8")
        dispatcher.chmod(0o755)
        started.restart()
        started.run(["virsh", "net-define", "/dev/stdin"], input=NETWORK)
        started.run(["virsh", "net-start", "demo"])
        yield started


@pytest.fixture
def clean(libvirtd: PrivateLibvirtd) -> Iterator[PrivateLibvirtd]:
    yield libvirtd
    for link in ("nmn-demo", "nmb-demo", "stray-a", "baremetal", "nm-other"):
        libvirtd.run(["ip", "link", "delete", link], check=False)
    libvirtd.path(ENTRY).unlink(missing_ok=True)


def veth_pair(libvirtd: PrivateLibvirtd, arguments: dict[str, Any], **options: Any) -> dict[str, Any]:
    return run_beside(libvirtd, "veth_pair", arguments, **options)


def shell(libvirtd: PrivateLibvirtd, script: str) -> str:
    return libvirtd.run(["sh", "-ec", script]).stdout


def link(libvirtd: PrivateLibvirtd, name: str) -> dict[str, Any]:
    shown = libvirtd.run(["ip", "--json", "--details", "link", "show", name], check=False).stdout
    return json.loads(shown)[0] if shown else {}


def wiring(libvirtd: PrivateLibvirtd) -> dict[str, Any]:
    """Without carrier, which comes and goes a moment later."""
    shown = json.loads(libvirtd.run(["ip", "--json", "link"]).stdout)
    return {found["ifname"]: (found.get("master"), found["mtu"], "UP" in found["flags"]) for found in shown}


def assert_all_is_well(libvirtd: PrivateLibvirtd, mtu: int = 1500) -> None:
    for end, peer, bridge in (("nmn-demo", "nmb-demo", "nm-demo"), ("nmb-demo", "nmn-demo", "baremetal")):
        found = link(libvirtd, end)
        assert (found["link"], found["master"], found["operstate"], found["mtu"]) == (peer, bridge, "UP", mtu)
    ours = link(libvirtd, "baremetal")
    assert (ours["operstate"], ours["mtu"], ours["ifalias"]) == ("UP", mtu, "nometal.ipi")
    assert ours["linkinfo"]["info_data"]["forward_delay"] == 0
    assert shell(libvirtd, "ip -brief address show baremetal").split() == ["baremetal", "UP"]


def test_acceptance(clean: PrivateLibvirtd) -> None:
    for wanted, steps in ((PAIR, MAKING), (JUMBO, ENLARGING)):
        mtu = link(clean, "baremetal").get("mtu")
        foreseen = veth_pair(clean, wanted, check_mode=True)
        assert foreseen["steps"] == steps
        assert link(clean, "baremetal").get("mtu") == mtu

        made = veth_pair(clean, wanted)
        assert made["changed"]
        assert made["steps"] == steps
        assert made["shown_diff"] == foreseen["shown_diff"] != ""
        assert_all_is_well(clean, mtu=wanted.get("mtu", 1500))

        for check_mode in (True, False):
            again = veth_pair(clean, wanted, check_mode=check_mode)
            assert not again["changed"]
            assert again["shown_diff"] == ""

    assert veth_pair(clean, ABSENT, check_mode=True)["steps"] == REMOVING
    assert_all_is_well(clean, mtu=9000)
    assert veth_pair(clean, ABSENT)["steps"] == REMOVING
    for name in ("nmn-demo", "nmb-demo", "baremetal"):
        assert link(clean, name) == {}
    assert link(clean, "nm-demo")
    assert not clean.path(ENTRY).parent.exists()
    for check_mode in (True, False):
        assert not veth_pair(clean, ABSENT, check_mode=check_mode)["changed"]


def test_what_was_changed_behind_its_back_is_repaired_and_named(clean: PrivateLibvirtd) -> None:
    veth_pair(clean, PAIR)
    settings = """
    ip link set nmn-demo master baremetal down
    ip link set nmb-demo master nm-demo
    ip link set nmb-demo mtu 1400
    ip link set baremetal down mtu 1300 type bridge forward_delay 1500
    echo 0 >/proc/sys/net/ipv6/conf/baremetal/disable_ipv6
    echo "exit 0" >>/etc/libvirt/hooks/nometal.d/nmn-demo.veth
    """
    shell(clean, settings)
    assert veth_pair(clean, PAIR)["steps"] == [
        f"write {ENTRY} (was changed)",
        "set mtu of baremetal (was 1300)",
        "set forward delay of baremetal (was 15 s)",
        "silence baremetal (the host answered on it)",
        "up baremetal (was down)",
        "release nmn-demo (was on baremetal)",
        "release nmb-demo (was on nm-demo)",
        "join nmn-demo (to nm-demo)",
        "up nmn-demo (was down)",
        "set mtu of nmb-demo (was 1400)",
        "join nmb-demo (to baremetal)",
    ]
    assert_all_is_well(clean)

    shell(clean, "ip link delete nmn-demo; ip link add nmn-demo type veth peer name stray-a")
    assert veth_pair(clean, PAIR)["steps"] == [
        "delete nmn-demo (with its peer stray-a)",
        "add nmn-demo (with nmb-demo)",
        *JOINING,
    ]
    assert link(clean, "stray-a") == {}
    assert_all_is_well(clean)

    shell(clean, TAKE_AN_END_AWAY)
    assert veth_pair(clean, PAIR)["steps"] == [
        "add bridge baremetal",
        "delete nmn-demo (its peer is elsewhere)",
        "add nmn-demo (with nmb-demo)",
        *JOINING,
    ]
    assert_all_is_well(clean)


def test_a_bridge_whose_making_was_cut_short_is_completed(clean: PrivateLibvirtd) -> None:
    shell(clean, "ip link add baremetal type bridge forward_delay 0")
    steps = veth_pair(clean, PAIR)["steps"]
    assert steps[1:4] == [
        "mark baremetal (its making was cut short)",
        "silence baremetal (the host answered on it)",
        "up baremetal (was down)",
    ]
    assert_all_is_well(clean)
    assert "delete bridge baremetal" in veth_pair(clean, ABSENT)["steps"]


def test_it_is_back_whenever_the_network_starts(clean: PrivateLibvirtd) -> None:
    veth_pair(clean, PAIR)

    shell(clean, "virsh net-destroy demo; virsh net-start demo")
    assert_all_is_well(clean)
    assert not veth_pair(clean, PAIR, check_mode=True)["changed"]

    shell(clean, "virsh net-destroy demo; ip link delete nmn-demo; ip link delete baremetal")
    # When another network starts it makes nothing: libvirt would not start one whose bridge is there.
    shell(clean, f"{ENTRY} other started; {ENTRY} demo stopped")
    assert link(clean, "baremetal") == link(clean, "nm-demo") == {}
    shell(clean, "virsh net-start demo")
    assert_all_is_well(clean)
    assert not veth_pair(clean, PAIR, check_mode=True)["changed"]

    # Two networks that start at once.
    shell(clean, f"ip link delete nmn-demo; ip link delete baremetal; {ENTRY} x started & {ENTRY} y started; wait")
    assert_all_is_well(clean)
    assert not veth_pair(clean, PAIR, check_mode=True)["changed"]


def test_a_bridge_of_others_is_used_but_neither_changed_nor_removed(clean: PrivateLibvirtd) -> None:
    shell(clean, "ip link add baremetal mtu 1450 up type bridge forward_delay 300")
    assert "add bridge baremetal" not in veth_pair(clean, PAIR)["steps"]
    assert not veth_pair(clean, PAIR)["changed"]
    bridge = link(clean, "baremetal")
    assert bridge["linkinfo"]["info_data"]["forward_delay"] == 300
    assert "ifalias" not in bridge
    assert "there baremetal || exit 0" in clean.path(ENTRY).read_text(encoding="utf-8")
    veth_pair(clean, ABSENT)
    assert link(clean, "baremetal")


def test_a_bridge_of_others_with_an_uplink_is_joined_only_where_it_is_to_be_shared(clean: PrivateLibvirtd) -> None:
    shell(clean, "ip link add baremetal type bridge; ip link add stray-a master baremetal type veth peer name stray-b")
    shell(clean, "ip tuntap add nm-other mode tap; ip link set nm-other master baremetal")
    before = wiring(clean)
    for check_mode in (True, False):
        refused = veth_pair(clean, PAIR, check_mode=check_mode)
        assert "bridge baremetal has ports of others (stray-a):" in refused["msg"]
        assert "lab_spec.machine_network.shared_lan" in refused["msg"]
    assert wiring(clean) == before

    shared = {**PAIR, "shared": True}
    assert JOINING[2] in veth_pair(clean, shared)["steps"]
    assert not veth_pair(clean, shared)["changed"]
    # As at boot.
    shell(clean, f"ip link delete nmn-demo; {ENTRY} demo started")
    assert link(clean, "nmb-demo")["master"] == "baremetal"

    # One that was joined before it had an uplink is refused as well, and not joined again at boot.
    shell(clean, "ip link delete stray-a")
    veth_pair(clean, PAIR)
    shell(clean, f"ip link delete nmn-demo; {ENTRY} demo started")
    assert link(clean, "nmb-demo")["master"] == "baremetal"
    shell(clean, "ip link add stray-a master baremetal type veth peer name stray-b")
    assert "has ports of others (stray-a)" in veth_pair(clean, PAIR)["msg"]
    shell(clean, f"ip link delete nmn-demo; {ENTRY} demo started")
    assert not link(clean, "nmb-demo")


def test_a_bridge_of_others_with_their_vms_is_not_joined(clean: PrivateLibvirtd) -> None:
    shell(clean, "ip link add baremetal type bridge; ip tuntap add nm-other mode tap")
    shell(clean, "ip link set nm-other master baremetal")
    before = wiring(clean)
    assert "bridge baremetal has ports of others (nm-other):" in veth_pair(clean, PAIR)["msg"]
    assert wiring(clean) == before
    # Once the pair is there, VMs come.
    shell(clean, "ip link set nm-other nomaster")
    veth_pair(clean, PAIR)
    shell(clean, "ip link set nm-other master baremetal")
    assert not veth_pair(clean, PAIR)["changed"]
    shell(clean, "ip link delete nmn-demo")
    assert "add nmn-demo (with nmb-demo)" in veth_pair(clean, PAIR)["steps"]


def test_the_labs_own_bridge_is_not_joined_either_once_it_has_an_uplink(clean: PrivateLibvirtd) -> None:
    veth_pair(clean, PAIR)
    shell(clean, "ip link add stray-a master baremetal type vxlan id 7 local 127.0.0.1 dstport 4789")
    for check_mode in (True, False):
        refused = veth_pair(clean, PAIR, check_mode=check_mode)
        assert "bridge baremetal has ports of others (stray-a):" in refused["msg"]
    shell(clean, f"ip link delete nmn-demo; {ENTRY} demo started")
    assert not link(clean, "nmb-demo")
    # By a veth, something of this host is plugged into the lab.
    shell(clean, "ip link delete stray-a; ip link add stray-a master baremetal type veth peer name stray-b")
    shell(clean, f"{ENTRY} demo started")
    assert link(clean, "nmb-demo")["master"] == "baremetal"
    assert not veth_pair(clean, PAIR)["changed"]

    shell(clean, "ip link delete stray-a")
    shell(clean, "ip link add stray-a master baremetal type vxlan id 7 local 127.0.0.1 dstport 4789")
    shared = {**PAIR, "shared": True}
    assert veth_pair(clean, shared)["steps"] == [f"write {ENTRY} (was changed)"]
    shell(clean, f"ip link delete nmn-demo; {ENTRY} demo started")
    assert link(clean, "nmb-demo")["master"] == "baremetal"


def test_a_bridge_that_others_have_made_in_place_of_ours_is_not_joined_at_boot(clean: PrivateLibvirtd) -> None:
    veth_pair(clean, PAIR)
    shell(
        clean,
        f"ip link delete nmn-demo; ip link delete baremetal; ip link add baremetal type bridge; {ENTRY} x started",
    )
    assert not link(clean, "nmb-demo")


def test_our_bridge_stays_as_long_as_others_are_on_it(clean: PrivateLibvirtd) -> None:
    veth_pair(clean, PAIR)
    shell(clean, "ip link add stray-a master baremetal type veth peer name stray-b")
    assert veth_pair(clean, ABSENT)["steps"] == [REMOVING[0], REMOVING[2]]
    assert not veth_pair(clean, ABSENT)["changed"]
    assert link(clean, "stray-a")["master"] == "baremetal"
    shell(clean, "ip link delete stray-a")
    assert veth_pair(clean, ABSENT)["steps"] == ["delete bridge baremetal"]


def test_our_bridge_goes_when_another_is_asked_for(clean: PrivateLibvirtd) -> None:
    veth_pair(clean, PAIR)
    renamed = {**PAIR, "b": {"name": "nmb-demo", "bridge": "othermetal"}}
    shell(clean, "ip link add stray-a master baremetal type veth peer name stray-b")
    before = wiring(clean)
    assert "stray-a is still on baremetal" in veth_pair(clean, renamed)["msg"]
    assert wiring(clean) == before
    shell(clean, "ip link delete stray-a")
    moved = veth_pair(clean, renamed)
    assert "delete bridge baremetal (no longer asked for)" in moved["steps"]
    assert not link(clean, "baremetal")
    assert link(clean, "nmb-demo")["master"] == "othermetal"
    assert not veth_pair(clean, renamed)["changed"]
    # One who has changed their mind since removes what there is.
    assert "delete bridge othermetal" in veth_pair(clean, ABSENT)["steps"]
    assert not link(clean, "othermetal")


@pytest.mark.parametrize(
    ("hindrance", "complaint"),
    [
        ("ip link add nmb-demo type bridge", "b.name: nmb-demo exists and is not a veth but bridge"),
        (
            "ip link add baremetal type veth peer name stray-a",
            "b.bridge: baremetal exists and is not a bridge but veth",
        ),
        (
            """
            ip link add baremetal type bridge
            ip link add stray-a master baremetal type veth peer name stray-b
            ip link set stray-b master nm-demo
            """,
            "already joined by stray-b-stray-a",
        ),
        ("ip link add nmn-demo type veth peer name stray-a", "a.name: nmn-demo exists and is not this pair's"),
        (
            """
            ip link add baremetal type bridge
            ip link set baremetal alias nometal.ipi
            ip link add nm-other type bridge
            ip link add stray-a master baremetal type veth peer name stray-b
            ip link set stray-b master nm-other
            """,
            "bridge baremetal is already joined to nm-other by stray-a: two networks would be one",
        ),
    ],
)
def test_what_stands_in_the_way_is_named_and_nothing_is_changed(
    clean: PrivateLibvirtd, hindrance: str, complaint: str
) -> None:
    shell(clean, hindrance)
    before = wiring(clean)
    refused = veth_pair(clean, PAIR)
    assert refused["failed"]
    assert complaint in refused["msg"]
    assert wiring(clean) == before
    assert not clean.path(ENTRY).exists()
    assert "delete nmn-demo" not in str(veth_pair(clean, ABSENT)["steps"])


def test_a_bridge_of_libvirt_is_not_made_while_its_network_is_stopped(clean: PrivateLibvirtd) -> None:
    shell(clean, "virsh net-destroy demo")
    refused = veth_pair(clean, PAIR)
    assert "a.bridge: there is no bridge nm-demo, and it is not this module's to make" in refused["msg"]
    assert veth_pair(clean, PAIR, check_mode=True)["steps"] == MAKING
    shell(clean, "virsh net-start demo")


def test_one_who_may_not_is_told(clean: PrivateLibvirtd) -> None:
    python = ["env", "PYTHONPATH=playbooks/collections", sys.executable, "-c", MAY_CHANGE_LINKS]
    powerless = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"]
    answers = [clean.run([*prefix, *python]).stdout for prefix in ([], powerless)]
    assert answers == ["True\n", "False\n"]
