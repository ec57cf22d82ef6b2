"""The libvirt_bridge_net module on a real libvirtd, with real DHCP and DNS clients plugged into its bridge.

A client is a network namespace with one link, whose other end is a port of the bridge.
"""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from support import guest, private_libvirtd
from support.modules import answer_beside, run_beside
from support.waiting import wait_until

from ansible_collections.nometal.ipi.plugins.module_utils._core.network_hook import DISPATCHER, DISPATCHER_TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.private_libvirtd import PrivateLibvirtd

pytestmark = pytest.mark.long
ONE, TWO, OTHER = "52:54:00:00:00:01", "52:54:00:00:00:02", "02:00:00:00:00:03"
DUID = "00:03:00:01:"
NETWORK: dict[str, Any] = {
    "name": "nometal-demo",
    "owner": "demo",
    "bridge": "nm-demo",
    "domain": "demo.test",
    "addresses": [
        {"cidr": "192.168.126.0/24", "gateway": "192.168.126.1", "prefix": 24, "family": "ipv4"},
        {"cidr": "fd00:126::/64", "gateway": "fd00:126::1", "prefix": 64, "family": "ipv6"},
    ],
    "dhcp": {
        "ranges": [
            {"start": "192.168.126.220", "end": "192.168.126.222"},
            {"start": "fd00:126::220", "end": "fd00:126::222"},
        ],
        "reservations": [
            {"name": "one", "mac": ONE, "duid": DUID + ONE, "ips": ["192.168.126.20", "fd00:126::20"]},
            {"name": "two", "mac": TWO, "duid": DUID + TWO, "ips": ["192.168.126.21", "fd00:126::21"]},
        ],
        "pools": [
            {
                "mac_prefix": "52:54:00",
                "start": "192.168.126.10",
                "end": "192.168.126.11",
                "static_routes": [{"to": "10.0.0.0/19", "via": "192.168.126.2"}],
            },
            {"mac_prefix": "52:54:00", "start": "fd00:126::10", "end": "fd00:126::11"},
        ],
    },
    "dns": {
        "hosts": [
            {"ip": "192.168.126.5", "names": ["api.demo.test", "api-int.demo.test"]},
            {"ip": "fd00:126::5", "names": ["api.demo.test"]},
        ],
        "wildcards": [{"domain": "apps.demo.test", "ip": "192.168.126.6"}],
        "records": {
            "srv": [
                {"service": "ldap", "protocol": "tcp", "domain": "demo.test", "target": "one.demo.test", "port": 389}
            ],
            "txt": [{"name": "note.demo.test", "value": 'a, "b" # c'}],
        },
    },
    "ntp_servers": ["192.168.126.1", "fd00:126::1"],
}
ABSENT = {"name": "nometal-demo", "owner": "demo", "state": "absent"}
MAKING = ["define nometal-demo", "install hook of nometal-demo", "start nometal-demo", "autostart nometal-demo"]
REMOVING = ["destroy nometal-demo", "remove hook of nometal-demo", "undefine nometal-demo"]
RESTARTING = ["destroy nometal-demo", "start nometal-demo", "reconnect ports of nometal-demo"]
FORWARDING = [f"net.{ip}.conf.{link}.forwarding" for ip in ("ipv4", "ipv6") for link in ("all", "nm-demo")]
# A neighbour asks for an address by either DHCP, and for one that it has from elsewhere.
ASKING = """
import socket, struct, sys, time
while "eth0" not in open("/proc/net/if_inet6").read():  # its address comes with the carrier
    time.sleep(0.01)
mac = bytes.fromhex(sys.argv[1].replace(":", ""))
v4 = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
v4.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
v4.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
v4.bind(("", 68))
v6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
v6.bind(("::", 546, 0, socket.if_nametoindex("eth0")))
header = struct.pack("!4BIHH16x16s192x", 1, 1, 6, 0, 7, 0, 0x8000, mac) + bytes.fromhex("63825363")
discover, reboot = bytes.fromhex("350101ff"), bytes.fromhex("350103" + "3204c6336407" + "ff")
for message in (discover, reboot):
    v4.sendto(header + message + bytes(60), ("255.255.255.255", 67))
duid = bytes.fromhex("00030001") + mac
options = struct.pack("!HH", 1, len(duid)) + duid + struct.pack("!HH3I", 3, 12, 1, 0, 0)
v6.sendto(bytes.fromhex("01000007") + options, ("ff02::1:2", 547, 0, socket.if_nametoindex("eth0")))
v6.sendto(bytes.fromhex("0b000008") + options[: 4 + len(duid)], ("ff02::1:2", 547, 0, socket.if_nametoindex("eth0")))
print("asked", flush=True)
sys.stdin.readline()
for client in (v4, v6):
    client.setblocking(False)
    try:
        print("answered:", client.recv(1500))
    except BlockingIOError:
        pass
"""
# Whoever has no address yet is answered by an advertisement to all.
SOLICITING = """
import socket, sys
solicit = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
solicit.bind(("eth0", 0))
mac = sys.argv[1].replace(":", "")
pseudo = bytes(16) + bytes.fromhex("ff02" + "00" * 13 + "02") + bytes.fromhex("000000080000003a")
def checksum(data):
    total = sum(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
    total = (total & 0xFFFF) + (total >> 16)
    return (~((total & 0xFFFF) + (total >> 16)) & 0xFFFF).to_bytes(2, "big")
body = bytes.fromhex("8500") + checksum(pseudo + bytes.fromhex("8500000000000000")) + bytes(4)
packet = bytes.fromhex("6000000000083aff") + bytes(16) + pseudo[16:32] + body
solicit.send(bytes.fromhex("333300000002" + mac + "86dd") + packet)
"""
DHCLIENT_SCRIPT = """#!/bin/sh
case "$reason" in BOUND* | REBOOT* | RENEW* | REBIND*) ;; *) exit 0 ;; esac
if [ -n "$new_ip_address" ]; then
  ip -4 address flush dev eth0
  ip address add "$new_ip_address/24" dev eth0
fi
env >$lease
"""


@pytest.fixture(scope="module")
def libvirtd() -> Iterator[PrivateLibvirtd]:
    with private_libvirtd.start() as started:
        dispatcher = started.path(str(DISPATCHER))
        dispatcher.parent.mkdir(parents=True)
        dispatcher.write_text(DISPATCHER_TEXT)
        dispatcher.chmod(0o755)
        started.path("/run/libvirt/dhclient").write_text(DHCLIENT_SCRIPT)
        started.path("/run/libvirt/dhclient").chmod(0o755)
        started.restart()
        yield started


@pytest.fixture
def made(libvirtd: PrivateLibvirtd) -> Iterator[dict[str, Any]]:
    """The network, and a copy of its arguments to be changed."""
    done = run(libvirtd, NETWORK)
    assert not done.get("failed"), done["msg"]
    yield copy.deepcopy(NETWORK)
    run(libvirtd, {**ABSENT, "adopt": True})


def run(libvirtd: PrivateLibvirtd, arguments: dict[str, Any], *, check_mode: bool = False) -> dict[str, Any]:
    return answer_beside(libvirtd, "libvirt_bridge_net", arguments, check_mode=check_mode)


@dataclass
class Client:
    libvirtd: PrivateLibvirtd
    name: str
    pid: str

    def command(self, *words: str) -> list[str]:
        return self.libvirtd.command(["nsenter", "--net", "--target", self.pid, *words])

    def run(self, *words: str, check: bool = True) -> str:
        done = subprocess.run(self.command(*words), check=False, capture_output=True, text=True, timeout=60)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def lease(self, family: int = 4) -> dict[str, str]:
        """What dhclient, asked afresh, is given; empty if nothing within some seconds."""
        files = f"/run/libvirt/{self.name}{family}"
        for kind in ("env", "leases"):
            self.libvirtd.path(f"{files}.{kind}").unlink(missing_ok=True)
        asked = ["timeout", "8", "dhclient", f"-{family}", *(["-D", "LL"] if family == 6 else []), "-1", "-v"]
        kept = ["-lf", f"{files}.leases", "-pf", f"{files}.pid", "-e", f"lease={files}.env"]
        told = self.run(*asked, *kept, "-sf", "/run/libvirt/dhclient", "eth0", check=False)
        self.run("pkill", "--pidfile", f"{files}.pid", "--", "dhclient", check=False)
        env = self.libvirtd.path(f"{files}.env")
        assert env.exists(), told
        return dict(line.split("=", 1) for line in env.read_text().splitlines())

    def address(self, family: int = 4) -> str:
        return self.lease(family)["new_ip_address" if family == 4 else "new_ip6_address"]

    def dig(self, *question: str) -> list[str]:
        return self.run("dig", "+short", "+time=2", "+tries=1", "@192.168.126.1", *question).split("\n")[:-1]


@contextmanager
def plugged_in(libvirtd: PrivateLibvirtd, name: str, mac: str, bridge: str = "nm-demo") -> Iterator[Client]:
    keeper = subprocess.Popen(
        libvirtd.command(["unshare", "--net", "sh", "-c", "echo $$; exec sleep infinity"]),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert keeper.stdout
    client = Client(libvirtd, name, keeper.stdout.readline().strip())
    words = f"link add p-{name} type veth peer name eth0 address {mac} netns {client.pid}"
    libvirtd.run(["ip", *words.split()])
    libvirtd.run(["ip", "link", "set", f"p-{name}", "master", bridge, "up"])
    client.run("sysctl", "-qw", "net.ipv6.conf.eth0.accept_dad=0")
    client.run("ip", "link", "set", "lo", "up")
    client.run("ip", "link", "set", "eth0", "up")
    try:
        yield client
    finally:
        libvirtd.run(["ip", "link", "delete", f"p-{name}"])
        keeper.kill()
        keeper.wait()


@contextmanager
def connection(server: Client, client: Client, address: str) -> Iterator[subprocess.Popen[str]]:
    """A TCP connection, whose other end sends everything back."""
    echo = subprocess.Popen(server.command("socat", "TCP-LISTEN:5000,reuseaddr", "EXEC:cat"))
    words = ["socat", "-", f"TCP:{address}:5000,retry=50,interval=0.1"]
    talk = subprocess.Popen(client.command(*words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    try:
        yield talk
    finally:
        _end(talk, echo)


def _end(*processes: subprocess.Popen[Any]) -> None:
    for process in processes:
        process.kill()
        process.wait()


def says(talk: subprocess.Popen[str], word: str) -> str:
    assert talk.stdin
    assert talk.stdout
    talk.stdin.write(f"{word}\n")
    return talk.stdout.readline().strip()


def virsh(libvirtd: PrivateLibvirtd, *words: str, text: str | None = None) -> str:
    return libvirtd.run(["virsh", *words], input=text).stdout


def test_acceptance(libvirtd: PrivateLibvirtd) -> None:
    def module(arguments: dict[str, Any], **options: Any) -> dict[str, Any]:
        done = run_beside(libvirtd, "libvirt_bridge_net", arguments, **options)
        assert not done["failed"], done["msg"]
        return done

    foreseen = module(NETWORK, check_mode=True)
    assert foreseen["steps"] == MAKING
    assert "nometal-demo" not in virsh(libvirtd, "net-list", "--all")
    made = module(NETWORK)
    assert made["steps"] == MAKING
    assert made["shown_diff"] == foreseen["shown_diff"] != ""
    _again(module, NETWORK)

    changed = copy.deepcopy(NETWORK)
    changed["dns"]["hosts"].append({"ip": "192.168.126.9", "names": ["printer.demo.test"]})
    changed["dhcp"]["reservations"].pop()
    steps = ["define nometal-demo", "update reservations", "update hosts"]
    foreseen = module(changed, check_mode=True)
    assert foreseen["steps"] == steps
    assert "printer" not in virsh(libvirtd, "net-dumpxml", "nometal-demo")
    done = module(changed)
    assert done["steps"] == steps
    assert done["shown_diff"] == foreseen["shown_diff"]
    assert '+          "printer.demo.test"' in done["shown_diff"]
    assert f'-        "id": "{TWO}",' in done["shown_diff"]
    _again(module, changed)

    assert module(ABSENT, check_mode=True)["steps"] == REMOVING
    assert "nometal-demo" in virsh(libvirtd, "net-list")
    assert module(ABSENT)["steps"] == REMOVING
    assert "nometal-demo" not in virsh(libvirtd, "net-list", "--all")
    assert list(libvirtd.path("/etc/libvirt/hooks").glob("nometal.d/*")) == []
    _again(module, ABSENT)


def _again(module: Any, arguments: dict[str, Any]) -> None:
    for check_mode in (True, False):
        again = module(arguments, check_mode=check_mode)
        assert not again["changed"]
        assert again["shown_diff"] == ""


def test_everybody_gets_the_address_and_the_names_they_should(libvirtd: PrivateLibvirtd, made: dict[str, Any]) -> None:
    with plugged_in(libvirtd, "one", ONE) as client:
        lease = client.lease()
        assert lease["new_ip_address"] == "192.168.126.20"
        assert lease["new_ntp_servers"] == "192.168.126.1"
        assert lease["new_interface_mtu"] == "1500"
        assert client.address(6) == "fd00:126::20"
        assert client.dig("api-int.demo.test") == ["192.168.126.5"]
        assert client.dig("api.demo.test", "AAAA") == ["fd00:126::5"]
        assert client.dig("-x", "192.168.126.5") == ["api.demo.test."]
        assert client.dig("-x", "fd00:126::5") == ["api.demo.test."]
        assert client.dig("console.apps.demo.test") == ["192.168.126.6"]
        assert "status: NOERROR" in client.run("dig", "@192.168.126.1", "console.apps.demo.test", "AAAA")
        assert client.dig("console.apps.demo.test", "AAAA") == []
        assert client.dig("_ldap._tcp.demo.test", "SRV") == ["0 0 389 one.demo.test."]
        assert client.dig("note.demo.test", "TXT") == [r'"a, \"b\" # c"']
    with plugged_in(libvirtd, "nobody", "52:54:00:99:00:01") as client:
        lease = client.lease()
        assert lease["new_ip_address"] in ("192.168.126.10", "192.168.126.11")
        # dhclient writes destinations as the option has them, and knows no more of it.
        routes = lease.get("new_rfc3442_classless_static_routes", "")
        assert routes == "19 10 0 0 192 168 126 2 0 192 168 126 1"
        assert client.address(6) in ("fd00:126::10", "fd00:126::11")
    with plugged_in(libvirtd, "other", OTHER) as client:
        assert re.fullmatch(r"192\.168\.126\.22[012]", client.address())
        assert re.fullmatch(r"fd00:126::22[012]", client.address(6))


@contextmanager
def shared_lan(libvirtd: PrivateLibvirtd) -> Iterator[dict[str, Any]]:
    """A bridge of the host's, joined to a network that serves known machines only, as role lab_network does it."""
    dhcp = {"reservations": NETWORK["dhcp"]["reservations"], "known_only": True}
    network = {**NETWORK, "dhcp": dhcp}
    lab = {"owner": "demo", "networks": [{**network, "forward": "nat"}], "bridges": ["office"]}
    words: dict[str, Any] = {"name": "nmn-demo", "a": {"name": "nmn-demo", "bridge": "nm-demo"}, "shared": True}
    pair = {**words, "b": {"name": "nmb-demo", "bridge": "office"}}
    libvirtd.run(["ip", "link", "add", "office", "type", "bridge"])
    libvirtd.run(["ip", "link", "set", "office", "up"])
    assert run(libvirtd, network)["steps"] == MAKING
    for module, arguments in (("lab_firewall", lab), ("veth_pair", pair)):
        done = run_beside(libvirtd, module, arguments)
        assert not done["failed"], done
        assert not run_beside(libvirtd, module, arguments)["changed"]
    try:
        yield network
    finally:
        for module, arguments in (("veth_pair", pair), ("lab_firewall", {"owner": "demo"})):
            run_beside(libvirtd, module, {**arguments, "state": "absent"})
        run(libvirtd, ABSENT)
        libvirtd.run(["ip", "link", "delete", "office"])


def advertisements(client: Client) -> int:
    counters = dict(line.split() for line in client.run("cat", "/proc/net/snmp6").splitlines())
    return int(counters["Icmp6InRouterAdvertisements"])


def wait_for_default_route(client: Client) -> None:
    """The kernel solicits by itself when a link comes up, and forgets the route that it had when the link went down."""
    wait_until("it has a default route", lambda: "default via fe80::" in client.run("ip", "-6", "route"))


def test_on_a_shared_lan_neighbours_get_neither_leases_nor_refusals_nor_advertisements(
    libvirtd: PrivateLibvirtd,
) -> None:
    with (
        shared_lan(libvirtd) as network,
        plugged_in(libvirtd, "next", "52:54:00:99:00:01", "office") as neighbour,
        subprocess.Popen(
            neighbour.command(sys.executable, "-c", ASKING, "52:54:00:99:00:01"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as asking,
    ):
        assert asking.stdout
        assert asking.stdout.readline() == "asked\n"
        # dnsmasq takes one after the other: what it answers the second one comes after what the first one gets.
        with plugged_in(libvirtd, "one", ONE, "office") as one:
            assert one.address() == "192.168.126.20"
            assert one.address(6) == "fd00:126::20"
            one.run(sys.executable, "-c", SOLICITING, ONE)
            one.run("ip", "link", "set", "eth0", "down")
            one.run("ip", "link", "set", "eth0", "up")
            wait_for_default_route(one)
        # Nor does the host answer there for its address on the LAN, for which it answers by its own bridge.
        assert libvirtd.run(["cat", "/proc/sys/net/ipv4/conf/nm-demo/arp_ignore"]).stdout == "1\n"
        assert asking.communicate("\n")[0] == ""
        assert advertisements(neighbour) == 0
        assert "default" not in neighbour.run("ip", "-6", "route")
        assert not run(libvirtd, network)["changed"]


def test_reservations_get_their_address_however_small_the_ranges_are(libvirtd: PrivateLibvirtd) -> None:
    """libvirt by itself would allow three leases here, and the fourth machine would get nothing."""
    arguments = {**NETWORK, "addresses": NETWORK["addresses"][:1], "dhcp": _reserved(5), "ntp_servers": []}
    arguments["dhcp"]["ranges"] = NETWORK["dhcp"]["ranges"][:1]
    made = run(libvirtd, arguments)
    assert made["steps"] == MAKING, made
    for number in range(5):
        with plugged_in(libvirtd, "many", f"52:54:00:01:00:{number:02x}") as client:
            assert client.address() == f"192.168.126.{number + 50}"
    run(libvirtd, ABSENT)


def _reserved(count: int) -> dict[str, Any]:
    machines = range(count)
    return {
        "reservations": [
            {"name": f"n{at}", "duid": None, "mac": f"52:54:00:01:00:{at:02x}", "ips": [f"192.168.126.{at + 50}"]}
            for at in machines
        ]
    }


def test_stale_leases_do_not_keep_a_reservation_from_its_address(
    libvirtd: PrivateLibvirtd, made: dict[str, Any]
) -> None:
    with plugged_in(libvirtd, "one", ONE) as one, plugged_in(libvirtd, "two", TWO) as two:
        assert [one.address(), two.address(), one.address(6), two.address(6)] == [
            "192.168.126.20", "192.168.126.21", "fd00:126::20", "fd00:126::21",
        ]  # fmt: skip
        first, second = made["dhcp"]["reservations"]
        first["ips"], second["ips"] = second["ips"], first["ips"]
        foreseen = run(libvirtd, made, check_mode=True)
        done = run(libvirtd, made)
        assert "msg" not in done, done["msg"]
        assert done["steps"] == foreseen["steps"] == [
            "define nometal-demo", "update reservations",
            "release 192.168.126.20, 192.168.126.21, fd00:126::20, fd00:126::21",
        ]  # fmt: skip
        assert not run(libvirtd, made)["changed"]
        assert [one.address(), two.address(), one.address(6), two.address(6)] == [
            "192.168.126.21", "192.168.126.20", "fd00:126::21", "fd00:126::20",
        ]  # fmt: skip
        assert not run(libvirtd, made)["changed"]


def test_leases_of_a_former_subnet_do_not_keep_a_lab_from_its_new_one(
    libvirtd: PrivateLibvirtd, made: dict[str, Any]
) -> None:
    with plugged_in(libvirtd, "one", ONE) as one, plugged_in(libvirtd, "other", OTHER) as other:
        former = [client.address(family) for client in (one, other) for family in (4, 6)]
        moved = json.loads(json.dumps(made).replace("192.168.126.", "192.168.150.").replace("fd00:126:", "fd00:150:"))
        moved["restart"] = "allowed"
        foreseen = run(libvirtd, moved, check_mode=True)
        done = run(libvirtd, moved)
        assert "msg" not in done, done["msg"]
        forget = f"forget {', '.join(sorted(former))}"
        steps = ["define nometal-demo", *RESTARTING]
        assert done["steps"] == foreseen["steps"] == [*steps[:-2], forget, *steps[-2:]]
        assert not run(libvirtd, moved)["changed"]
        assert "126" not in virsh(libvirtd, "net-dhcp-leases", "nometal-demo")
        assert "192.168.150.20" in one.lease(4)["new_ip_address"]
        assert one.address(6) == "fd00:150::20"

        # Somebody else has restarted it meanwhile, and it knows former leases still.
        status = libvirtd.path("/var/lib/libvirt/dnsmasq/nm-demo.status")
        status.write_text(status.read_text().replace("192.168.150.", "192.168.126."))
        for action in ("net-destroy", "net-start"):
            virsh(libvirtd, action, "nometal-demo")
        libvirtd.run(["ip", "link", "set", "p-one", "master", "nm-demo"])  # no guest of libvirt's
        assert "192.168.126.20" in virsh(libvirtd, "net-dhcp-leases", "nometal-demo")
        assert not run(libvirtd, moved)["changed"]
        assert one.address() == "192.168.150.20"


def test_a_connection_survives_a_live_change_and_an_allowed_restart(
    libvirtd: PrivateLibvirtd, made: dict[str, Any]
) -> None:
    with plugged_in(libvirtd, "one", ONE) as one, plugged_in(libvirtd, "two", TWO) as two:
        one.address()
        two.address()
        with connection(one, two, "192.168.126.20") as talk:
            assert says(talk, "before") == "before"
            made["dhcp"]["ranges"][0]["end"] = "192.168.126.229"
            made["dns"]["records"]["txt"].append({"name": "more.demo.test", "value": "more"})
            assert run(libvirtd, made)["steps"] == ["define nometal-demo", "update ranges", "update txt"]
            assert says(talk, "after a live change") == "after a live change"
            assert one.dig("more.demo.test", "TXT") == ['"more"']

            before = virsh(libvirtd, "net-dumpxml", "--inactive", "nometal-demo")
            made.update(mtu=1400, forward="route")
            for check_mode in (True, False):
                refused = run(libvirtd, made, check_mode=check_mode)
                assert "only a restart can change forward from nat to route; mtu from 1500 to 1400" in refused["msg"]
            assert virsh(libvirtd, "net-dumpxml", "--inactive", "nometal-demo") == before

            made["restart"] = "allowed"
            assert run(libvirtd, made)["steps"] == ["define nometal-demo", *RESTARTING]
            assert says(talk, "after a restart") == "after a restart"
            assert not run(libvirtd, made)["changed"]
            assert one.address() == "192.168.126.20"
            assert "mtu 1400" in libvirtd.run(["ip", "link", "show", "nm-demo"]).stdout

            # Killed after it had stopped the network: the next run knows what was plugged in.
            libvirtd.run(
                ["sh", "-c", 'mkdir -p /run/nometal; echo \'["p-one", "p-two"]\' >/run/nometal/nometal-demo.ports']
            )
            virsh(libvirtd, "net-destroy", "nometal-demo")
            assert run(libvirtd, made)["steps"] == ["start nometal-demo", "reconnect ports of nometal-demo"]
            assert says(talk, "after an interruption") == "after an interruption"
            assert not run(libvirtd, made)["changed"]


def test_a_running_guest_is_back_whoever_restarts_the_network(libvirtd: PrivateLibvirtd, made: dict[str, Any]) -> None:
    running = guest.start(libvirtd, name="one", mac=ONE, network="nometal-demo")
    assert running.lease4.address == "192.168.126.20"
    virsh(libvirtd, "net-destroy", "nometal-demo")
    virsh(libvirtd, "net-start", "nometal-demo")
    assert running.reaches("192.168.126.1")
    made.update(mtu=1400, restart="allowed")
    assert run(libvirtd, made)["steps"] == ["define nometal-demo", *RESTARTING]
    assert running.reaches("192.168.126.1")

    # A hook of somebody's that fails once, as dnsmasq or a firewall might.
    hook = libvirtd.path("/etc/libvirt/hooks/network.d/stubborn")
    hook.write_text('#!/bin/sh\n[ "$2" != start ] || rm "$0"\n[ "$2" != start ]\n', encoding="utf-8")
    hook.chmod(0o755)
    made.update(mtu=1300)
    assert "cannot run as declared, so it runs as before" in run(libvirtd, made)["msg"]
    assert "<mtu size='1400'/>" in virsh(libvirtd, "net-dumpxml", "nometal-demo")
    assert running.reaches("192.168.126.1")
    made.update(mtu=1400)
    assert not run(libvirtd, made)["changed"]
    running.stop()


def test_what_was_changed_behind_its_back_is_repaired_and_the_rest_left_alone(
    libvirtd: PrivateLibvirtd, made: dict[str, Any]
) -> None:
    host = "<host ip='192.168.126.99'><hostname>stray</hostname></host>"
    virsh(libvirtd, "net-update", "nometal-demo", "add", "dns-host", host, "--live")
    assert run(libvirtd, made)["steps"] == ["update hosts"]
    virsh(libvirtd, "net-update", "nometal-demo", "add", "dns-host", host, "--config")
    virsh(libvirtd, "net-autostart", "--disable", "nometal-demo")
    libvirtd.path("/etc/libvirt/hooks/nometal.d/nometal-demo.ports").unlink()
    repaired = run(libvirtd, made)["steps"]
    assert repaired == ["define nometal-demo", "install hook of nometal-demo", "autostart nometal-demo"]

    text = virsh(libvirtd, "net-dumpxml", "--inactive", "nometal-demo")
    theirs = "<dnsmasq:option value='cache-size=77'/>"
    text = text.replace("<dnsmasq:options>", f"<dnsmasq:options>{theirs}").replace(
        "</network>", "<portgroup name='theirs'/></network>"
    )
    virsh(libvirtd, "net-define", "/dev/stdin", text=text)
    assert not run(libvirtd, made)["changed"]
    made["dns"]["hosts"].pop()
    run(libvirtd, made)
    text = virsh(libvirtd, "net-dumpxml", "--inactive", "nometal-demo")
    assert "cache-size=77" in text
    assert "<portgroup name='theirs'" in text

    virsh(libvirtd, "net-destroy", "nometal-demo")
    virsh(libvirtd, "net-undefine", "nometal-demo")
    assert run(libvirtd, made, check_mode=True)["steps"] == [step for step in MAKING if "hook" not in step]
    assert run(libvirtd, ABSENT)["steps"] == ["remove hook of nometal-demo"]


def test_what_a_running_network_has_lost_is_mended_while_it_runs(
    libvirtd: PrivateLibvirtd, made: dict[str, Any]
) -> None:
    mending = ["bring up nm-demo", "add address fd00:126::1/64"]  # which went when the bridge went down
    ipv4, dnsmasq = "add address 192.168.126.1/24", "start dnsmasq of nometal-demo"
    forwarding = "forward packets of nometal-demo"
    pid = "$(cat /run/libvirt/network/nometal-demo.pid)"
    kill = f"pid={pid}; kill $pid; while kill -0 $pid 2>/dev/null; do sleep 0.05; done"
    with plugged_in(libvirtd, "one", ONE) as client:
        for breaking, steps in (
            ("ip link set nm-demo down", mending),
            ("ip address delete 192.168.126.1/24 dev nm-demo", [ipv4]),
            (kill, [dnsmasq]),
            (
                f"ip address flush dev nm-demo; ip link set nm-demo down; {kill}",
                [mending[0], ipv4, mending[1], dnsmasq],
            ),
            ("sysctl -qw net.ipv4.ip_forward=0", [forwarding]),
            ("sysctl -qw net.ipv6.conf.all.forwarding=0", [forwarding]),
            ("sysctl -qw net.ipv4.conf.nm-demo.forwarding=0 net.ipv6.conf.nm-demo.forwarding=0", [forwarding]),
            ("ip link delete nm-demo", RESTARTING),
        ):
            libvirtd.run(["sh", "-c", breaking])
            foreseen = run(libvirtd, made, check_mode=True)["steps"]
            assert foreseen == steps
            assert run(libvirtd, made)["steps"] == foreseen
            assert not run(libvirtd, made)["changed"]
            assert forwarding_of(libvirtd) == {"1"}
            libvirtd.run(["ip", "link", "set", "p-one", "master", "nm-demo"])  # no guest of libvirt's
            assert client.address() == "192.168.126.20"
            assert client.dig("api.demo.test") == ["192.168.126.5"]
            if len(steps) > len(mending):
                assert client.address(6) == "fd00:126::20"
    assert "dnsmasq-starts" not in virsh(libvirtd, "net-dumpxml", "nometal-demo")

    pid_file = libvirtd.path("/run/libvirt/network/nometal-demo.pid")
    pid = pid_file.read_text()
    pid_file.write_text("1\n")
    assert "(pid 1) for it and end that: restart libvirtd" in run(libvirtd, made)["msg"]
    pid_file.write_text(pid)
    assert not run(libvirtd, made)["changed"]


def forwarding_of(libvirtd: PrivateLibvirtd) -> set[str]:
    shown = libvirtd.run(["sysctl", "-n", "net.ipv4.ip_forward", *FORWARDING]).stdout
    return set(shown.split())


def test_a_network_that_passes_nothing_on_needs_no_forwarding(libvirtd: PrivateLibvirtd, made: dict[str, Any]) -> None:
    made.update(forward="isolated", restart="allowed")
    run(libvirtd, made)
    libvirtd.run(["sysctl", "-qw", "net.ipv4.ip_forward=0", "net.ipv6.conf.all.forwarding=0"])
    assert not run(libvirtd, made)["changed"]
    assert forwarding_of(libvirtd) == {"0"}

    # Only for the families that it has; and the host's IPv6 routes do not go for it.
    made.update(forward="route")
    assert "start nometal-demo" in run(libvirtd, made)["steps"]
    libvirtd.run(["sysctl", "-qw", "net.ipv6.conf.all.forwarding=0"])
    learnt = "ip link add ra type bridge; ip link set ra up; ip -6 route add fd00:99::/64 dev ra proto ra"
    libvirtd.run(["sh", "-ec", f"{learnt}; sysctl -qw net.ipv6.conf.ra.accept_ra=1"])
    assert "routes from router advertisements on ra and would lose them" in run(libvirtd, made)["msg"]
    libvirtd.run(["sysctl", "-qw", "net.ipv6.conf.ra.accept_ra=2"])
    assert run(libvirtd, made)["steps"] == ["forward packets of nometal-demo"]
    libvirtd.run(["ip", "link", "delete", "ra"])


def test_its_rules_are_back_in_the_packet_filter_whoever_has_flushed_it(
    libvirtd: PrivateLibvirtd, made: dict[str, Any]
) -> None:
    restoring = ["restore packet filter rules of nometal-demo"]
    before = virsh(libvirtd, "net-list", "--all")
    for flushing in (
        "nft flush ruleset",
        "iptables -F",
        "ip6tables -F LIBVIRT_INP",
        "iptables -t nat -F LIBVIRT_PRT",
    ):
        libvirtd.run(["sh", "-c", flushing])
        assert run(libvirtd, made, check_mode=True)["steps"] == restoring
        assert run(libvirtd, made)["steps"] == restoring
        assert not run(libvirtd, made)["changed"]
    assert virsh(libvirtd, "net-list", "--all") == before
    # libvirt by itself starts no network then.
    virsh(libvirtd, "net-destroy", "nometal-demo")
    libvirtd.run(["nft", "flush", "ruleset"])
    assert run(libvirtd, made)["steps"] == ["start nometal-demo"]
    assert not run(libvirtd, made)["changed"]
    with plugged_in(libvirtd, "one", ONE) as client:
        assert client.address() == "192.168.126.20"


def test_the_host_can_use_its_ipv6_address_while_nothing_is_plugged_in(
    libvirtd: PrivateLibvirtd, made: dict[str, Any]
) -> None:
    ask = ["dig", "+short", "+tcp", "+time=2", "+tries=2", "@fd00:126::1", "api.demo.test", "AAAA"]

    def answers() -> bool:
        tentative = libvirtd.run(["ip", "address", "show", "dev", "nm-demo", "scope", "global", "tentative"]).stdout
        return "inet6" not in tentative and libvirtd.run(ask, check=False).stdout == "fd00:126::5\n"

    assert answers()
    virsh(libvirtd, "net-destroy", "nometal-demo")
    virsh(libvirtd, "net-start", "nometal-demo")
    assert answers()
    assert not run(libvirtd, made)["changed"]

    for change in ("delete", "add"):
        libvirtd.run(["ip", "address", change, "fd00:126::1/64", "dev", "nm-demo"])
    assert not answers()
    foreseen = run(libvirtd, made, check_mode=True)["steps"]
    assert run(libvirtd, made)["steps"] == foreseen == ["add address fd00:126::1/64"]
    assert answers()

    dispatcher = libvirtd.path(str(DISPATCHER))
    dispatcher.chmod(0o644)
    virsh(libvirtd, "net-destroy", "nometal-demo")
    assert run(libvirtd, made)["steps"] == ["start nometal-demo"]
    dispatcher.chmod(0o755)
    assert answers()
    assert not run(libvirtd, made)["changed"]


def test_what_is_not_ours_is_neither_changed_nor_removed_unless_it_is_adopted(libvirtd: PrivateLibvirtd) -> None:
    theirs = (
        "<network><name>nometal-demo</name><bridge name='nm-demo'/><ip address='192.168.9.1' prefix='24'/></network>"
    )
    virsh(libvirtd, "net-define", "/dev/stdin", text=theirs)
    for arguments in (NETWORK, ABSENT):
        assert "is owned by others, not by demo" in run(libvirtd, arguments)["msg"]
    adopting = {**NETWORK, "adopt": True}
    assert run(libvirtd, adopting)["steps"] == MAKING
    assert not run(libvirtd, NETWORK)["changed"]
    assert "is owned by demo, not by another" in run(libvirtd, {**ABSENT, "owner": "another"})["msg"]
    assert run(libvirtd, {**ABSENT, "owner": "another", "adopt": True})["steps"] == REMOVING


def test_what_stands_in_the_way_on_the_host_is_named_before_anything_is_changed(libvirtd: PrivateLibvirtd) -> None:
    def refusal(**changed: Any) -> str:
        refused = run(libvirtd, {**NETWORK, **changed})
        assert refused["failed"]
        assert "nometal-demo" not in virsh(libvirtd, "net-list", "--all")
        return str(refused["msg"])

    virsh(libvirtd, "net-define", "/dev/stdin", text="<network><name>theirs</name><bridge name='nm-demo'/></network>")
    uuid = virsh(libvirtd, "net-uuid", "theirs").strip()
    assert "bridge nm-demo is network theirs's" in refusal()
    assert "is network theirs's: remove that one first" in refusal(uuid=uuid, bridge="other")
    virsh(libvirtd, "net-undefine", "theirs")

    setup = "ip link add {0} type {1} && ip address add {2} dev {0} && ip link set {0} up"
    libvirtd.run(["sh", "-c", setup.format("nm-demo", "veth peer name nm-peer", "192.168.126.77/25")])
    said = refusal()
    assert "nm-demo exists and is not a bridge" in said
    assert "192.168.126.0/24 is routed already: 192.168.126.0/25 on nm-demo" in refusal(bridge="nm-other")
    libvirtd.run(["ip", "link", "delete", "nm-demo"])
    libvirtd.run(["ip", "link", "add", "nm-demo", "type", "bridge"])
    assert "bridge nm-demo exists and belongs to no libvirt network" in refusal()
    libvirtd.run(["ip", "link", "delete", "nm-demo"])

    advertised = "ip link add ra type dummy || ip link add ra type bridge; ip link set ra up; sleep 0.1; "
    libvirtd.run(["sh", "-c", f"{advertised} ip -6 route add fd00:99::/64 dev ra proto ra"])
    assert "`sysctl net.ipv6.conf.ra.accept_ra=2`" in refusal()
    libvirtd.run(["ip", "link", "delete", "ra"])


def test_hundred_reservations_take_one_call(libvirtd: PrivateLibvirtd) -> None:
    for count in (5, 100):
        arguments = {**NETWORK, "dhcp": _reserved(count)}
        assert run(libvirtd, arguments)["steps"] == MAKING
        assert not run(libvirtd, arguments)["changed"]
        run(libvirtd, ABSENT)


def test_two_labs_side_by_side_and_one_goes(libvirtd: PrivateLibvirtd, made: dict[str, Any]) -> None:
    second = {
        "dns": made["dns"],
        "name": "nometal-second",
        "owner": "second",
        "bridge": "nm-second",
        "forward": "isolated",
        "addresses": [{"cidr": "192.168.127.0/24", "gateway": "192.168.127.1"}],
    }
    assert run(libvirtd, second)["changed"]
    with plugged_in(libvirtd, "one", ONE) as one, plugged_in(libvirtd, "two", TWO) as two:
        one.address()
        two.address()
        refused = run(libvirtd, {"owner": made["owner"], "keep": ["another"], "state": "absent"})
        assert "p-one, p-two on its bridge would be unplugged" in refused["msg"]
        with connection(one, two, "192.168.126.20") as talk:
            assert says(talk, "both") == "both"
            gone = {"owner": "second", "state": "absent"}
            assert not run(libvirtd, {**gone, "keep": ["nometal-second"]})["changed"]
            foreseen = run(libvirtd, gone, check_mode=True)
            assert run(libvirtd, gone)["steps"] == foreseen["steps"]
            assert "undefine nometal-second" in foreseen["steps"]
            assert not run(libvirtd, gone)["changed"]
            assert says(talk, "one") == "one"
    assert not run(libvirtd, made)["changed"]


def test_an_exclusive_network_takes_the_place_of_the_owners_former_ones(
    libvirtd: PrivateLibvirtd, made: dict[str, Any]
) -> None:
    only = {**made, "name": "nometal-only", "bridge": "nm-only", "exclusive": True}
    only["addresses"] = [{"cidr": "192.168.128.0/24", "gateway": "192.168.128.1"}]
    only["dhcp"] = only["dns"] = {}
    only["ntp_servers"] = []
    others: dict[str, Any] = {"name": "nometal-theirs", "owner": "theirs", "bridge": "nm-theirs", "forward": "isolated"}
    others["addresses"] = [{"cidr": "192.168.127.0/24", "gateway": "192.168.127.1"}]
    run(libvirtd, others)
    with plugged_in(libvirtd, "one", ONE):
        assert "p-one on its bridge would be unplugged" in run(libvirtd, only)["msg"]
        assert not run(libvirtd, made)["changed"]
        assert run(libvirtd, {**only, "leaving": ["p-one"]}, check_mode=True)["steps"][:3] == REMOVING
    refused = run(libvirtd, {**only, "bridge": "nm-theirs"})
    assert "bridge nm-theirs is network nometal-theirs's" in refused["msg"]
    assert not run(libvirtd, made)["changed"]
    uuid = virsh(libvirtd, "net-uuid", "nometal-demo").strip()
    renamed = run(libvirtd, {**made, "name": "nometal-only", "uuid": uuid, "exclusive": True}, check_mode=True)
    assert renamed["steps"][:3] == REMOVING, renamed
    assert "bridge" in run(libvirtd, {**only, "bridge": "much-too-long-a-name"})["msg"]
    assert not run(libvirtd, {**made, "exclusive": True, "keep": ["nometal-only"]})["changed"]

    foreseen = run(libvirtd, only, check_mode=True)
    done = run(libvirtd, only)
    assert done["steps"] == foreseen["steps"] == REMOVING + [step.replace("demo", "only") for step in MAKING]
    assert done["diff"][0]["after"] == ""
    assert not run(libvirtd, only)["changed"]
    assert not run(libvirtd, {**only, "keep": ["nometal-demo"]})["changed"]
    assert not run(libvirtd, others)["changed"]
    for name, owner in (("nometal-only", "demo"), ("nometal-theirs", "theirs")):
        run(libvirtd, {"name": name, "owner": owner, "state": "absent"})


def test_vms_that_would_be_unplugged_are_named_with_the_way_out(
    libvirtd: PrivateLibvirtd, made: dict[str, Any]
) -> None:
    running = guest.start(libvirtd, name="one", mac=ONE, network="nometal-demo")
    virsh(libvirtd, "net-define", "/dev/stdin", text="<network><name>kept</name><bridge name='kept'/></network>")
    for kept, way in (("kept", "Run stage `nodes`, which"), ("nometal-new", "Switch the VMs off, and run")):
        refused = run(libvirtd, {"owner": made["owner"], "keep": [kept], "state": "absent"})["msg"]
        assert re.search(rf"vnet\d+ of VM one on its bridge would be unplugged. It stays. {way}", refused)
    running.stop()
    virsh(libvirtd, "net-undefine", "kept")


def test_a_bridge_that_goes_first_is_in_the_way_as_long_as_others_are_on_it(libvirtd: PrivateLibvirtd) -> None:
    def foreseen(*leaving: str) -> dict[str, Any]:
        return run(libvirtd, {**NETWORK, "leaving": leaving}, check_mode=True)

    libvirtd.run(["ip", "link", "add", "nm-demo", "type", "bridge"])
    libvirtd.run(["ip", "link", "add", "p-end", "master", "nm-demo", "type", "veth", "peer", "name", "p-far"])
    assert "exists and belongs to no libvirt network" in foreseen("nm-demo", "p-end")["msg"]
    libvirtd.run(["ip", "link", "set", "nm-demo", "alias", "nometal.ipi"])
    assert "bridge nm-demo has to go first, but has p-end on it" in foreseen("nm-demo")["msg"]
    assert "exists and belongs to no libvirt network" in foreseen("p-end")["msg"]
    assert foreseen("nm-demo", "p-end")["steps"] == MAKING
    for link in ("p-end", "nm-demo"):
        libvirtd.run(["ip", "link", "delete", link])


def test_without_libvirt_it_says_what_to_do(libvirtd: PrivateLibvirtd) -> None:
    gone = {**NETWORK, "libvirt_uri": "qemu:///system?socket=/run/none"}
    assert run(libvirtd, gone, check_mode=True)["steps"] == MAKING
    refused = run(libvirtd, gone)
    assert refused["failed"]
    assert "role nometal.ipi.host_prep installs and starts it" in refused["msg"]
