"""Two labs on one host, of kinds that test_network.py has not: dual stack with a provisioning network, and IPv6 only.

The second one's topology is direct. A third one shares a LAN. The tests follow one another; the last one removes a lab.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support import checkout, guest, guest_lab, lab_host, made_lab
from support.guest_lab import BMC_PORT, ECHO_PORT, Lab
from support.modules import run_on
from support.street import OUTSIDE, Street
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.lab_host import LabHost

DUAL = {"cidr": "192.168.126.0/24", "cidr_v6": "fd2e:6f44:5dd8::/64"}
SIX = {"cidr_v6": "fd2e:6f44:5dd9::/64", "bridge": "sixmetal", "topology": "direct"}
PROVISIONING = {"mode": "managed", "cidr": "172.22.0.0/24", "bridge": "provisioning"}
SHARED = {"cidr": "192.168.140.0/24", "cidr_v6": "fd2e:6f44:5dda::/64", "bridge": "office"}
OFFICE = """
ip link add office type bridge forward_delay 0 && ip link add lan0 master office type veth peer name elsewhere
for link in office lan0 elsewhere; do ip link set $link up; done
"""
POOL = range(10, 18)
BOOTSTRAP_MAC = "52:54:00:b0:07:00"


@pytest.fixture(scope="module")
def street() -> Iterator[Street]:
    outside = Street()
    with guest_lab.echo_outside(outside):
        yield outside
    outside.close()


@pytest.fixture(scope="module")
def host(street: Street) -> Iterator[LabHost]:
    with lab_host.start(layer="prepared", street=street) as started:
        yield started


@pytest.fixture(scope="module")
def networks(host: LabHost, tmp_path_factory: pytest.TempPathFactory) -> tuple[Lab, Lab]:
    directory: Path = tmp_path_factory.mktemp("labs")
    dual, six = Lab(host, directory), Lab(host, directory)
    dual.specify(name="dual", machine_network=DUAL, provisioning_network=PROVISIONING)
    six.specify(name="six", machine_network=SIX)
    for lab in (dual, six):
        lab.make_network()
    return dual, six


@pytest.fixture(scope="module")
def made(networks: tuple[Lab, Lab], host: LabHost) -> tuple[Lab, Lab]:
    """The second one with VMs and BMCs, and the host started anew: nothing is on a bridge."""
    _dual, six = networks
    six.play(made_lab.STAGES)
    host.reboot()
    return networks


@pytest.fixture(scope="module")
def labs(networks: tuple[Lab, Lab], host: LabHost) -> tuple[Lab, Lab]:
    """Guests in both, instead of VMs, and the port of the BMCs free for what stands for them."""
    dual, six = networks
    host.run("systemctl stop nometal-bmc-six", check=False)
    for name in host.run("virsh list --all --name").stdout.split():
        host.run(["virsh", "undefine", "--nvram", "--remove-all-storage", name])
    dual.switch_on_node("control-plane-0", network=dual.network["name"])
    dual.switch_on_node("worker-0")
    pool = [f"192.168.126.{number}" for number in POOL] + [f"fd2e:6f44:5dd8::{number:x}" for number in POOL]
    dual.switch_on("bootstrap", BOOTSTRAP_MAC, pool)
    six.switch_on_node("control-plane-0")
    six.switch_on("bootstrap", BOOTSTRAP_MAC, [f"fd2e:6f44:5dd9::{number:x}" for number in POOL])
    return dual, six


@pytest.mark.full
def test_bmcs_answer_by_ipv6_while_all_vms_are_off(made: tuple[Lab, Lab], host: LabHost) -> None:
    _dual, six = made
    gateway = six.network["addresses"][0]["gateway"]
    connect = ["timeout", "2", "bash", "-c", f"</dev/tcp/{gateway}/{BMC_PORT}"]
    wait_until("the BMCs are reached", lambda: host.run(connect, check=False).returncode == 0)
    assert "NO-CARRIER" in host.run("ip link show dev sixmetal").stdout
    told = run_on(six.inventory, "bmc_info", {"lab": "six"})
    assert [(node["power"], node["trouble"]) for node in told["nodes"]] == [("Off", "")] * len(six.model["nodes"])


@pytest.mark.full
def test_the_topology_of_a_lab_changes_either_way(made: tuple[Lab, Lab]) -> None:
    _dual, six = made
    stages = "doctor network nodes bmc"
    for topology in ("veth", "direct"):
        six.specify(name="six", machine_network={**SIX, "topology": topology})
        six.play(stages, "-e", "lab_network_restart=allowed")
        again = checkout.run_playbook(stages, six.inventory)
        assert again.returncode == 0, again.stdout
        assert "changed=0" in again.stdout


@pytest.mark.full
def test_a_lan_of_others_is_refused_or_shared_with_the_labs_own_machines_alone(host: LabHost, tmp_path: Path) -> None:
    office = Lab(host, tmp_path)
    office.specify(name="office", machine_network=SHARED)
    host.run(OFFICE)
    refused = checkout.run_playbook("doctor", office.inventory)
    assert "office has ports of others (lan0)" in " ".join(refused.stdout.split())
    office.specify(name="office", machine_network={**SHARED, "shared_lan": True}, bootstrap={"address": "reserved"})
    office.make_network()
    with guest.start(host, name="neighbour", bridge="office", mac="52:54:00:77:00:01") as neighbour:
        neighbour.run("true")  # it has booted, and asks by now
        node = office.switch_on_node("worker-0")
        assert {node.lease4.address, node.lease6.address} == set(office.members["worker-0"].addresses)
        assert node.has_route("default via fe80::")
        node.rejoin()
        assert node.has_route("default via fe80::")
        assert not neighbour.has_lease(4)
        assert not neighbour.has_lease(6)
        assert "default" not in neighbour.routes()
    office.switch_off()

    # As one who changes their mind, and runs a single stage rather than the doctor.
    office.specify(name="office", machine_network=SHARED)
    links, network = host.run("ip -brief link").stdout, host.run("virsh net-dumpxml nometal-office").stdout
    refused = checkout.run_playbook("network", office.inventory)
    assert "bridge office has ports of others (lan0)" in " ".join(refused.stdout.split())
    assert (host.run("ip -brief link").stdout, host.run("virsh net-dumpxml nometal-office").stdout) == (links, network)
    office.play("teardown")
    assert "master office" in host.run("ip link show lan0").stdout
    host.run("ip link delete office")


@pytest.mark.long
def test_machines_of_both_ip_versions_find_what_they_need(labs: tuple[Lab, Lab]) -> None:
    for lab in labs:
        lab.assert_all_is_well()
        lab.assert_the_first_question_is_answered()
        for member in lab.members.values():
            assert member.guest.has_route("default via fe80::")


def test_the_street_reaches_neither_bmcs_nor_dns_nor_machines_by_ipv6(labs: tuple[Lab, Lab], street: Street) -> None:
    for lab in labs:
        node = lab.members["control-plane-0"].guest
        node.echo(ECHO_PORT)
        gateway = lab.network["addresses"][-1]["gateway"]
        with guest_lab.road_into(lab, street):
            assert not guest_lab.connects_from(street, gateway, BMC_PORT)
            assert not guest_lab.connects_from(street, gateway, 53)
            assert not guest_lab.connects_from(street, node.lease6.address, ECHO_PORT)


def test_the_provisioning_network_is_there_and_leaves_dhcp_to_the_cluster(labs: tuple[Lab, Lab], host: LabHost) -> None:
    dual, _six = labs
    [node, *_] = dual.model["nodes"]
    with guest.start(host, name="by-pxe", network="provisioning", mac=node["boot_mac"]) as by_pxe:
        by_pxe.run("ip address add 172.22.0.77/24 dev eth0")
        assert by_pxe.reaches("172.22.0.1")
        assert not by_pxe.has_lease(4)
        assert not by_pxe.has_lease(6)


def test_removing_one_lab_leaves_the_others_traffic_running(labs: tuple[Lab, Lab]) -> None:
    dual, six = labs
    near, far = dual.members["control-plane-0"].guest, dual.members["worker-0"].guest
    six.switch_off()
    with far.stream(OUTSIDE, ECHO_PORT) as out, far.stream(near.lease6.address, ECHO_PORT) as across:
        six.play("teardown")
        out.assert_goes_on()
        across.assert_goes_on()
    dual.assert_all_is_well()
