"""The libvirt network: what is declared, the decision by tables, the XML, the port against libvirt's test driver."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.nometal.ipi.plugins.module_utils._core import network_hook
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError, OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model
from ansible_collections.nometal.ipi.plugins.module_utils._lab.network import (
    Definition,
    DnsHost,
    Health,
    Lease,
    Network,
    Range,
    Reservation,
    Txt,
)
from ansible_collections.nometal.ipi.plugins.module_utils._observe import (
    network_filter,
    network_health,
    network_leases,
    network_ports,
    network_xml,
)
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import Link
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network import port as network_port
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.dnsmasq import size_of, with_room
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.port import NetworkPort
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.resource import (
    LabNetwork,
    act,
    network_from,
)
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.state import plan
from ansible_collections.nometal.ipi.plugins.modules import libvirt_bridge_net as module

if TYPE_CHECKING:
    from collections.abc import Iterator

MAC, OTHER_MAC = "52:54:00:00:00:01", "52:54:00:00:00:02"
DEFINITION = Definition(
    bridge="nm-demo",
    forward="nat",
    mtu=1500,
    domain="demo.test",
    addresses=("192.168.126.1/24", "fd00::1/64"),
    forwarders=("192.0.2.53",),
    options=("address=/apps.demo.test/192.168.126.6", "local=/apps.demo.test/"),
    ranges=(Range("192.168.126.220", "192.168.126.239"),),
    reservations=(Reservation("192.168.126.20", MAC, "one"), Reservation("fd00::20", f"00:03:00:01:{MAC}", "one")),
    hosts=(DnsHost("192.168.126.5", ("api.demo.test", "api-int.demo.test")),),
    txt=(Txt("note.demo.test", '"note"'),),
)
NETWORK = Network("nometal-demo", "demo", DEFINITION)
LEASE = Lease("192.168.126.20", OTHER_MAC)
SMALLER = replace(DEFINITION, mtu=1400)
WITHOUT_HOSTS = replace(DEFINITION, hosts=())
RESTART = ["destroy", "start", "reconnect ports of"]
BROKEN = Health(
    "down",
    missing_addresses=("192.168.126.1/24",),
    dnsmasq=False,
    lost_rules=("nat LIBVIRT_PRT",),
    not_forwarding=("net/ipv4/ip_forward",),
)
MENDING = ["restore packet filter rules of", "forward packets of", "bring up", "add address", "start dnsmasq of"]


@pytest.mark.parametrize(
    ("current", "verbs"),
    [
        (None, ["define", "install hook of", "start", "autostart"]),
        (NETWORK, []),
        (replace(NETWORK, owner=None), ["define"]),
        (replace(NETWORK, autostart=False), ["autostart"]),
        (replace(NETWORK, hook=False), ["install hook of"]),
        (replace(NETWORK, live=None), ["start"]),
        (replace(NETWORK, live=None, definition=SMALLER), ["define", "start"]),
        (replace(NETWORK, live=None, noted_ports=("vnet0",)), ["start", "reconnect ports of"]),
        (replace(NETWORK, noted_ports=("vnet0",)), ["reconnect ports of"]),
        (replace(NETWORK, definition=WITHOUT_HOSTS), ["define", "update"]),
        (replace(NETWORK, live=WITHOUT_HOSTS), ["update"]),
        (replace(NETWORK, definition=WITHOUT_HOSTS, live=DEFINITION), ["define"]),
        (replace(NETWORK, definition=SMALLER), ["define", *RESTART]),
        (replace(NETWORK, live=SMALLER), RESTART),
        (replace(NETWORK, live=replace(SMALLER, hosts=())), RESTART),
        (replace(NETWORK, stale_leases=(LEASE,)), ["release"]),
        (replace(NETWORK, stale_leases=(LEASE,), live=None), ["forget", "start"]),
        (replace(NETWORK, stale_leases=(LEASE,), live=SMALLER), ["destroy", "forget", *RESTART[1:]]),
        (replace(NETWORK, definition=None, live=DEFINITION, autostart=False), ["define", "autostart"]),
        (replace(NETWORK, health=BROKEN, live=WITHOUT_HOSTS), [*MENDING, "update"]),
        (replace(NETWORK, health=BROKEN, live=SMALLER), RESTART),
    ],
)
def test_what_is_missing_is_made(current: Network | None, verbs: list[str]) -> None:
    assert [step.verb for step in plan(current, NETWORK, may_restart=True)] == verbs


@pytest.mark.parametrize(
    ("current", "verbs"),
    [
        (None, []),
        (NETWORK, ["destroy", "remove hook of", "undefine"]),
        (replace(NETWORK, live=None, hook=False), ["undefine"]),
        (replace(NETWORK, definition=None), ["destroy", "remove hook of"]),
        (Network("nometal-demo", "demo", None, None, noted_ports=("vnet0",)), ["remove hook of", "forget ports of"]),
    ],
)
def test_what_is_there_is_removed_and_the_definition_last(current: Network | None, verbs: list[str]) -> None:
    assert [step.verb for step in plan(current, None, may_restart=False)] == verbs


def test_a_restart_that_is_not_allowed_is_refused_with_what_differs() -> None:
    for current in (replace(NETWORK, definition=SMALLER), replace(NETWORK, live=SMALLER)):
        with pytest.raises(OperatorError, match="only a restart can change mtu from 1400 to 1500"):
            plan(current, NETWORK, may_restart=False)


@pytest.mark.parametrize(("health", "verbs"), [(BROKEN, MENDING), (Health("gone"), RESTART)])
def test_what_a_running_network_has_lost_is_mended_without_leave(health: Health, verbs: list[str]) -> None:
    assert [step.verb for step in plan(replace(NETWORK, health=health), NETWORK, may_restart=False)] == verbs


IPTABLES = """\
*filter
:INPUT DROP [0:0]
:LIBVIRT_FWO - [0:0]
-A INPUT -j LIBVIRT_INP
-A FORWARD -j LIBVIRT_FWX
-A FORWARD -j LIBVIRT_FWI
-A FORWARD -j LIBVIRT_FWO
-A LIBVIRT_FWI -d 192.168.126.0/24 -o nm-demo -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A LIBVIRT_FWI -o nm-demo -j REJECT --reject-with icmp-port-unreachable
-A LIBVIRT_FWO -s 192.168.126.0/24 -i nm-demo -j ACCEPT
-A LIBVIRT_FWO -i nm-demo -j REJECT --reject-with icmp-port-unreachable
-A LIBVIRT_FWX -i nm-demo -o nm-demo -j ACCEPT
-A LIBVIRT_INP -i nm-demo -p udp -m udp --dport 53 -j ACCEPT
COMMIT
*nat
-A POSTROUTING -j LIBVIRT_PRT
-A LIBVIRT_PRT -s 192.168.126.0/24 ! -d 192.168.126.0/24 -p tcp -j MASQUERADE --to-ports 1024-65535
COMMIT
"""
NFT = """\
table ip libvirt_network {
\tchain forward {
\t\ttype filter hook forward priority filter; policy accept;
\t\tcounter packets 0 bytes 0 jump guest_cross
\t\tcounter packets 0 bytes 0 jump guest_input
\t\tcounter packets 0 bytes 0 jump guest_output
\t}

\tchain guest_output {
\t\tip saddr 192.168.126.0/24 iif "nm-demo" counter packets 0 bytes 0 accept
\t\tiif "nm-demo" counter packets 0 bytes 0 reject
\t}

\tchain guest_input {
\t\toif "nm-demo" ip daddr 192.168.126.0/24 ct state established,related counter packets 0 bytes 0 accept
\t}

\tchain guest_cross {
\t\tiif "nm-demo" oif "nm-demo" counter packets 0 bytes 0 accept
\t}

\tchain guest_nat {
\t\ttype nat hook postrouting priority srcnat; policy accept;
\t\tip saddr 192.168.126.0/24 ip daddr != 192.168.126.0/24 counter packets 0 bytes 0 masquerade
\t}
}
"""


@pytest.mark.parametrize("forward", ["nat", "route", "isolated"])
def test_a_network_with_all_of_libvirts_rules_has_lost_none(forward: str) -> None:
    network = replace(DEFINITION, forward=forward)
    assert network_filter.lost_in_iptables(IPTABLES, network, 4) == []
    assert network_filter.lost_in_nft(NFT, network, 4) == []


@pytest.mark.parametrize(
    ("without", "forward", "lost"),
    [
        (":", "isolated", []),
        ("-A INPUT", "isolated", ["filter INPUT"]),
        ("--dport 53", "nat", ["filter LIBVIRT_INP"]),
        ("-s 192.168.126.0/24 -i", "route", ["filter LIBVIRT_FWO"]),
        ("-s 192.168.126.0/24 -i", "isolated", []),
        ("MASQUERADE", "nat", ["nat LIBVIRT_PRT"]),
        ("MASQUERADE", "route", []),
        ("-A FORWARD", "nat", ["filter FORWARD"]),
        ("nm-demo", "isolated", [f"filter LIBVIRT_{chain}" for chain in ("INP", "FWX", "FWI", "FWO")]),
    ],
)
def test_what_is_lost_in_iptables_is_named(without: str, forward: str, lost: list[str]) -> None:
    left = "".join(line for line in IPTABLES.splitlines(keepends=True) if without not in line)
    found = network_filter.lost_in_iptables(left, replace(DEFINITION, forward=forward), 4)
    assert found == [f"iptables {place}" for place in lost]


@pytest.mark.parametrize(
    ("without", "forward", "lost"),
    [
        ("masquerade", "nat", ["guest_nat"]),
        ("masquerade", "isolated", []),
        ("jump guest_input", "nat", ["forward"]),
        ("oif", "isolated", ["guest_cross", "guest_input"]),
    ],
)
def test_what_is_lost_in_nftables_is_named(without: str, forward: str, lost: list[str]) -> None:
    left = "".join(line for line in NFT.splitlines(keepends=True) if without not in line)
    found = network_filter.lost_in_nft(left, replace(DEFINITION, forward=forward), 4)
    assert found == [f"nft ip libvirt_network {chain}" for chain in lost]


NONE_OF_NFT = "nft ip libvirt_network"


@pytest.mark.parametrize(
    ("table", "saved", "lost"),
    [
        (None, IPTABLES, []),
        (NFT, "", []),
        (NFT, None, []),
        (None, None, [NONE_OF_NFT]),
        (None, "# Table `filter' is incompatible, use 'nft' tool.", []),
        (NFT.replace("masquerade", "accept"), "", [f"{NONE_OF_NFT} guest_nat"]),
        (None, IPTABLES.replace("-A INPUT -j LIBVIRT_INP", ""), ["iptables filter INPUT"]),
    ],
)
def test_libvirt_has_its_rules_in_either_of_the_two(
    monkeypatch: pytest.MonkeyPatch, table: str | None, saved: str | None, lost: list[str]
) -> None:
    shown = {"list table": table, "list tables": ""}
    output = {"nft": lambda words: shown[" ".join(words[:2])], "iptables-save": lambda _words: saved}
    monkeypatch.setattr(network_filter, "_output_of", lambda program, *words: output[program](words))
    assert network_filter.lost_of(replace(DEFINITION, addresses=("192.168.126.1/24",))) == tuple(lost)
    assert network_filter.has_chains() is (table is not None or saved not in (None, ""))


@pytest.mark.parametrize(
    ("inner", "has_one"),
    [
        ("", False),
        ("<ip address='192.0.2.1' prefix='24'/>", True),
        ("<dns enable='no'/><ip address='192.0.2.1' prefix='24'/>", False),
        ("<dns enable='no'/><ip address='192.0.2.1' prefix='24'><dhcp><range/></dhcp></ip>", True),
    ],
)
def test_dnsmasq_is_missed_only_where_libvirt_starts_one(inner: str, has_one: bool) -> None:
    assert network_xml.has_dnsmasq(f"<network>{inner}</network>") == has_one


def test_who_has_the_number_of_a_dead_dnsmasq_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_health, "PID_FILES", tmp_path)
    monkeypatch.setattr(network_health, "PROCESSES", tmp_path)
    assert network_health.impostor("demo") == ""
    (tmp_path / "demo.pid").write_text("77\n")
    assert network_health.impostor("demo") == ""
    (tmp_path / "77").mkdir()
    for command, impostor in (("dnsmasq", ""), ("sshd", "sshd (pid 77)")):
        (tmp_path / "77/comm").write_text(f"{command}\n")
        assert network_health.impostor("demo") == impostor


def test_no_autostart() -> None:
    assert [str(step) for step in plan(NETWORK, replace(NETWORK, autostart=False), may_restart=False)] == [
        "disable autostart of nometal-demo"
    ]


def test_the_xml_says_what_was_declared() -> None:
    text = network_xml.edited(network_xml.new("nometal-demo", None), "demo", DEFINITION)
    assert network_xml.definition_of(text) == DEFINITION
    assert network_xml.owner_of(text) == "demo"
    again = network_xml.edited(text, "demo", DEFINITION)
    assert network_xml.definition_of(again) == DEFINITION
    assert len(again) == len(text)


@pytest.mark.parametrize("forward", ["isolated", "nat", "route", "open"])
def test_every_forward_mode_becomes_every_other(forward: str) -> None:
    text = network_xml.new("nometal-demo", None)
    for mode in ("nat", forward, "route", forward):
        text = network_xml.edited(text, "demo", replace(DEFINITION, forward=mode))
    assert network_xml.definition_of(text).forward == forward


def test_ipv6_that_is_routed_beside_nat_is_a_fact_and_is_translated_after_a_restart() -> None:
    """As libvirt does where it is not told otherwise."""
    text = network_xml.edited(network_xml.new("nometal-demo", None), "demo", DEFINITION)
    routing = network_xml.definition_of(text.replace('ipv6="yes"', ""))
    assert (routing.forward, routing.routes_ipv6) == ("nat", True)
    untranslated = NFT.replace("masquerade", "accept")
    assert network_filter.lost_in_nft(untranslated, routing, 6) == []
    assert network_filter.lost_in_nft(untranslated, DEFINITION, 6) == ["nft ip6 libvirt_network guest_nat"]
    with pytest.raises(OperatorError, match="only a restart can change routes_ipv6 from yes to no"):
        plan(replace(NETWORK, live=routing), NETWORK, may_restart=False)
    assert not network_xml.definition_of(network_xml.edited(text, "demo", DEFINITION)).routes_ipv6


def test_what_others_added_stays_and_what_we_took_back_goes() -> None:
    text = network_xml.edited(network_xml.new("nometal-demo", None), "demo", DEFINITION)
    theirs = "<dnsmasq:option value='cache-size=77'/></dnsmasq:options>"
    text = text.replace("</dnsmasq:options>", theirs)
    text = text.replace("<dhcp>", "<tftp root='/srv'/><dhcp><bootp file='pxe'/>", 1)
    text = text.replace("<dns>", "<dns><forwarder domain='their.test' addr='192.0.2.9'/>")
    text = text.replace("</metadata>", "<their:mark xmlns:their='urn:theirs'/></metadata>")
    assert network_xml.definition_of(text) == DEFINITION
    text = network_xml.edited(text, "demo", replace(DEFINITION, options=(), domain=None, forwarders=()))
    for kept in ("cache-size=77", "<tftp", "<bootp", "their.test", "urn:theirs"):
        assert kept in text
    for gone in ("apps.demo.test", "192.0.2.53", "<domain"):
        assert gone not in text


def test_the_lines_for_dnsmasq_that_run_are_known_without_a_mark() -> None:
    """Taken over while it runs, a network has the mark only where it is written down."""
    text = network_xml.edited(network_xml.new("nometal-demo", None), "demo", DEFINITION)
    unmarked = text[: text.index("<metadata>")] + text[text.index("</metadata>") + len("</metadata>") :]
    assert network_xml.owner_of(unmarked) is None
    assert network_xml.definition_of(unmarked).options == ()
    assert network_xml.definition_of(unmarked, DEFINITION.options) == DEFINITION


def test_the_place_of_an_address_is_told_to_libvirt() -> None:
    text = network_xml.edited(network_xml.new("nometal-demo", None), "demo", DEFINITION)
    places = [network_xml.position_of(text, item) for item in (*DEFINITION.reservations, DEFINITION.hosts[0])]
    assert places == [0, 1, -1]


@pytest.mark.parametrize(
    ("leases", "stale"),
    [
        ([Lease("192.168.126.20", MAC)], []),
        ([Lease("192.168.126.30", OTHER_MAC)], []),
        ([LEASE], [LEASE]),
        ([Lease("192.168.126.225", MAC)], [Lease("192.168.126.225", MAC)]),
        ([Lease("fd00::20", "00:04:aa", iaid="7")], [Lease("fd00::20", "00:04:aa", iaid="7")]),
    ],
)
def test_leases_are_stale_when_a_reservation_contradicts_them(leases: list[Lease], stale: list[Lease]) -> None:
    assert network_leases.stale(leases, DEFINITION.reservations) == tuple(stale)


@pytest.mark.parametrize(
    ("runs_at", "found"),
    [
        (DEFINITION.addresses, ("192.168.126.20",)),
        (("192.168.9.1/24", "fd00::1/64"), ("192.168.126.20", "192.168.9.20", "192.168.9.225")),
        (None, ("192.168.126.20", "192.168.9.20", "192.168.9.225")),
    ],
)
def test_leases_outside_the_subnets_contradict_nothing_and_go_when_dnsmasq_is_stopped(
    connection: Any, monkeypatch: pytest.MonkeyPatch, runs_at: tuple[str, ...] | None, found: tuple[str, ...]
) -> None:
    there = [LEASE, Lease("192.168.9.20", MAC), Lease("192.168.9.225", OTHER_MAC), Lease("fd00::77", "00:04:aa")]
    monkeypatch.setattr(network_leases, "leases_of", lambda _network: there)
    there_now = runs_at or DEFINITION.addresses
    runs = replace(DEFINITION, options=(), addresses=there_now, ranges=(), reservations=())
    text = network_xml.edited(network_xml.new("nometal-demo", None), "demo", runs)
    (connection.networkCreateXML if runs_at else connection.networkDefineXML)(text)
    network = NetworkPort(connection, "nometal-demo", "demo", PLAIN).read()
    assert network
    assert tuple(lease.ip for lease in network.stale_leases) == found


def test_what_dnsmasq_is_to_forget_goes_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_leases, "STATUS", tmp_path)
    network_leases.forget("nm-demo", ["192.168.126.20"])
    assert list(tmp_path.iterdir()) == []
    file = tmp_path / "nm-demo.status"
    file.write_text(json.dumps([{"ip-address": "192.168.126.20"}, {"ip-address": "192.168.126.21"}]))
    for _again in range(2):
        network_leases.forget("nm-demo", ["192.168.126.20"])
        assert json.loads(file.read_text()) == [{"ip-address": "192.168.126.21"}]
    file.write_text("")
    network_leases.forget("nm-demo", ["192.168.126.20"])
    assert file.read_text() == ""


@pytest.mark.parametrize(("size", "leases"), [(20, 8), (20, 108), (5, 20), (200, 10)])
def test_ranges_make_room_for_all_leases_and_give_out_nothing_else(size: int, leases: int) -> None:
    span = Range("192.168.126.10", f"192.168.126.{9 + size}")
    room = with_room([span], leases)
    assert sum(map(size_of, room)) >= size + leases
    assert len(set(room)) == len(room)
    assert room == with_room([span], leases - 1)
    assert with_room([], leases) == []


def parsed(params: dict[str, Any]) -> dict[str, Any]:
    result = ArgumentSpecValidator(module.ARGUMENTS).validate(json.loads(json.dumps(params)))
    assert not result.error_messages
    return dict(result.validated_parameters)


PARAMS: dict[str, Any] = {
    "name": "nometal-demo",
    "lab": "demo",
    "bridge": "nm-demo",
    "addresses": [{"cidr": "192.168.126.0/24", "gateway": "192.168.126.1"}],
    "dhcp": {
        "ranges": [{"start": "192.168.126.220", "end": "192.168.126.239"}],
        "reservations": [
            {"name": "one", "mac": MAC, "ips": ["192.168.126.20"]},
            {"name": "two", "mac": OTHER_MAC, "ips": ["192.168.126.21"]},
        ],
        "pools": [{"mac_prefix": "52:54:00", "start": "192.168.126.10", "end": "192.168.126.17"}],
    },
    "dns": {"hosts": [{"ip": "192.168.126.5", "names": ["api.demo.test"]}]},
}


@pytest.mark.parametrize("lab", ["compact", "ha", "rehearsal"])
def test_a_network_of_the_model_is_taken_as_it_is(lab: str) -> None:
    golden = Path(__file__).parents[1] / f"lab/golden/{lab}.json"
    _takes(json.loads(golden.read_text()))


@pytest.mark.parametrize(
    "machine_network",
    [
        {"cidr_v6": "fd2e:6f44:5dd8::/64"},
        {"cidr": "192.168.126.0/24", "cidr_v6": "fd2e:6f44:5dd8::/64", "topology": "direct", "forward": "isolated"},
        {
            "pools": [
                {
                    "mac_prefix": "52:54:00",
                    "start": "192.168.126.130",
                    "end": "192.168.126.135",
                    "static_routes": [{"to": "10.0.0.0/19", "via": "192.168.126.2"}],
                }
            ],
            "dns": {
                "forwarders": ["192.0.2.53"],
                "records": {
                    "*.mirror": {"addresses": ["192.168.126.9"]},
                    "_ldap._tcp.example.test": {"srv": [{"target": "ldap.example.test", "port": 389}]},
                    "note": {"txt": ["a, b"]},
                },
            },
            "ntp_servers": ["192.168.126.1"],
            "mtu": 1400,
        },
    ],
)
def test_whatever_the_model_yields_is_taken_as_it_is(machine_network: dict[str, Any]) -> None:
    _takes(lab_model({"name": "demo", "machine_network": machine_network}))
    provisioning = {"name": "demo", "provisioning_network": {"mode": "managed"}, "bmc": {"protocol": "ipmi"}}
    _takes(lab_model({**provisioning, "machine_network": machine_network}))


def _takes(lab: dict[str, Any]) -> None:
    for network in lab["networks"]:
        slice_ = {key: value for key, value in network.items() if key != "role"}
        wanted = network_from(parsed({**slice_, "lab": lab["name"]}))
        assert wanted.definition
        text = network_xml.edited(network_xml.new(wanted.name, network["uuid"]), lab["name"], wanted.definition)
        assert network_xml.definition_of(text) == wanted.definition


def test_a_pool_with_routes_hands_out_the_default_route_too_unless_isolated() -> None:
    params = copy.deepcopy(PARAMS)
    params["dhcp"]["pools"][0]["static_routes"] = [{"to": "10.0.0.0/19", "via": "192.168.126.2"}]
    lines = (network_from(parsed({**params, "forward": mode})).definition for mode in ("nat", "isolated"))
    nat, isolated = (definition.options for definition in lines if definition)
    routes = "dhcp-option=tag:pool-525400,option:classless-static-route,10.0.0.0/19,192.168.126.2"
    assert nat == (
        "dhcp-host=52:54:00:*:*:*,set:pool-525400",
        "dhcp-range=tag:pool-525400,192.168.126.10,192.168.126.17,255.255.255.0",
        f"{routes},0.0.0.0/0,192.168.126.1",
        "no-ping",
    )
    assert isolated[2] == routes


@pytest.mark.parametrize(
    ("where", "value", "complaint"),
    [
        (("name",), "a/b", r"name: must be 1 to 100 letters, .* \(got 'a/b'\)"),
        (
            ("bridge",),
            "a-name-that-is-long",
            r"bridge: must be at most 15 characters long, .* \(got 'a-name-that-is-long'\)",
        ),
        (("name",), "", r"name: must be 1 to 100 letters, .* \(got ''\)"),
        (("lab",), "", r"lab: must be lower case letters, .* \(got ''\)"),
        (("lab",), "x y<z>", r"lab: must be lower case letters, .* \(got 'x y<z>'\)"),
        (("bridge",), "lo", r"bridge: must be another name than lo, all, default, which Linux reserves \(got 'lo'\)"),
        (("uuid",), "demo", r"uuid: must be a UUID, .* \(got 'demo'\)"),
        (("domain",), "a b", r"domain: must be a domain in lower case, .* \(got 'a b'\)"),
        (("mtu",), 100, r"mtu: must be a whole number from 576 to 65521 \(got 100\)"),
        (("addresses",), [], "addresses: must be one network of IPv4, of IPv6, or one of each"),
        (("addresses", 0, "cidr"), "192.168.126.0", "must be a network with a prefix length"),
        (
            ("addresses", 0, "gateway"),
            "10.0.0.1",
            r"addresses\[0\].gateway: must be the address of a machine in 192.168.126.0/24 \(got '10.0.0.1'\)",
        ),
        (("addresses", 0, "prefix"), 25, r"addresses\[0\].prefix: must be 24, as 192.168.126.0/24 has \(got 25\)"),
        (("addresses", 0, "family"), "ipv6", r"family: must be ipv4, as 192.168.126.1 is \(got 'ipv6'\)"),
        (
            ("addresses",),
            [PARAMS["addresses"][0], PARAMS["addresses"][0]],
            r"addresses: must be one network of each family \(got 2 of IPv4\)",
        ),
        (
            ("dhcp", "ranges", 0, "start"),
            "192.168.126.240",
            r"dhcp.ranges\[0\].end: must be 192.168.126.240 or a higher .* \(got '192.168.126.239'\)",
        ),
        (
            ("dhcp", "ranges", 0, "end"),
            "192.168.127.9",
            r"dhcp.ranges\[0\]: must lie in 192.168.126.0/24 \(got 192.168.127.9\)",
        ),
        (("dhcp", "ranges", 0, "start"), "192.168.126.15", r"dhcp.pools\[0\]: must not overlap dhcp.ranges\[0\]"),
        (("dhcp", "ranges", 0, "start"), "192.168.126.17", r"dhcp.pools\[0\]: must not overlap dhcp.ranges\[0\]"),
        (("dhcp", "ranges"), [PARAMS["dhcp"]["ranges"][0]] * 2, r"dhcp.ranges\[1\]: must not overlap dhcp.ranges\[0\]"),
        (("dhcp", "ranges", 0, "end"), "192.168.126.220", "too small for libvirt to allow 10 further leases"),
        (
            ("dhcp", "reservations", 0, "mac"),
            "53:54:00:00:00:01",
            r"must be a unicast address, .* \(got '53:54:00:00:00:01'\)",
        ),
        (("dhcp", "reservations", 0, "mac"), "52-54", r"must be six pairs of hex digits, .* \(got '52-54'\)"),
        (("dhcp", "reservations", 0, "duid"), "zz", r"duid: must be pairs of hex digits, .* \(got 'zz'\)"),
        (("dhcp", "reservations", 0, "name"), "a_b", r"dhcp.reservations\[0\].name: must be a domain .* \(got 'a_b'\)"),
        (("dhcp", "reservations", 0, "ips"), [], r"dhcp.reservations\[0\] \(one\): must have an address"),
        (
            ("dhcp", "reservations", 0, "ips"),
            ["10.0.0.9"],
            r"\(one\): must lie in 192.168.126.0/24 \(got 10.0.0.9\)",
        ),
        (
            ("dhcp", "reservations", 0, "ips"),
            ["192.168.126.1"],
            r"another address than the host's own \(got 192.168.126.1\)",
        ),
        (
            ("dhcp", "reservations", 0, "ips"),
            ["192.168.126.255"],
            r"must be the address of a machine in 192.168.126.0/24 \(got 192.168.126.255\)",
        ),
        (("dhcp", "reservations", 0, "ips"), ["192.168.126.8", "192.168.126.9"], "must have one address of a family"),
        (
            ("dhcp", "reservations", 0, "ips"),
            ["fd00::20"],
            "must have a duid, by which DHCPv6 knows a machine with an IPv6 address",
        ),
        (
            ("dhcp", "reservations", 1, "ips"),
            ["192.168.126.20"],
            r"must have ip 192.168.126.20 only once \(got 2 times\)",
        ),
        (("dhcp", "reservations", 1, "mac"), MAC.upper(), f"must have mac {MAC} only once"),
        (("dhcp", "reservations", 1, "name"), "one", "must have name one only once"),
        (("dhcp", "pools", 0, "mac_prefix"), "53:54", r"must be a unicast address, .* \(got '53:54'\)"),
        (
            ("dhcp", "pools", 0, "static_routes"),
            [{"to": "fd00:1::/64", "via": "fd00::2"}],
            r"must be of IPv4, the only routes that DHCP hands out \(got fd00:1::/64\)",
        ),
        (("dns", "hosts", 0, "ip"), "localhost", r"must be an IP address, .* \(got 'localhost'\)"),
        (("dns", "hosts", 0, "names"), ["*.demo.test"], r"names\[0\]: must be a name without asterisk"),
        (("dns", "hosts", 0, "names"), [], r"dns.hosts\[0\]: must have names"),
        (("dns", "hosts"), PARAMS["dns"]["hosts"] * 2, "dns.hosts: must have ip 192.168.126.5 only once"),
        (("dns", "forwarders"), ["192.168.126.1"], "this network's own DNS server, which would ask itself"),
        (
            ("dns", "wildcards"),
            [{"domain": "*.apps", "ip": "192.168.126.6"}],
            r"dns.wildcards\[0\].domain: must be a domain .* \(got '\*.apps'\)",
        ),
        (("dns", "records"), {"txt": [{"name": "a.b", "value": "one\ntwo"}]}, "one line of printable text"),
        (
            ("dns", "records"),
            {"srv": [{"service": "_x", "protocol": "tcp", "domain": "a.b", "target": "c.d", "port": 0}]},
            r"service: must be a word in lower case .* \(got '_x'\)",
        ),
        (
            ("ntp_servers",),
            ["fd00::1"],
            r"ntp_servers\[0\]: must be of another family: the network has no IPv6 \(got 'fd00::1'\)",
        ),
        (("ntp_servers",), ["pool.ntp.test"], r"ntp_servers\[0\]: must be an IP address, .* \(got 'pool.ntp.test'\)"),
    ],
)
def test_what_is_wrong_is_named(where: tuple[Any, ...], value: Any, complaint: str) -> None:
    params = copy.deepcopy(PARAMS)
    place: Any = params
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    with pytest.raises(OperatorError, match=complaint):
        LabNetwork.run({**parsed(params), "libvirt_uri": "test:///default"}, check_mode=True)


@pytest.mark.parametrize(
    "wrong", [{"name": ""}, {"lab": ""}, {"name": "", "lab": ""}, {"lab": "x y<z>"}, {"state": "present"}]
)
def test_an_empty_name_is_not_all_names(wrong: dict[str, str]) -> None:
    params = parsed({"lab": "demo", "state": "absent", **wrong})
    with pytest.raises(OperatorError, match=r"(name|lab): (must be|missing)"):
        act({**params, "libvirt_uri": "test:///default"}, check_mode=False)


def test_all_that_is_wrong_is_said_at_once() -> None:
    params = parsed({**PARAMS, "mtu": 1, "lab": " ", "ntp_servers": ["x"]})
    with pytest.raises(OperatorError, match=r"(?s)is invalid:.*lab.*mtu.*ntp_servers"):
        network_from(params)


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """libvirt's test driver knows no leases, bridges, lines for dnsmasq, nor how what runs is written down."""
    monkeypatch.setattr(network_leases, "leases_of", lambda _network: [])
    monkeypatch.setattr(network_health, "health_of", lambda _name, _live: Health())
    monkeypatch.setattr(network_filter, "lost_of", lambda _running: ())
    monkeypatch.setattr(network_hook, "ENTRIES", tmp_path / "hooks")
    monkeypatch.setattr(network_ports, "RUN", tmp_path / "run")
    with connect("test:///default") as opened:
        yield opened
        for network in opened.listAllNetworks():
            if network.name() != "default":
                _remove(network)


def _remove(network: Any) -> None:
    persistent = network.isPersistent()
    if network.isActive():
        network.destroy()
    if persistent:
        network.undefine()


PLAIN = replace(NETWORK, definition=replace(DEFINITION, options=()))


def test_the_port_makes_and_removes_it(connection: Any, tmp_path: Path) -> None:
    port = NetworkPort(connection, "nometal-demo", "demo", PLAIN)
    assert port.read() is None
    for step in plan(None, PLAIN, may_restart=False):
        if step.verb != "start":
            port.apply(step)
    assert port.read() == replace(PLAIN, live=None)
    entry = tmp_path / "hooks/nometal-demo.ports"
    assert "'nometal-demo', 'nm-demo'" in entry.read_text()
    entry.write_text("#!/bin/sh\n")
    assert port.read() == replace(PLAIN, live=None, hook=False), "another hook is none"

    gone = NetworkPort(connection, "nometal-demo", "demo", None)
    for step in plan(gone.read(), None, may_restart=False):
        gone.apply(step)
    assert gone.read() is None
    assert not (tmp_path / "hooks").exists()


def test_the_port_updates_what_runs(connection: Any) -> None:
    before = replace(DEFINITION, options=(), reservations=DEFINITION.reservations[:1], hosts=())
    connection.networkCreateXML(network_xml.edited(network_xml.new("nometal-demo", None), "demo", before))
    port = NetworkPort(connection, "nometal-demo", "demo", PLAIN)
    current = port.read()
    assert current
    assert (current.definition, current.live) == (None, before)
    for step in plan(current, PLAIN, may_restart=False):
        if step.verb == "update":
            port.apply(step)
    after = port.read()
    assert after
    assert after.live == PLAIN.definition


def test_a_network_of_others_is_neither_read_nor_removed(connection: Any) -> None:
    connection.networkDefineXML("<network><name>nometal-demo</name><bridge name='theirs'/></network>")
    for desired in (NETWORK, None):
        with pytest.raises(OperatorError, match="is owned by others, not by demo"):
            NetworkPort(connection, "nometal-demo", "demo", desired).read()
    adopted = NetworkPort(connection, "nometal-demo", "demo", NETWORK, adopt=True).read()
    assert adopted
    assert adopted.owner is None


def test_ports_are_noted_until_they_are_back(connection: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    links = {"vnet1": Link("vnet1", "tun", master="nm-demo"), "vnet9": Link("vnet9", "tun", master="virbr0")}
    monkeypatch.setattr(network_ports, "read_links", lambda: links)
    note = network_ports.PortsNote("nometal-demo")
    note.take("nm-demo")
    links["vnet2"] = replace(links.pop("vnet1"), name="vnet2")
    note.take("nm-demo")
    assert note.read() == ("vnet1", "vnet2")
    left = NetworkPort(connection, "nometal-demo", "demo", None).read()
    assert left == Network("nometal-demo", "demo", None, None, False, False, ("vnet1", "vnet2"))
    note.forget()
    assert note.read() == ()
    assert not (tmp_path / "run").exists()


def test_who_is_not_root_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_port.os, "geteuid", lambda: 1000)
    with pytest.raises(OperatorError, match="run as root, with `become: true`"):
        LabNetwork.run({**parsed(PARAMS), "libvirt_uri": "test:///default"}, check_mode=False)


@pytest.mark.parametrize("lease", [LEASE, Lease("fd00::20", "00:03", iaid="1")])
def test_a_missing_tool_is_named_with_its_package(lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(network_leases, "_server_id", lambda _bridge: "00:01")
    network = _NetworkWithLease(lease)
    with pytest.raises(OperatorError, match=r"dhcp_release6?, of the package dnsmasq-utils, is not installed"):
        network_leases.release(network, [lease])


def test_a_lease_without_a_server_is_waited_for_and_not_asked_about(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lease, written = Lease("fd00::20", "00:03", iaid="1"), iter(["", "[{", '[{"server-duid": "00:01"}]'])
    status = tmp_path / "nm-demo.status"
    asked: list[list[str]] = []

    def leases_of(_network: object) -> list[Lease]:
        if (text := next(written, None)) is None:
            return []
        status.write_text(text)
        return [lease]

    monkeypatch.setattr(network_leases, "STATUS", tmp_path)
    monkeypatch.setattr(network_leases, "leases_of", leases_of)
    monkeypatch.setattr(network_leases, "_run", asked.append)
    network_leases.release(_NetworkWithLease(lease), [lease])
    assert ["--server-id=00:01" in command for command in asked] == [True]


def test_all_leases_that_dnsmasq_keeps_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(LEASE, ip="192.168.126.21")
    monkeypatch.setattr(network_leases, "PATIENCE", 0)
    monkeypatch.setattr(network_leases, "_run", lambda _command: None)
    monkeypatch.setattr(network_leases, "leases_of", lambda _network: [LEASE, other])
    listed = f"192.168.126.20 for {OTHER_MAC}, 192.168.126.21 for {OTHER_MAC}"
    with pytest.raises(OperatorError, match=f"does not forget leases which reservations contradict: {listed}"):
        network_leases.release(_NetworkWithLease(LEASE), [LEASE, other])


class _NetworkWithLease:
    def __init__(self, lease: Lease) -> None:
        mac, client = ("", lease.id) if lease.iaid else (lease.id, None)
        kind = network_leases.IPV6 if lease.iaid else 0
        self._lease = {"type": kind, "ipaddr": lease.ip, "mac": mac, "clientid": client, "iaid": lease.iaid or None}

    def bridgeName(self) -> str:  # noqa: N802 - libvirt's name
        return "nm-demo"

    def DHCPLeases(self) -> list[dict[str, Any]]:  # noqa: N802 - libvirt's name
        return [self._lease]


def test_check_mode_on_a_host_without_libvirt_foresees_all_steps(tmp_path: Path) -> None:
    params = {**parsed(PARAMS), "libvirt_uri": f"qemu+unix:///system?socket={tmp_path}/none"}
    result = LabNetwork.run(params, check_mode=True)
    assert result["steps"][0] == "define nometal-demo"
    with pytest.raises(NotThereYetError, match="Nothing answers for qemu"):
        LabNetwork.run(params, check_mode=False)
