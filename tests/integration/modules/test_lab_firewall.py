"""The lab_firewall module on a real kernel: who gets through without and with it, beside each kind of firewall."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from support import private_libvirtd
from support.modules import run_beside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.private_libvirtd import PrivateLibvirtd

DEMO, OTHER = "192.168.126.1", "192.168.127.1"
DEMO_V6 = "fd00:126::1"
UPLINK, NEIGHBOUR = "198.51.100.10", "198.51.100.1"
NODE, NODE_2 = "192.168.126.50", "192.168.126.51"
OWN, OWN_NEIGHBOUR = "10.99.0.1", "10.99.0.50"
BMC, NOT_BMC, NTP, DNS, WEB = 8000, 9000, 123, 53, 80


def lab(owner: str, gateway: str, gateway_v6: str | None = None, bridges: list[str] | None = None) -> dict[str, Any]:
    addresses = [{"gateway": gateway, "cidr": f"{gateway}/24", "prefix": 24, "family": "ipv4"}]
    if gateway_v6:
        addresses.append({"gateway": gateway_v6, "cidr": f"{gateway_v6}/64", "prefix": 64, "family": "ipv6"})
    network = {
        "name": f"nometal-{owner}",
        "bridge": f"nm-{owner}",
        "forward": "nat",
        "addresses": addresses,
        "mtu": 1500,
    }
    return {
        "owner": owner,
        "networks": [network],
        "bridges": bridges or [],
        "ports": [{"protocol": "tcp", "port": BMC}],
    }


LAB = lab("demo", DEMO, DEMO_V6, ["baremetal"])
LAB_2 = lab("other", OTHER)

NETWORK = """\
<network>
  <name>nometal-{owner}</name><forward mode='nat'/><bridge name='nm-{owner}' stp='off' delay='0'/>
  <ip address='{gateway}' prefix='24'><dhcp><range start='{range}.100' end='{range}.110'/></dhcp></ip>{more}
</network>
"""
PROBE = """
import concurrent.futures, socket, sys
def answers(target):
    kind, address, port = target.split(",")
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET,
                       socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM) as client:
        client.settimeout(float(sys.argv[1]))
        try:
            client.connect((address, int(port)))
            return kind == "tcp" or client.send(b"?") and client.recv(1)
        except OSError:
            return False
targets = sys.argv[2:]
with concurrent.futures.ThreadPoolExecutor(len(targets)) as pool:
    print(*(target for target, answer in zip(targets, pool.map(answers, targets)) if answer), sep="\\n")
"""
SERVE = """
import socket, sys, threading
def answer(server):
    while True:
        data, peer = server.recvfrom(1)
        server.sendto(data, peer)
servers = []
for target in sys.argv[1:]:
    kind, port = target.split(",")
    server = socket.socket(socket.AF_INET6, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
    server.bind(("::", int(port)))
    servers.append(server)
    if kind == "tcp":
        server.listen(50)
    else:
        threading.Thread(target=answer, args=[server], daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""
DISCOVER = """
import socket, struct, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
    client.bind(("", 68))
    client.settimeout(float(sys.argv[1]))
    header = struct.pack("!4BIHH16x16s192x", 1, 1, 6, 0, 7, 0, 0x8000, bytes.fromhex("525400aabbcc"))
    client.sendto(header + bytes.fromhex("63825363 350101 ff") + bytes(60), ("255.255.255.255", 67))
    try:
        print(socket.inet_ntoa(client.recv(600)[16:20]))
    except OSError:
        pass
"""


Target = tuple[str, str, int]


@dataclass
class Place:
    """A network namespace: the house, a node, the neighbour."""

    path: str

    def run(self, *command: str, **options: Any) -> str:
        entering = ["nsenter", f"--net={self.path}", *command]
        return subprocess.run(entering, check=True, text=True, capture_output=True, **options).stdout

    def reaches(self, *targets: Target, patience: float = 0.6) -> set[Target]:
        words = [f"{kind},{address},{port}" for kind, address, port in targets]
        found = self.run(sys.executable, "-c", PROBE, str(patience), *words).splitlines()
        return {target for target, word in zip(targets, words) if word in found}

    @contextmanager
    def serving(self, *targets: str) -> Iterator[None]:
        command = ["nsenter", f"--net={self.path}", sys.executable, "-c", SERVE, *targets]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout
            assert server.stdout.readline() == "ready\n"
            yield
            server.communicate()


@contextmanager
def place() -> Iterator[Place]:
    with subprocess.Popen(
        ["unshare", "--net", "sh", "-ec", "ip link set lo up; echo ready; read -r _"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"ready\n"
        yield Place(f"/proc/{holder.pid}/ns/net")
        holder.communicate()


@dataclass
class World:
    libvirtd: PrivateLibvirtd
    house: Place
    node: Place
    node_2: Place
    other_node: Place
    neighbour: Place

    def firewall(self, arguments: dict[str, Any], *, check_mode: bool = False) -> dict[str, Any]:
        given = {"memory": "/run/host.json", **arguments}
        return run_beside(self.libvirtd, "lab_firewall", given, check_mode=check_mode)

    def sh(self, script: str) -> str:
        return self.libvirtd.run(["sh", "-ec", script]).stdout

    def rules(self) -> str:
        """All of everybody's, without counters."""
        shown = self.sh("nft list ruleset; iptables-save; ip6tables-save; iptables-legacy-save; ip6tables-legacy-save")
        kept = [line for line in shown.splitlines() if not line.startswith("#")]
        return re.sub(r"counter packets \d+ bytes \d+|\[\d+:\d+\]", "", "\n".join(kept))

    def assert_open(self) -> None:
        """What the lab needs gets through."""
        wanted = [("tcp", DEMO, BMC), ("udp", DEMO, NTP), ("tcp", DEMO, DNS), ("tcp", DEMO_V6, BMC)]
        through = [("tcp", NODE_2, WEB), ("tcp", NEIGHBOUR, WEB)]
        assert self.node.reaches(*wanted, *through, patience=60) == {*wanted, *through}
        assert self.node.run(sys.executable, "-c", DISCOVER, "7").startswith("192.168.126.1")
        self.node.run("ping", "-c1", "-W2", DEMO)
        self.node.run("ping", "-c1", "-W2", DEMO_V6)

    def assert_closed(self) -> None:
        """What nobody else may reach, and a lab behind NAT is not reached at all from outside."""
        guarded = [("tcp", DEMO, BMC), ("udp", DEMO, NTP), ("tcp", DEMO, DNS), ("tcp", NODE, WEB)]
        assert self.neighbour.reaches(*guarded, ("tcp", DEMO_V6, BMC)) == set()
        assert self.other_node.reaches(*guarded) == set()

    def assert_open_to_clients(self) -> None:
        """The neighbour is one from now on, of the BMCs alone."""
        wanted = {**LAB, "clients": [f"{NEIGHBOUR}/32", "203.0.113.0/24"]}
        assert self.firewall(wanted)["changed"]
        assert not self.firewall(wanted, check_mode=True)["changed"]
        closed = [("udp", DEMO, NTP), ("tcp", DEMO, DNS), ("tcp", NODE, WEB)]
        assert self.neighbour.reaches(("tcp", DEMO, BMC), patience=60)
        assert self.neighbour.reaches(*closed) == set()
        self.firewall(LAB)
        self.assert_closed()


@dataclass
class Foreign:
    """A firewall of others, which stands while a test runs."""

    building: str
    razing: str

    @contextmanager
    def standing(self, world: World) -> Iterator[None]:
        world.sh(self.building)
        try:
            yield
        finally:
            world.sh(self.razing)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with ExitStack() as stack:
        libvirtd = stack.enter_context(private_libvirtd.start())
        house = Place(f"/proc/{libvirtd.sandbox.init}/ns/net")
        node, node_2, other_node, neighbour = (stack.enter_context(place()) for _ in range(4))
        for owner, gateway, more in (
            ("demo", DEMO, f"<ip family='ipv6' address='{DEMO_V6}' prefix='64'/>"),
            ("other", OTHER, ""),
        ):
            xml = NETWORK.format(owner=owner, gateway=gateway, range=gateway.rpartition(".")[0], more=more)
            libvirtd.run(["virsh", "net-define", "/dev/stdin"], input=xml)
            libvirtd.run(["virsh", "net-start", f"nometal-{owner}"])
        house.run("ip", "link", "add", "baremetal", "type", "bridge")
        house.run("ip", "link", "add", "nmn-demo", "master", "nm-demo", "type", "veth", "peer", "nmb-demo")
        house.run("ip", "link", "set", "nmb-demo", "master", "baremetal")
        for link in ("nmn-demo", "nmb-demo", "baremetal"):
            house.run("ip", "link", "set", link, "up")
        plug(house, "baremetal", node, f"{NODE}/24", DEMO)
        node.run("ip", "address", "add", "fd00:126::50/64", "dev", "eth0", "nodad")
        plug(house, "baremetal", node_2, f"{NODE_2}/24", DEMO)
        plug(house, "nm-other", other_node, "192.168.127.50/24", OTHER)
        plug(house, None, neighbour, f"{NEIGHBOUR}/24", UPLINK)
        house.run("ip", "address", "add", f"{UPLINK}/24", "dev", "up0")
        libvirtd.run(["sysctl", "net.ipv4.conf.baremetal.arp_ignore=1"])  # the gateway is not there
        for family in ("iptables", "ip6tables"):
            libvirtd.run(["sysctl", f"net.bridge.bridge-nf-call-{family}=1"])
        stack.enter_context(house.serving(f"tcp,{BMC}", f"tcp,{NOT_BMC}", f"udp,{NTP}"))
        for web in (node, node_2, neighbour):
            stack.enter_context(web.serving(f"tcp,{WEB}"))
        yield World(libvirtd, house, node, node_2, other_node, neighbour)


def plug(house: Place, bridge: str | None, to: Place, address: str, gateway: str) -> None:
    """A cable from the house: to one of its bridges, or its uplink."""
    link = f"p{abs(hash(to.path)) % 10**8}" if bridge else "up0"
    with open(to.path) as namespace:  # noqa: PTH123 - a descriptor is what is wanted
        house.run(
            *(
                "ip",
                "link",
                "add",
                link,
                "type",
                "veth",
                "peer",
                "eth0",
                "netns",
                f"/proc/self/fd/{namespace.fileno()}",
            ),
            pass_fds=[namespace.fileno()],
        )
    if bridge:
        house.run("ip", "link", "set", link, "master", bridge)
    house.run("ip", "link", "set", link, "up")
    to.run("ip", "link", "set", "eth0", "up")
    to.run("ip", "address", "add", address, "dev", "eth0")
    to.run("ip", "route", "add", "default", "via", gateway)


APPLYING = ["write hook entry", "run hook entry"]
ENTRY = "/etc/libvirt/hooks/nometal.d/demo.firewall"
CUT_OFF = (("tcp", DEMO, BMC), ("udp", DEMO, NTP), ("tcp", NEIGHBOUR, WEB))


def iptables(*commands: str, kind: str = "") -> str:
    return "\n".join(f"{tool}{kind} {command}" for command in commands for tool in ("iptables", "ip6tables"))


# As Docker leaves FORWARD and a cautious administrator INPUT.
CLOSED_IPTABLES = Foreign(
    iptables(
        "-P INPUT DROP",
        "-P FORWARD DROP",
        "-N DOCKER-USER",
        "-A DOCKER-USER -j RETURN",
        "-I FORWARD -j DOCKER-USER",
        "-A INPUT -i lo -j ACCEPT",
        "-A INPUT -m comment --comment theirs -j REJECT",
    ),
    iptables(
        "-D INPUT -m comment --comment theirs -j REJECT",
        "-D INPUT -i lo -j ACCEPT",
        "-D FORWARD -j DOCKER-USER",
        "-F DOCKER-USER",
        "-X DOCKER-USER",
        "-P FORWARD ACCEPT",
        "-P INPUT ACCEPT",
    ),
)
NFT_POLICY = """nft -f - <<'E'
table inet filter {
  chain input {
    type filter hook input priority filter; policy drop;
    iif "lo" accept
    ct state established,related accept comment "theirs"
  }
  chain forward {
    type filter hook forward priority filter; policy drop;
  }
}
E"""
# With the names, too, that iptables has for its chains; and refusing by a last rule, not by policy.
NFT_RULES = """nft -f - <<'E'
table ip theirs {
  chain INPUT {
    type filter hook input priority 10; policy accept;
    iif "lo" accept
    tcp dport 22 drop
    counter jump rest
  }
  chain rest {
    log prefix "refused " reject with icmp admin-prohibited
  }
  chain sieve {
    type filter hook forward priority 10; policy accept;
    oifname "nm-other" drop
    goto rest
  }
}
table inet harmless {
  chain input {
    type filter hook input priority -1; policy accept;
    ip saddr 203.0.113.7 drop
  }
}
E"""
OWN_NAT = Foreign(
    """nft -f - <<'E'
table ip nat_of_others {
  chain postrouting {
    type nat hook postrouting priority srcnat;
    ip saddr 10.99.0.0/24 oifname "up0" masquerade
  }
}
E""",
    "nft delete table ip nat_of_others",
)
# In force, and in neither iptables' list of rules nor that of nft.
CLOSED_LEGACY = Foreign(
    iptables("-P INPUT DROP", "-P FORWARD DROP", "-A INPUT -i lo -j ACCEPT", kind="-legacy"),
    iptables("-D INPUT -i lo -j ACCEPT", "-P FORWARD ACCEPT", "-P INPUT ACCEPT", kind="-legacy"),
)
HOUSES = {
    "iptables": CLOSED_IPTABLES,
    "legacy iptables beside the new one": CLOSED_LEGACY,
    "nft, by policy": Foreign(NFT_POLICY, "nft delete table inet filter"),
    "nft, by rules": Foreign(NFT_RULES, "nft delete table ip theirs; nft delete table inet harmless"),
}


def instead_of(program: str, other: str) -> Foreign:
    """In this libvirtd's sandbox only."""
    path = f"$(readlink -f /usr/sbin/{program})"
    return Foreign(f"mount --bind {other} {path}", f"umount {path}")


@pytest.mark.parametrize("name", HOUSES)
def test_acceptance(world: World, name: str) -> None:
    absent = {"owner": "demo", "state": "absent"}
    with HOUSES[name].standing(world):
        before = world.rules()
        assert world.node.reaches(*CUT_OFF) == set()

        foreseen = world.firewall(LAB, check_mode=True)
        assert foreseen["steps"] == APPLYING
        assert world.rules() == before

        applied = world.firewall(LAB)
        assert applied["steps"] == APPLYING
        assert applied["shown_diff"] == foreseen["shown_diff"] != ""
        world.assert_open()
        world.assert_closed()
        for check_mode in (True, False):
            again = world.firewall(LAB, check_mode=check_mode)
            assert not again["changed"]
            assert again["shown_diff"] == ""
        world.assert_open_to_clients()

        foreseen = world.firewall(absent, check_mode=True)
        world.assert_open()
        removed = world.firewall(absent)
        assert removed["steps"] == foreseen["steps"] != []
        assert world.rules() == before
        for check_mode in (True, False):
            assert not world.firewall(absent, check_mode=check_mode)["changed"]


@pytest.mark.parametrize(
    "tools",
    [
        pytest.param(instead_of("iptables", "/usr/sbin/xtables-legacy-multi"), id="legacy iptables"),
        pytest.param(instead_of("nft", "/dev/null"), id="no nft"),
    ],
)
def test_other_tools(world: World, tools: Foreign) -> None:
    with tools.standing(world), CLOSED_IPTABLES.standing(world):
        assert world.node.reaches(*CUT_OFF) == set()
        assert world.firewall(LAB)["steps"] == APPLYING
        world.assert_open()
        world.assert_closed()
        assert not world.firewall(LAB, check_mode=True)["changed"]
        world.assert_open_to_clients()
        world.firewall({"owner": "demo", "state": "absent"})
        assert "nm-demo-" not in world.sh("iptables-save; ip6tables-save")
        assert world.node.reaches(*CUT_OFF) == set()


def test_without_iptables(world: World) -> None:
    with HOUSES["nft, by policy"].standing(world), instead_of("iptables", "/dev/null").standing(world):
        world.firewall(LAB)
        world.assert_open()
        world.assert_closed()
        assert "jump nm-demo-in " not in world.sh("nft list ruleset")
        world.firewall({"owner": "demo", "state": "absent"})


def test_with_no_tool_at_all(world: World) -> None:
    with instead_of("iptables", "/dev/null").standing(world), instead_of("nft", "/dev/null").standing(world):
        assert world.firewall(LAB, check_mode=True)["changed"]
        refused = world.firewall(LAB)
        assert refused["failed"]
        assert "Neither iptables nor nft is installed" in refused["msg"]
        assert not world.libvirtd.path(ENTRY).exists()


def test_a_plain_bridge_that_the_host_uses_itself(world: World) -> None:
    """The host has an address of its own on it, and lets in only what it knows connections of; its neighbours there
    reach others through it, by NAT."""
    world.sh(f"ip address add {OWN}/24 dev baremetal; sysctl -q net.ipv4.ip_forward=1")
    world.node.run("ip", "address", "add", f"{OWN_NEIGHBOUR}/24", "dev", "eth0")
    world.node.run("ip", "route", "add", f"{NEIGHBOUR}/32", "via", OWN, "src", OWN_NEIGHBOUR)
    with HOUSES["nft, by policy"].standing(world), OWN_NAT.standing(world):
        world.sh("nft add rule inet filter forward ct state established,related accept")
        world.sh(f"nft add rule inet filter forward ip saddr {OWN}/24 accept")
        world.firewall(LAB)
        for calls in ("1", "0"):
            world.sh(f"sysctl -q net.bridge.bridge-nf-call-iptables={calls}")
            assert world.house.reaches(("tcp", OWN_NEIGHBOUR, WEB), patience=60)
            assert world.node.reaches(("tcp", NEIGHBOUR, WEB), patience=60)
            assert not world.node.reaches(("tcp", OWN, BMC))
        world.sh("sysctl -q net.bridge.bridge-nf-call-iptables=1")
        world.firewall({"owner": "demo", "state": "absent"})
    world.node.run("ip", "route", "del", f"{NEIGHBOUR}/32")
    world.node.run("ip", "address", "del", f"{OWN_NEIGHBOUR}/24", "dev", "eth0")
    world.sh(f"ip address del {OWN}/24 dev baremetal")


def test_what_is_lost_or_changed_comes_back(world: World) -> None:
    with CLOSED_IPTABLES.standing(world):
        world.firewall(LAB)
        complete = world.rules()

        # What a restarted firewall forgets comes back with the next network that starts, as libvirt's hook has it.
        world.sh("iptables -D INPUT -j nm-demo-in; ip6tables -F nm-demo-fwd; nft delete table inet nometal-demo")
        assert world.firewall(LAB, check_mode=True)["steps"] == ["run hook entry"]
        world.sh(f"{ENTRY} nometal-demo stopped")
        assert world.rules() != complete
        world.sh(f"{ENTRY} nometal-demo started & {ENTRY} default started; wait")
        assert sorted(world.rules().split()) == sorted(complete.split())
        world.assert_open()

        world.sh(f"iptables -I nm-demo-in -j DROP; echo >> {ENTRY}")
        assert world.firewall(LAB)["steps"] == APPLYING
        assert sorted(world.rules().split()) == sorted(complete.split())

        # Another port, and no second bridge: nothing of the former is left.
        fewer = {
            **LAB,
            "bridges": [],
            "ports": [{"protocol": name, "port": port} for name, port in (("tcp", 8443), ("tcp", 8444), ("udp", 623))],
        }
        assert world.firewall(fewer)["steps"] == ["remove nft inet nometal-demo bridged", *APPLYING]
        assert "baremetal" not in world.rules()
        assert "8443:8444" in world.rules()
        assert not world.firewall(fewer)["changed"]
        world.firewall({"owner": "demo", "state": "absent"})


def test_a_chain_of_others_that_no_longer_refuses_is_let_go(world: World) -> None:
    with HOUSES["nft, by policy"].standing(world):
        world.firewall(LAB)
        world.sh("nft chain inet filter forward '{ policy accept; }'")
        assert world.firewall(LAB)["steps"] == ["remove nft inet filter nm-demo-forward", "write hook entry"]
        world.assert_open()
        world.firewall({"owner": "demo", "state": "absent"})


def test_two_labs(world: World) -> None:
    with CLOSED_IPTABLES.standing(world):
        world.firewall(LAB)
        alone = world.rules()
        world.firewall(LAB_2)
        assert world.other_node.reaches(("tcp", OTHER, BMC), ("udp", OTHER, NTP), ("tcp", NEIGHBOUR, WEB), patience=60)
        world.assert_open()
        world.assert_closed()
        world.firewall({"owner": "other", "state": "absent"})
        assert world.rules() == alone
        world.assert_open()
        world.firewall({"owner": "demo", "state": "absent"})


def test_bad_input_changes_nothing(world: World) -> None:
    before = world.rules()
    for check_mode in (True, False):
        refused = world.firewall({**LAB, "bridges": ["up0", "not-there-yet"]}, check_mode=check_mode)
        assert refused["failed"]
        assert refused["msg"].startswith("up0 exists and is not a bridge")
    refused = world.firewall({**LAB, "bridges": ["br0; reboot"]})
    assert refused["failed"]
    assert "bridges[0]: must be an interface name: " in refused["msg"]
    assert "(got 'br0; reboot')" in refused["msg"]
    assert world.rules() == before
