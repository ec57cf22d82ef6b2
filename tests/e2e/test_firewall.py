"""The lab_firewall module on a whole host where firewalld runs, with a libvirt network in its zone."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from support import lab_host
from support.modules import run_in
from support.street import Street
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.lab_host import LabHost

NETWORK = """\
<network><name>nometal-demo</name><forward mode='nat'/><bridge name='nm-demo' stp='off' delay='0'/>
<ip address='192.168.126.1' prefix='24'/></network>
"""
LAB = {
    "owner": "demo",
    "networks": [
        {
            "bridge": "nm-demo",
            "forward": "nat",
            "addresses": [{"gateway": "192.168.126.1", "cidr": "192.168.126.0/24"}],
        }
    ],
    "bridges": ["baremetal"],
    "ports": [{"port": 8000}],
}
# A client on baremetal and another beside it, the veth pair between the bridges, and two servers in the house.
# Somebody is connected to libvirt, as BMCs are: it would end after two minutes, and not hear what firewalld forgets.
HOUSE = """
virsh net-define /root/network.xml && virsh net-start nometal-demo
systemd-run --quiet virsh event --event lifecycle --loop
sysctl -qw net.bridge.bridge-nf-call-iptables=1
ip link add baremetal type bridge && sysctl -qw net.ipv4.conf.baremetal.arp_ignore=1
ip link add nmn-demo master nm-demo type veth peer name nmb-demo
ip link set nmb-demo master baremetal
for link in nmn-demo nmb-demo baremetal; do ip link set $link up; done
for number in 50 51; do
  ip netns add n$number
  ip link add p$number master baremetal type veth peer name eth0 netns n$number
  ip link set p$number up
  ip -n n$number link set eth0 up
  ip -n n$number address add 192.168.126.$number/24 dev eth0
  ip -n n$number route add default via 192.168.126.1
done
for port in 8000 9000; do systemd-run --quiet python3 -m http.server $port; done
systemd-run --quiet ip netns exec n51 python3 -m http.server 8000
"""
ASK = """
import socket, sys
for target in sys.argv[1:]:
    try:
        socket.create_connection(target.split(","), timeout=5).close()
        print(target)
    except OSError:
        pass
"""
BMC, NOT_BMC, SECOND_NODE = "192.168.126.1,8000", "192.168.126.1,9000", "192.168.126.51,8000"
FILES = "find /etc/firewalld -type f -exec md5sum {} +"
CONFIGURATION = """
for scope in "" --permanent; do for zone in libvirt libvirt-routed public; do
  firewall-cmd $scope --zone=$zone --list-all | sed 's/ (active)//'; done; done
nft list ruleset | sed 's/counter packets [0-9]* bytes [0-9]*//'
"""

ZONE_IN_USE = """
firewall-cmd --permanent --new-zone=passing && firewall-cmd --permanent --zone=passing --add-source=203.0.113.0/24
firewall-cmd --reload
"""
ZONE_GONE = """
firewall-cmd --permanent --delete-zone=passing && firewall-cmd --reload
rm -f /etc/firewalld/zones/passing.xml.old
"""
SCOPES = ("now", "always")
CLIENT = (
    'zone=public rich-rule=rule family="ipv4" source address="198.51.100.1/32" destination address="192.168.126.1" '
    'port port="9000" protocol="tcp" accept'
)


@pytest.fixture(scope="module")
def house() -> Iterator[tuple[LabHost, Street]]:
    street = Street()
    with lab_host.start(layer="peers", street=street) as started:
        started.run("systemctl start firewalld")
        started.write("/root/network.xml", NETWORK)
        started.run(HOUSE)
        street.run(["ip", "route", "add", "192.168.126.1", "via", started.address])
        yield started, street
    street.close()


def reached(host: LabHost, *targets: str) -> list[str]:
    return host.run(["ip", "netns", "exec", "n50", "python3", "-c", ASK, *targets]).stdout.split()


def met_outside(street: Street, *targets: str) -> list[str]:
    return street.run([sys.executable, "-c", ASK, *targets]).stdout.split()


def wait_until_reached(host: LabHost, targets: list[str], not_reached: list[str]) -> None:
    def found() -> list[str]:
        return reached(host, *targets, *not_reached)

    wait_until(f"only {targets} are open", lambda: found() == targets, seen=found)


def test_firewalld(house: tuple[LabHost, Street]) -> None:
    host, street = house

    def firewall(arguments: dict[str, Any], **options: Any) -> dict[str, Any]:
        return run_in(host, "lab_firewall", arguments, **options)

    before = host.run(CONFIGURATION).stdout
    files = host.run(FILES).stdout
    assert reached(host, BMC, SECOND_NODE) == []

    foreseen = firewall(LAB, check_mode=True)
    assert host.run(CONFIGURATION).stdout == before
    applied = firewall(LAB)
    assert applied["steps"] == foreseen["steps"]
    assert "open always zone=libvirt interface=baremetal" in applied["steps"]
    assert reached(host, BMC, NOT_BMC, SECOND_NODE) == [BMC, SECOND_NODE]
    assert not firewall(LAB)["changed"]

    # firewalld then forgets what is in iptables, which matters beside Docker only; libvirt sets its own anew, and all
    # that is the lab's is back when a network starts.
    host.run("firewall-cmd --reload")
    wait_until_reached(host, [BMC, SECOND_NODE], not_reached=[NOT_BMC])
    host.run("/etc/libvirt/hooks/nometal.d/demo.firewall nometal-demo started")
    assert not firewall(LAB)["changed"]

    # Another port while firewalld is stopped: the former is closed all the same, and what is to come is open.
    host.run("systemctl stop firewalld")
    firewall({**LAB, "ports": [{"port": 9000}]})
    host.run("systemctl start firewalld")
    wait_until_reached(host, [NOT_BMC], not_reached=[BMC])

    # A client on the street, by the zone of the host's own link.
    assert met_outside(street, NOT_BMC) == []
    opened = firewall({**LAB, "ports": [{"port": 9000}], "clients": ["198.51.100.1/32"]})
    assert {f"open {each} {CLIENT}" for each in SCOPES} <= {*opened["steps"]}
    assert met_outside(street, BMC, NOT_BMC) == [NOT_BMC]

    # A zone of others that is in use, and later gone with the lab's rule in it, as Docker's is with Docker.
    host.run(ZONE_IN_USE)
    opened = firewall({**LAB, "ports": [{"port": 9000}], "clients": ["198.51.100.1/32"]})
    assert {f"open {each} {CLIENT.replace('public', 'passing')}" for each in SCOPES} <= {*opened["steps"]}
    host.run(ZONE_GONE)
    assert not firewall({**LAB, "ports": [{"port": 9000}], "clients": ["198.51.100.1/32"]}, check_mode=True)["failed"]

    firewall({"owner": "demo", "state": "absent"})
    assert reached(host, BMC, NOT_BMC, SECOND_NODE) == []
    shown = host.run(CONFIGURATION).stdout
    assert '192.168.126.1"' not in shown
    assert "baremetal" not in shown
    assert "nm-demo-" not in shown
    assert host.run(FILES).stdout == files
    assert not firewall({"owner": "demo", "state": "absent"})["changed"]
