"""Links, addresses, neighbours and routes, as they are read of a real kernel, in a network namespace of its own."""

from __future__ import annotations

import ctypes
import ipaddress
import os
import socket
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Callable

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._observe import links, netlink, picture_links, routes
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import Address, Link, Neighbour
from ansible_collections.nometal.ipi.plugins.module_utils._observe.routes import Hop
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth import kernel

if TYPE_CHECKING:
    from collections.abc import Iterator

NEW_NETWORK = 0x40000000
LAN = """
ip link set lo up
ip link add lan type bridge forward_delay 300
ip link set lan mtu 1400 address 52:54:00:00:00:01 alias nometal.ipi up
ip link add near type veth peer name far
ip link set near master lan up
ip link set far up
"""


class Namespace:
    """A network of its own for one thread, and for what that starts."""

    def __init__(self, thread: ThreadPoolExecutor) -> None:
        self._thread = thread
        self.call(_leave_the_hosts)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._thread.submit(function, *arguments).result()

    def shell(self, script: str) -> None:
        self.call(lambda: subprocess.run(["sh", "-ec", script], check=True))


def _leave_the_hosts() -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(NEW_NETWORK):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@pytest.fixture
def host() -> Iterator[Namespace]:
    with ThreadPoolExecutor(1) as thread:
        yield Namespace(thread)


@pytest.fixture
def lan(host: Namespace) -> Namespace:
    host.shell(LAN)
    return host


def test_links(lan: Namespace) -> None:
    lan.shell("ip tuntap add vnet0 mode tap; ip tuntap add vpn0 mode tun; ip link set vnet0 master lan")
    found = lan.call(links.read_links)
    macs = {name: link.mac for name, link in found.items()}
    assert found == {
        "lo": Link("lo", mtu=65536, mac="00:00:00:00:00:00", hardware="loopback"),
        "lan": Link(
            "lan", "bridge", mtu=1400, mac="52:54:00:00:00:01", alias="nometal.ipi", forward_delay=300, answers=True
        ),
        "near": Link("near", "veth", mtu=1500, master="lan", peer="far", mac=macs["near"]),
        "far": Link("far", "veth", peer="near", mac=macs["far"]),
        "vnet0": Link("vnet0", "tun", mtu=1500, up=False, carrier=False, master="lan", mac=macs["vnet0"], tap=True),
        "vpn0": Link("vpn0", "tun", up=False, carrier=False, hardware="unknown"),
    }
    assert links.ports_of("lan", found) == ["near", "vnet0"]
    assert {name: picture_links.link_of(link)["kind"] for name, link in found.items() if name.startswith("v")} == {
        "vnet0": "tap",
        "vpn0": "tun",
    }


def test_a_bridge_on_which_the_host_answers_nobody(lan: Namespace) -> None:
    lan.call(kernel.silence, "lan")
    assert not lan.call(links.read_links)["lan"].answers


def test_the_other_end_in_another_namespace_is_no_peer(lan: Namespace) -> None:
    """Whose number is also that of a link here."""
    asleep = lan.call(lambda: subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; read _"], stdin=-1, stdout=-1))
    with asleep:
        asleep.stdout.readline()
        number = lan.call(socket.if_nametoindex, "far")
        lan.shell(f"ip link set far netns {asleep.pid}; ip link add other index {number} type bridge")
        found = lan.call(links.read_links)
        asleep.stdin.write(b"\n")
        asleep.stdin.flush()
    assert "other" in found
    assert found["near"].peer is None


def test_many_links_are_read_whole(host: Namespace) -> None:
    """In more than one message of the kernel's."""
    host.shell("for number in $(seq 150); do ip link add a$number type veth peer name b$number; done")
    found = host.call(links.read_links)
    names = {f"{end}{number}" for end in "ab" for number in range(1, 151)}
    assert names.issubset(found)
    assert found["a150"].peer == "b150"


def test_addresses(lan: Namespace) -> None:
    lan.shell("ip address add 192.168.126.1/24 dev lan; ip address add fd00:126::1/64 dev lan nodad")
    lan.shell("echo 600 >/proc/sys/net/ipv6/conf/far/dad_transmits")  # a second each: it stays tentative
    lan.shell("ip address add 10.1.0.1 peer 10.1.0.2/32 dev far; ip address add fd00:7::1/64 dev far")
    found = lan.call(links.read_addresses)
    own = [address for address in found if not address.interface.is_link_local and address.link != "lo"]
    assert own == [
        Address("lan", ipaddress.ip_interface("192.168.126.1/24")),
        Address("far", ipaddress.ip_interface("10.1.0.1/32")),
        *[address for address in own if address.interface.version == 6],
    ]
    by_address = {str(address.interface): address for address in found}
    assert by_address["fd00:126::1/64"] == Address("lan", ipaddress.ip_interface("fd00:126::1/64"))
    assert by_address["fd00:7::1/64"].tentative
    assert {address.link for address in found if address.interface.is_link_local} == {"lan", "near", "far"}


def test_neighbours(lan: Namespace) -> None:
    """Of one that did not answer there is no MAC address."""
    lan.shell("ip address add 192.168.126.1/24 dev lan; ip address add fd00:126::1/64 dev lan nodad")
    lan.shell("ip neighbour add 192.168.126.7 lladdr 52:54:00:00:00:07 dev lan nud stale")
    lan.shell("ip neighbour add fd00:126::7 lladdr 52:54:00:00:00:08 dev lan nud permanent")
    lan.shell("ip neighbour add 192.168.126.8 lladdr 52:54:00:00:00:09 dev lan nud noarp")
    lan.call(_send_to, "192.168.126.9")
    assert set(lan.call(links.read_neighbours)) == {
        Neighbour("192.168.126.7", "52:54:00:00:00:07", "lan"),
        Neighbour("fd00:126::7", "52:54:00:00:00:08", "lan"),
    }


def _send_to(address: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"", (address, 9))


def test_routes(lan: Namespace) -> None:
    lan.shell("""
    ip address add 192.168.126.1/24 dev lan; ip address add 10.1.0.1/24 dev far
    ip address add fd00:126::1/64 dev lan nodad
    ip route add 10.2.0.0/24 via 192.168.126.7 table 77
    ip route add 10.3.0.0/24 via inet6 fe80::7 dev lan
    ip route add blackhole 10.4.0.0/16
    ip route add 10.5.0.0/24 nexthop via 192.168.126.7 nexthop via 10.1.0.7
    """)
    found = {str(route): route for route in lan.call(routes.routes)}
    assert {text: (route.gateway, route.hops) for text, route in found.items() if text.startswith("10.")} == {
        "10.1.0.0/24 on far": (False, (Hop("far"),)),
        "10.1.0.1/32 on far": (False, (Hop("far"),)),
        "10.2.0.0/24 on lan": (True, (Hop("lan", "192.168.126.7"),)),
        "10.3.0.0/24 on lan": (False, (Hop("lan", "fe80::7"),)),
        "10.4.0.0/16 (rejected)": (False, ()),
        "10.5.0.0/24 on several links": (False, (Hop("lan", "192.168.126.7"), Hop("far", "10.1.0.7"))),
    }
    assert "fd00:126::/64 on lan" in found


def test_default_routes(lan: Namespace) -> None:
    """Of the main table, the one that is taken first."""
    lan.shell("""
    ip address add 192.168.126.1/24 dev lan; ip address add 10.1.0.1/24 dev far
    ip address add fd00:126::1/64 dev lan nodad
    ip route add default metric 50 nexthop via 192.168.126.8 nexthop via 10.1.0.8
    ip route add default metric 20 via 192.168.126.7
    ip route add default via 192.168.126.9 table 77
    ip -6 route add default via fd00:126::7 dev lan proto ra
    """)
    found = lan.call(routes.default_routes, socket.AF_INET)
    assert [(route.metric, route.hops) for route in found] == [
        (20, (Hop("lan", "192.168.126.7"),)),
        (50, (Hop("lan", "192.168.126.8"), Hop("far", "10.1.0.8"))),
    ]
    assert lan.call(routes.advertising_devices) == ["lan"]
    assert lan.call(picture_links.shown_uplinks) == [
        {"family": "ipv4", "device": "lan", "gateway": "192.168.126.7"},
        {"family": "ipv6", "device": "lan", "gateway": "fd00:126::7"},
    ]


def test_a_link_is_deleted_without_pyroute2(lan: Namespace) -> None:
    lan.call(kernel.delete, "near")
    assert {"near", "far"}.isdisjoint(lan.call(links.read_links))
    with pytest.raises(OperatorError, match="near has vanished while it was being changed: run this again"):
        lan.call(kernel.delete, "near")


def test_what_the_kernel_refuses_is_an_error(host: Namespace) -> None:
    with pytest.raises(OSError, match=r"the kernel says: Operation not supported|the kernel says: Invalid argument"):
        host.call(kernel.delete, "lo")
    with pytest.raises(OSError, match="the kernel says: Operation not supported"):
        host.call(netlink.dump, 9999, bytes(4))


def test_a_list_that_changed_meanwhile_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([[(netlink.INTERRUPTED, b"half"), (0, b"")], [(0, b"one"), (0, b"two"), (0, b"")]])
    monkeypatch.setattr(netlink, "_answers", lambda *_request: next(answers))
    assert netlink.dump(links.GET_LINKS, b"") == [b"one", b"two"]
    always = [(netlink.INTERRUPTED, b"half")]
    monkeypatch.setattr(netlink, "_answers", lambda *_request: always)
    assert netlink.dump(links.GET_LINKS, b"") == [b"half"]


def test_attributes_that_are_nested_or_of_odd_length_are_found() -> None:
    data = netlink.attribute(3, b"lan\0") + struct.pack("=HH3sx", 7, 0x8012, b"abc") + netlink.attribute(4, b"last")
    assert netlink.attributes(data) == {3: b"lan\0", 18: b"abc", 4: b"last"}


def test_reading_does_not_import_pyroute2() -> None:
    """It takes longer than all else of a run that changes nothing."""
    package = "ansible_collections.nometal.ipi.plugins.module_utils._resources.veth.port"
    program = f"import sys, {package} as port; port.kernel.refuse_without_pyroute2(); print('pyroute2' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": "playbooks/collections"}
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment)
    assert done.stdout == "False\n"
