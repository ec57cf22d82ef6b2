"""A veth pair on a whole host: it outlives reboots and restarts of libvirt, and link managers leave it alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support import lab_host
from support.modules import run_in
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.lab_host import LabHost

NETWORK = "<network><name>demo</name><bridge name='nm-demo' stp='off'/></network>"
PAIR: dict[str, Any] = {
    "name": "nmn-demo",
    "a": {"name": "nmn-demo", "bridge": "nm-demo"},
    "b": {"name": "nmb-demo", "bridge": "baremetal"},
}
OURS = {"nmn-demo", "nmb-demo", "baremetal"}
ENTRY = "/etc/libvirt/hooks/nometal.d/nmn-demo.veth"
NM_FILE = "/etc/NetworkManager/conf.d/nometal-nmn-demo.conf"
NETWORKD_FILE = "/etc/systemd/network/0-0-nometal-nmn-demo.network"
CATCH_ALL = "[Match]\nType=ether bridge\nName=!host0\n\n[Network]\nAddress=10.99.0.1/24\nLinkLocalAddressing=no\n"


@pytest.fixture(scope="module")
def host() -> Iterator[LabHost]:
    """With NetworkManager, networkd and its file for all links, and libvirt with our hook."""
    with lab_host.start(layer="peers") as started:
        started.run("systemctl enable --now NetworkManager")
        started.write("/etc/systemd/network/00-all.network", CATCH_ALL)
        started.run("systemctl enable --now systemd-networkd")
        started.run(["virsh", "net-define", "/dev/stdin"], input=NETWORK)
        started.run("virsh net-autostart demo && virsh net-start demo")
        run_in(started, "libvirt_service", {})
        yield started


def veth_pair(host: LabHost, **changed: Any) -> dict[str, Any]:
    return run_in(host, "veth_pair", {**PAIR, **changed})


def links(host: LabHost) -> dict[str, tuple[str, str | None]]:
    shown = json.loads(host.run("ip --json link").stdout)
    return {link["ifname"]: (link["operstate"], link.get("master")) for link in shown}


def is_well(host: LabHost) -> bool:
    wanted = {"nmn-demo": ("UP", "nm-demo"), "nmb-demo": ("UP", "baremetal"), "baremetal": ("UP", None)}
    return wanted.items() <= links(host).items()


def managed(host: LabHost) -> set[str]:
    """What NetworkManager or networkd does something to."""
    by_nm = host.run("nmcli --terse --fields DEVICE,STATE device | grep ':connect' | cut -d: -f1").stdout
    by_networkd = host.run("networkctl --no-legend list | grep -v unmanaged | awk '{ print $2 }'").stdout
    return set(by_nm.split()) | set(by_networkd.split())


def test_it_is_made_and_link_managers_leave_it_alone(host: LabHost) -> None:
    made = veth_pair(host)
    assert made["steps"][:3] == [f"write {ENTRY}", f"write {NM_FILE}", f"write {NETWORKD_FILE}"]
    assert is_well(host)
    assert not managed(host) & OURS
    assert not veth_pair(host)["changed"]


def test_what_link_managers_did_to_it_without_their_files_is_repaired_in_one_run(host: LabHost) -> None:
    host.run(f"rm {NM_FILE} {NETWORKD_FILE} && nmcli general reload conf && networkctl reload")
    wait_until("they have laid hands on it", lambda: managed(host) >= {"nmn-demo", "nmb-demo"})
    steps = veth_pair(host)["steps"]
    assert {f"write {NM_FILE}", f"write {NETWORKD_FILE}"} <= set(steps)
    assert not managed(host) & OURS
    assert is_well(host)
    assert not veth_pair(host)["changed"]


@pytest.mark.parametrize(
    "event",
    [
        "reboot",
        "power cut",
        "virsh net-destroy demo && virsh net-start demo",
        "systemctl restart libvirtd && virsh net-destroy demo && virsh net-start demo",
    ],
)
def test_it_is_back_without_ansible_after(host: LabHost, event: str) -> None:
    if event == "reboot":
        host.reboot()
    elif event == "power cut":
        host.kill()
    else:
        host.run(event)
    wait_until("the pair is back", lambda: is_well(host))
    assert not managed(host) & OURS
    assert not veth_pair(host)["changed"]


def test_a_restart_of_libvirt_does_not_touch_it(host: LabHost) -> None:
    before = host.run("ip -oneline link").stdout
    host.run("systemctl restart libvirtd && virsh net-list")
    assert host.run("ip -oneline link").stdout == before


def test_another_pairs_files_stay(host: LabHost) -> None:
    other = {"name": "other", "a": {"name": "other-a"}, "b": {"name": "other-b", "bridge": "baremetal"}}
    run_in(host, "veth_pair", other)
    veth_pair(host, state="absent")
    files = host.run("ls /etc/libvirt/hooks/nometal.d /etc/NetworkManager/conf.d /etc/systemd/network").stdout.split()
    left = {"other.veth", "nometal-other.conf", "0-0-nometal-other.network"}
    assert {name for name in files if "other" in name or "demo" in name} == left
    assert links(host)["baremetal"] == ("UP", None)
    run_in(host, "veth_pair", {**other, "state": "absent"})
    assert not {"baremetal", "other-a", "nmn-demo"} & set(links(host))
    assert host.run("ls /etc/libvirt/hooks").stdout.split() == ["network.d"]
