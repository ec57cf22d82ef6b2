# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ipaddress

import pytest

from .conftest import LAB, NETWORK_UUID, Examine

LINK = "ip link add {0} type veth peer name far; ip link set {0} up; ip link set far up;"
LAN = LINK.format("lan") + "ip address add {0} dev lan nodad;"
BRIDGE = "ip link add {0} type bridge; ip link set {0} up;"
OUR_BRIDGE = BRIDGE.format("baremetal") + "ip link set baremetal alias nometal.ipi;"
UPLINK = "ip link add uplink master baremetal type vxlan id 7 local 127.0.0.1 dstport 4789;"


def network(name: str, uuid: str, bridge: str, address: str, directory: str = "/run/libvirt/network") -> str:
    return (
        f"echo \"<network><name>{name}</name><uuid>{uuid}</uuid><bridge name='{bridge}'/>"
        f"<ip address='{address}' netmask='255.255.255.0'/></network>\" > {directory}/{name}.xml;"
    )


OWN_NETWORK = network("demo", NETWORK_UUID, "demo-m", "192.168.126.1")
STOPPED = "/etc/libvirt/qemu/networks"


def test_an_empty_host_has_room(examine: Examine) -> None:
    answer = examine()
    for check in ("subnets", "bridges", "libvirt_names", "ports"):
        assert answer[check][0] == "ok", answer[check]


@pytest.mark.parametrize(
    ("setup", "status", "text"),
    [
        (LAN.format("192.168.126.7/24"), "blocker", "192.168.126.0/24 on lan"),
        (LAN.format("192.168.7.7/16"), "blocker", "192.168.0.0/16 on lan"),
        (LAN.format("fd00:126::7/64"), "blocker", "fd00:126::/64 on lan"),
        (LAN.format("10.9.0.7/24"), "ok", "all free"),
        (LAN.format("10.9.0.7/24") + "ip route add default via 10.9.0.1", "ok", "all free"),
        (LAN.format("10.9.0.7/24") + "ip route add 192.168.0.0/16 via 10.9.0.1", "warning", "192.168.0.0/16 on lan"),
        (LAN.format("10.9.0.7/24") + "ip route add 192.168.126.64/26 via 10.9.0.1 table 77", "blocker", "/26 on lan"),
        ("ip route add blackhole 192.168.126.0/24", "blocker", "rejected"),
        (BRIDGE.format("demo-m") + "ip address add 192.168.126.1/24 dev demo-m;" + OWN_NETWORK, "ok", "all free"),
        (network("theirs", "x", "virbr5", "192.168.126.1"), "blocker", "used by libvirt network theirs"),
        (network("theirs", "x", "virbr5", "192.168.126.1", STOPPED), "warning", "by stopped libvirt network theirs"),
        ("echo '<network' > /run/libvirt/network/x.xml", "warning", "could not be measured"),
    ],
)
def test_subnets(examine: Examine, setup: str, status: str, text: str) -> None:
    found = examine(setup)["subnets"]
    assert found[0] == status, found
    assert text in found[1]


@pytest.mark.parametrize(
    ("setup", "status", "text"),
    [
        (LINK.format("baremetal"), "blocker", "baremetal exists and is not a bridge"),
        (BRIDGE.format("demo-m"), "blocker", "demo-m exists and belongs to no libvirt network"),
        (BRIDGE.format("demo-m") + OWN_NETWORK, "ok", "owned by this lab"),
        (BRIDGE.format("baremetal"), "ok", "free"),
        (BRIDGE.format("baremetal") + LINK.format("lan") + "ip link set lan master baremetal", "blocker", "(lan)"),
        (
            BRIDGE.format("baremetal") + LINK.format("demo-veth") + "ip link set demo-veth master baremetal",
            "ok",
            "free",
        ),
        (network("theirs", "x", "baremetal", "10.1.1.1", STOPPED), "blocker", "belongs to libvirt network theirs"),
        (OUR_BRIDGE + UPLINK, "blocker", "baremetal has ports of others (uplink)"),
        (OUR_BRIDGE + LINK.format("lan") + "ip link set lan master baremetal", "warning", "links of others (lan)"),
    ],
)
def test_bridges(examine: Examine, setup: str, status: str, text: str) -> None:
    found = examine(setup)["bridges"]
    assert found[0] == status, found
    assert text in found[1]


@pytest.mark.parametrize(
    ("setup", "status", "text"),
    [
        ("", "ok", "no rules"),
        ("iptables -P FORWARD DROP;", "ok", "`policy drop` in table ip filter, chain FORWARD"),
        ("iptables-legacy -P INPUT DROP;", "warning", "`policy DROP` in table legacy filter, chain INPUT"),
        ("ip6tables-legacy -A FORWARD -j REJECT;", "warning", "reject-with icmp6-port-unreachable` in table legacy"),
    ],
)
def test_the_packet_filter(examine: Examine, setup: str, status: str, text: str) -> None:
    found = examine(setup)["packet_filter"]
    assert found[0] == status, found
    assert text in found[1]


def test_a_libvirt_network_of_the_same_name(examine: Examine) -> None:
    assert examine(network("demo", "x", "b", "10.1.1.1", STOPPED))["libvirt_names"][0] == "blocker"
    assert examine(network("demo", NETWORK_UUID, "b", "10.1.1.1", STOPPED))["libvirt_names"][0] == "ok"


EVERYWHERE = str(ipaddress.IPv4Address(0))
LISTEN = """python3 -c '
import socket, sys, time
s = socket.socket({family}, socket.SOCK_{kind})
{option}
s.bind(("{address}", {port}))
s.listen() if "{kind}" == "STREAM" else None
open("/run/listening", "w").close()
time.sleep(600)' {mark} & until [ -e /run/listening ]; do sleep 0.02; done
"""


def listener(address: str, port: int = 8000, kind: str = "STREAM", option: str = "", mark: str = "") -> str:
    family = "socket.AF_INET6" if ":" in address else "socket.AF_INET"
    return LISTEN.format(address=address, port=port, kind=kind, option=option, mark=mark, family=family)


ONLY_V6 = "s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)"


@pytest.mark.parametrize(
    ("setup", "status", "text"),
    [
        (listener(EVERYWHERE), "blocker", "192.168.126.1:8000/tcp by python"),
        (listener("::"), "blocker", "192.168.126.1:8000/tcp by python"),
        (listener("::", option=ONLY_V6), "ok", "free"),
        (listener("127.0.0.1"), "ok", "free"),
        (listener(EVERYWHERE, kind="DGRAM"), "ok", "free"),
        (listener(EVERYWHERE, mark="--unit nometal-bmc@demo"), "ok", "owned by this lab"),
        (listener(EVERYWHERE, mark="--unit nometal-bmc@other"), "blocker", "(pid "),
    ],
)
def test_ports(examine: Examine, setup: str, status: str, text: str) -> None:
    found = examine(setup)["ports"]
    assert found[0] == status, found
    assert text in found[1]


def test_datagram_and_ipv6_ports(examine: Examine) -> None:
    wanted = [
        {"address": "192.168.126.1", "port": 623, "protocol": "udp"},
        {"address": "fd00:126::1", "port": 8000, "protocol": "tcp"},
    ]
    busy = listener(EVERYWHERE, 623, "DGRAM") + "rm /run/listening;" + listener("::", option=ONLY_V6)
    assert examine(ports=wanted)["ports"] == ("ok", "2 requested: free or owned by this lab ")
    status, text = examine(busy, ports=wanted)["ports"]
    assert status == "blocker"
    assert "192.168.126.1:623/udp by python" in text
    assert "[fd00:126::1]:8000/tcp by python" in text


def test_another_name_server_on_all_addresses(examine: Examine) -> None:
    network = {**LAB["networks"][0], "addresses": [{"cidr": "192.168.126.0/24", "gateway": "192.168.126.1"}]}
    status, text = examine(listener(EVERYWHERE, 53, "DGRAM"), networks=[network], ports=[])["ports"]
    assert status == "blocker"
    assert "192.168.126.1:53/udp by python" in text
    own = listener(EVERYWHERE, 53, "DGRAM", mark="--conf-file=/var/lib/libvirt/dnsmasq/demo.conf")
    assert examine(own, networks=[network], ports=[])["ports"][0] == "ok"
