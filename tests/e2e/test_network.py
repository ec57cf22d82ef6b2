"""The network of a lab as machines find it after a reboot, and what it outlives: one host, one lab, the same guests.

The tests follow one another; each leaves the lab whole.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support import checkout, guest_lab, lab_host
from support.guest_lab import BMC_PORT, ECHO_PORT, Lab
from support.street import OUTSIDE, Street
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.guest import Guest

PRINTER_MAC = "02:00:00:00:00:99"
# Docker's work, as its daemon leaves it behind.
DOCKER = """
for call in iptables ip6tables; do echo 1 >/proc/sys/net/bridge/bridge-nf-call-$call; done
for tool in iptables ip6tables; do
    $tool -N DOCKER-USER; $tool -A DOCKER-USER -j RETURN; $tool -I FORWARD -j DOCKER-USER; $tool -P FORWARD DROP
done
"""
WITHOUT_DOCKER = """
for tool in iptables ip6tables; do
    $tool -P FORWARD ACCEPT; $tool -D FORWARD -j DOCKER-USER; $tool -F DOCKER-USER; $tool -X DOCKER-USER
done
for call in iptables ip6tables; do echo 0 >/proc/sys/net/bridge/bridge-nf-call-$call; done
"""
LEGACY = """
for tool in iptables-legacy ip6tables-legacy; do
    $tool -A INPUT -i lo -j ACCEPT; $tool -P INPUT DROP; $tool -P FORWARD DROP
done
"""
WITHOUT_LEGACY = LEGACY.replace("-A INPUT", "-D INPUT").replace("DROP", "ACCEPT")
RULES_ARE_BACK = """
iptables -S LIBVIRT_FWO | grep -q nm-rehearsal || exit 1
iptables -t nat -S LIBVIRT_PRT | grep -q MASQUERADE && nft list chain inet nometal-rehearsal bridged
"""
DNS_QUERY = """
import socket, sys
query = b"\\0\\1\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\3api\\4test\\0\\0\\1\\0\\1"
asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asking.settimeout(2)
asking.sendto(query, (sys.argv[1], 53))
asking.recv(512)
"""


@pytest.fixture(scope="module")
def street() -> Iterator[Street]:
    outside = Street()
    with guest_lab.echo_outside(outside):
        yield outside
    outside.close()


@pytest.fixture(scope="module")
def lab(street: Street, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_host.start(layer="prepared", street=street) as host:
        made = Lab(host, tmp_path_factory.mktemp("lab"))
        made.specify()
        made.make_network()
        host.reboot()
        switch_on(made)
        yield made


def switch_on(lab: Lab) -> None:
    """Machines on both sides of the veth pair: two nodes, the bootstrap VM that nobody knows beforehand, a stranger."""
    lab.switch_on_node("control-plane-0", network=lab.network["name"])
    lab.switch_on_node("worker-0")
    lab.switch_on("bootstrap", "52:54:00:b0:07:00", [f"192.168.126.{last}" for last in range(10, 18)])
    lab.switch_on("printer", PRINTER_MAC, [f"192.168.126.{last}" for last in range(220, 240)])


def guests(lab: Lab) -> tuple[Guest, Guest]:
    """On the network's own bridge, and on the other side of the veth pair."""
    return lab.members["control-plane-0"].guest, lab.members["worker-0"].guest


@contextmanager
def streams(lab: Lab) -> Iterator[None]:
    """TCP connections through the NAT, and through the veth pair, which outlive what is done meanwhile."""
    near, far = guests(lab)
    near.echo(ECHO_PORT)
    with far.stream(OUTSIDE, ECHO_PORT) as out, far.stream(near.lease4.address, ECHO_PORT) as across:
        for stream in (out, across):
            stream.assert_goes_on()
        yield
        for stream in (out, across):
            stream.assert_goes_on()


def rehearsal() -> dict[str, Any]:
    """The lab_spec that ships."""
    text = (checkout.ROOT / "inventory/rehearsal/group_vars/all/lab.yml").read_text(encoding="utf-8")
    spec: dict[str, Any] = yaml.safe_load(text)["lab_spec"]
    return spec


@pytest.mark.long
def test_machines_on_both_sides_find_what_they_need(lab: Lab) -> None:
    lab.assert_all_is_well()
    lab.assert_the_first_question_is_answered()


def test_the_street_reaches_neither_bmcs_nor_dns_nor_machines(lab: Lab, street: Street) -> None:
    near, _far = guests(lab)
    near.echo(ECHO_PORT)
    [gateway] = [address["gateway"] for address in lab.network["addresses"]]
    lab.host.run(guest_lab.BMC)
    with guest_lab.road_into(lab, street):
        assert not guest_lab.connects_from(street, gateway, BMC_PORT)
        assert not guest_lab.connects_from(street, gateway, 53)
        assert not guest_lab.connects_from(street, near.lease4.address, ECHO_PORT)
        assert street.run(["python3", "-c", DNS_QUERY, gateway], check=False).returncode != 0


def test_it_is_the_same_after_restarts_of_libvirtd_and_of_the_network(lab: Lab) -> None:
    with streams(lab):
        lab.host.run("systemctl restart libvirtd")
    name = lab.network["name"]
    lab.host.run(f"virsh net-destroy {name} && virsh net-start {name}")
    lab.assert_the_first_question_is_answered()
    lab.assert_all_is_well()


@pytest.mark.full
def test_dockers_forward_policy_does_not_cut_it_off(lab: Lab) -> None:
    lab.host.run(DOCKER)
    try:
        lab.assert_all_is_well()
    finally:
        lab.host.run(WITHOUT_DOCKER)


@pytest.mark.full
def test_it_is_the_same_after_nftables_was_restarted_with_a_ruleset_of_its_own(lab: Lab) -> None:
    lab.host.run("grep -q '^flush ruleset' /etc/nftables.conf && systemctl restart nftables")
    wait_until("its rules are back", lambda: lab.host.run(RULES_ARE_BACK, check=False).returncode == 0)
    lab.assert_all_is_well()
    assert "changed=0" in checkout.run_playbook("network", lab.inventory, "--check").stdout
    lab.host.run("systemctl reload nftables")
    wait_until("its rules are back", lambda: lab.host.run(RULES_ARE_BACK, check=False).returncode == 0)


@pytest.mark.full
def test_make_lab_brings_back_what_a_flush_has_taken_away_and_goes_through_legacy_iptables(lab: Lab) -> None:
    lab.host.run(f"nft flush ruleset; {LEGACY}")
    try:
        lab.play("network")
        lab.assert_all_is_well()
        assert "changed=0" in checkout.run_playbook("network", lab.inventory).stdout
    finally:
        lab.host.run(WITHOUT_LEGACY)


@pytest.mark.full
def test_a_topology_that_is_refused_leaves_the_present_one_as_it_is(lab: Lab) -> None:
    lab.specify(machine_network={**rehearsal()["machine_network"], "topology": "direct"})
    for arguments in ([], ["-e", "lab_network_restart=allowed"]):
        refused = checkout.run_playbook("network", lab.inventory, *arguments)
        assert refused.returncode != 0
        said = refused.stdout.replace("\n", " ")
        assert f"VM {lab.model['name']}-" in said, said
    lab.specify()
    lab.assert_all_is_well()


@pytest.mark.full
def test_a_live_change_disturbs_no_connection_and_beats_leases(lab: Lab) -> None:
    """One reservation is new, and one has another address now."""
    reservation = {"name": "printer", "mac": PRINTER_MAC, "ip": "192.168.126.210"}
    lab.specify(
        machine_network={**rehearsal()["machine_network"], "reservations": [reservation]},
        nodes={**rehearsal()["nodes"], "overrides": {"worker-0": {"ip": "192.168.126.40"}}},
    )
    _near, far = guests(lab)
    with streams(lab):
        lab.play("network")
        assert lab.members["printer"].guest.renew().address == "192.168.126.210"
    assert far.renew().address == "192.168.126.40"
    assert far.addresses() == ["192.168.126.40"]


@pytest.mark.full
def test_swapped_reservations_beat_leases(lab: Lab) -> None:
    near, far = guests(lab)
    swapped = {"worker-0": {"ip": "192.168.126.20"}, "control-plane-0": {"ip": "192.168.126.40"}}
    lab.specify(nodes={**rehearsal()["nodes"], "overrides": swapped})
    lab.play("network")
    assert far.renew().address == "192.168.126.20"
    assert near.renew().address == "192.168.126.40"


def test_an_allowed_restart_keeps_connections(lab: Lab) -> None:
    lab.specify(machine_network={**rehearsal()["machine_network"], "ntp_servers": ["192.168.126.1"]})
    refused = checkout.run_playbook("network", lab.inventory)
    assert refused.returncode != 0
    assert "restart" in refused.stdout
    with streams(lab):
        lab.play("network", "-e", "lab_network_restart=allowed")
    for member in lab.members.values():
        assert member.guest.renew().ntp_servers == ["192.168.126.1"]
    lab.assert_all_is_well()  # with the addresses from before they were swapped
