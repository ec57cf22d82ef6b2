"""What a lab needs of a firewall, in each firewall's language, and what is done about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import from_dict
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall import firewalld, iptables, nftables
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.firewalld import (
    Firewalld,
    Opening,
    opening_from,
    rich_rule,
    zones_in_use,
)
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.host import Chain
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.lab import Address, Lab
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.port import Firewall, plan
from ansible_collections.nometal.ipi.plugins.module_utils._resources.firewall.rules import (
    Ports,
    admitted,
    forwarded,
    guarded,
    ranges,
    untracked,
)

V4 = {"gateway": "192.168.126.1", "cidr": "192.168.126.0/24", "prefix": 24, "family": "ipv4"}
V6 = {"gateway": "FD00:126:0::1", "cidr": "fd00:126::/64", "prefix": 64, "family": "ipv6"}


def params(**other: Any) -> dict[str, Any]:
    network = {"name": "nometal-demo", "bridge": "nm-demo", "forward": "nat", "addresses": [V4]}
    return {"lab": "demo", "networks": [network], "bridges": ["baremetal"], "ports": [], **other}


def lab(forward: str = "nat", addresses: tuple[dict[str, Any], ...] = (V4,)) -> Lab:
    network = {"bridge": "nm-demo", "forward": forward, "addresses": list(addresses)}
    return from_dict(Lab, params(networks=[network], ports=[{"protocol": "tcp", "port": 8000}]))


ACROSS = ["-i nm-demo -o nm-demo -j ACCEPT", "-i baremetal -o baremetal -j ACCEPT"]
OUT = "-s 192.168.126.0/24 -i nm-demo -j ACCEPT"
ANSWERS = "-d 192.168.126.0/24 -o nm-demo -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"
IN = "-d 192.168.126.0/24 -o nm-demo -j ACCEPT"


@pytest.mark.parametrize(
    ("forward", "through"),
    [("nat", [OUT, ANSWERS]), ("route", [OUT, IN]), ("open", [OUT, IN]), ("isolated", [])],
)
def test_each_forward_mode_lets_through_what_libvirt_does(forward: str, through: list[str]) -> None:
    assert [iptables.line(rule) for rule in forwarded(lab(forward))] == [*ACROSS, *through]


def test_an_address_is_guarded_against_all_but_the_lab_and_the_host_itself() -> None:
    rules = [nftables.line(rule) for rule in guarded(lab(addresses=(V6,)))]
    assert rules == [
        'iifname "lo" return',
        'iifname "nm-demo" return',
        'iifname "baremetal" return',
        "ip6 daddr fd00:126::1 tcp dport 53 drop",
        "ip6 daddr fd00:126::1 tcp dport 8000 drop",
        "ip6 daddr fd00:126::1 udp dport 53 drop",
        "ip6 daddr fd00:126::1 udp dport 123 drop",
        "ip6 daddr fd00:126::1 udp dport 547 drop",
    ]
    assert guarded(from_dict(Lab, params(networks=[]))) == []


def test_only_the_labs_frames_on_a_plain_bridge_are_left_untracked() -> None:
    assert [iptables.line(rule) for rule in untracked(lab())] == [
        "-s 192.168.126.0/24 -i baremetal -j CT --notrack",
        "-d 192.168.126.0/24 -i baremetal -j CT --notrack",
    ]
    assert untracked(from_dict(Lab, params(bridges=["nm-demo"]))) == []


def test_from_a_plain_bridge_only_the_labs_addresses_are_reached() -> None:
    rules = admitted(lab(addresses=(V4, V6)))
    assert {(rule.incoming, rule.destination) for rule in rules} == {
        ("nm-demo", ""),
        ("baremetal", "192.168.126.1"),
        ("baremetal", "fd00:126::1"),
    }


def test_clients_outside_reach_the_bmcs_and_nothing_else() -> None:
    network = {"bridge": "nm-demo", "forward": "nat", "addresses": [V4, V6]}
    ports = [{"port": 8000}, {"protocol": "udp", "port": 6230}, {"protocol": "udp", "port": 6231}]
    clients = ["198.51.100.7/32", "203.0.113.0/24", "2001:db8:9::/48"]
    wanted = from_dict(Lab, params(networks=[network], ports=ports, clients=clients))
    assert [nftables.line(rule) for rule in admitted(wanted) if rule.source] == [
        "ip saddr 198.51.100.7 ip daddr 192.168.126.1 tcp dport 8000 accept",
        "ip saddr 198.51.100.7 ip daddr 192.168.126.1 udp dport 6230-6231 accept",
        "ip saddr 203.0.113.0/24 ip daddr 192.168.126.1 tcp dport 8000 accept",
        "ip saddr 203.0.113.0/24 ip daddr 192.168.126.1 udp dport 6230-6231 accept",
        "ip6 saddr 2001:db8:9::/48 ip6 daddr fd00:126::1 tcp dport 8000 accept",
        "ip6 saddr 2001:db8:9::/48 ip6 daddr fd00:126::1 udp dport 6230-6231 accept",
    ]
    verdicts = [rule.verdict for rule in guarded(wanted)]
    assert verdicts == sorted(verdicts, reverse=True)  # all that return come before the first that drops
    assert iptables.line(next(rule for rule in guarded(wanted) if rule.source)) == (
        "-s 198.51.100.7/32 -d 192.168.126.1/32 -p tcp -m tcp --dport 8000 -j RETURN"
    )


def test_firewalld_lets_clients_in_by_every_zone_that_is_used() -> None:
    shown = "block\n  target: %%REJECT%%\n  interfaces: \n  sources: \n\npublic (active)\n  interfaces: eth0\n"
    shown += '\nwork\n  interfaces: \n  sources: 10.0.0.0/8\n  rich rules: \n\trule family="ipv4" accept\n'
    assert zones_in_use(shown, "home") == ["home", "public", "work"]
    address = Address("192.168.126.1", "192.168.126.0/24")
    assert rich_rule(address, Ports("tcp", 8000, 8000), "198.51.100.0/24") == (
        'rule family="ipv4" source address="198.51.100.0/24" destination address="192.168.126.1" '
        'port port="8000" protocol="tcp" accept'
    )


ZONES = {"now": ["libvirt", "public", "passing"], "always": ["libvirt", "public"]}


def firewall_cmd(*command: str) -> str:
    """Answers as firewalld does, with a zone that is in the present configuration only, and none called docker."""
    zones = ZONES["always" if "--permanent" in command else "now"]
    place = next((word for word in command if word.startswith("--zone=")), "")
    if place and place.partition("=")[2] not in zones:
        raise OperatorError(f"`{' '.join(command)}` failed: Error: INVALID_ZONE")
    answers = {
        "--get-zones": " ".join(zones),
        "--get-default-zone": "public\n",
        "--list-all-zones": "".join(f"{zone}\n  interfaces: {zone}0\n" for zone in zones),
        "--list-rich-rules": "a rule\n",
        "--list-interfaces": "baremetal\n",
    }
    return answers[command[-1]]


def test_zones_of_others_may_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firewalld, "succeeds", lambda *_: True)
    monkeypatch.setattr(firewalld, "run", firewall_cmd)
    network = {"bridge": "nm-demo", "forward": "nat", "addresses": [V4]}
    wanted = Firewalld().wanted(from_dict(Lab, params(networks=[network], ports=[], clients=["198.51.100.7/32"])))
    assert {opening.place for opening in wanted} == {"zone=libvirt"}
    with_clients = params(networks=[network], ports=[{"port": 8000}], clients=["198.51.100.7/32"])
    wanted = Firewalld().wanted(from_dict(Lab, with_clients))
    assert {opening.place for opening in wanted} == {"zone=libvirt", "zone=public"}
    known = [Opening("always", f"zone={zone}", "rich-rule", "a rule") for zone in ("docker", "passing", "public")]
    assert [str(opening) for opening in Firewalld().read(known)] == [
        "now zone=passing rich-rule=a rule",
        "now zone=public rich-rule=a rule",
        "always zone=public rich-rule=a rule",
    ]


def test_neighbouring_ports_become_ranges() -> None:
    ports = [("udp", 6231), ("tcp", 53), ("udp", 6230), ("udp", 6232), ("tcp", 8000), ("udp", 6230)]
    assert ranges(ports) == [Ports("tcp", 53, 53), Ports("tcp", 8000, 8000), Ports("udp", 6230, 6232)]


def test_a_long_name_gives_chains_that_iptables_accepts() -> None:
    long = ["a" * 54, "a" * 53 + "b"]
    tags = {from_dict(Lab, params(lab=owner)).tag for owner in long}
    assert len(tags) == 2
    assert all(len(f"{tag}-guard") <= 28 for tag in tags)


def base(name: str, hook: str = "input", policy: str = "accept", family: str = "inet") -> dict[str, Any]:
    return {"chain": {"family": family, "table": "t", "name": name, "hook": hook, "policy": policy}}


def rule(chain: str, *expressions: dict[str, Any]) -> dict[str, Any]:
    return {"rule": {"family": "inet", "table": "t", "chain": chain, "handle": 1, "expr": list(expressions)}}


REJECT: dict[str, Any] = {"reject": {}}
FROM_EVE = {"match": {"op": "==", "left": {"payload": {"protocol": "ip", "field": "saddr"}}, "right": "203.0.113.7"}}
COUNTER = {"counter": {"packets": 0, "bytes": 0}}


@pytest.mark.parametrize(
    ("ruleset", "refuses"),
    [
        ([base("input", policy="drop")], True),
        ([base("input")], False),
        ([base("input", hook="output", policy="drop")], False),
        ([base("input", policy="drop", family="bridge")], False),
        ([base("input"), rule("input", COUNTER, REJECT)], True),
        ([base("input"), rule("input", FROM_EVE, REJECT)], False),
        ([base("input"), rule("input", {"jump": {"target": "rest"}}), rule("rest", {"drop": None})], True),
        ([base("input"), rule("input", FROM_EVE, {"jump": {"target": "rest"}}), rule("rest", REJECT)], False),
        ([base("input"), rule("input", {"goto": {"target": "rest"}}), rule("rest", {"accept": None})], False),
    ],
)
def test_only_chains_that_refuse_the_rest_are_touched(ruleset: list[dict[str, Any]], refuses: bool) -> None:
    assert bool(nftables.refusing_chains(ruleset)) == refuses


CHAIN = Chain("iptables", "filter", "nm-demo-in", "INPUT", True, ("-j ACCEPT",))
NATIVE = Chain("nft", "inet filter", "nm-demo-input", "input", True, ("accept",))
OPENING = Opening("always", "zone=libvirt", "interface", "baremetal")
WANTED = Firewall((CHAIN, NATIVE), (OPENING,), "present")
TEMPLATE, INSTANCE = "nometal-packet-filter@.service", "nometal-packet-filter@nftables.service"
WITH_UNITS = replace(WANTED, units=(TEMPLATE, INSTANCE))
OPEN, CLOSE = f"open {OPENING}", f"close {OPENING}"
REMOVE, REMOVE_NATIVE = "remove iptables filter nm-demo-in", "remove nft inet filter nm-demo-input"


@pytest.mark.parametrize(
    ("current", "desired", "steps"),
    [
        (None, WANTED, ["write hook entry", "run hook entry", OPEN]),
        (WANTED, WANTED, []),
        (replace(WANTED, hook_entry="outdated"), WANTED, ["write hook entry"]),
        (replace(WANTED, openings=()), WANTED, [OPEN]),
        (replace(WANTED, chains=(CHAIN,)), WANTED, ["run hook entry"]),
        (replace(WANTED, chains=(replace(CHAIN, called=False), NATIVE)), WANTED, ["run hook entry"]),
        (replace(WANTED, chains=(replace(CHAIN, rules=()), NATIVE)), WANTED, ["run hook entry"]),
        (WANTED, Firewall((CHAIN,), (), "present"), [CLOSE, REMOVE_NATIVE]),
        (
            replace(WANTED, chains=(CHAIN, NATIVE, replace(NATIVE, caller="another"))),
            WANTED,
            [REMOVE_NATIVE, "run hook entry"],
        ),
        (None, None, []),
        (WANTED, None, [CLOSE, "delete hook entry", REMOVE, REMOVE_NATIVE]),
        (WANTED, WITH_UNITS, [f"write {TEMPLATE}", f"enable {INSTANCE}"]),
        (WITH_UNITS, WITH_UNITS, []),
        (replace(WITH_UNITS, units=(f"{TEMPLATE}, which is outdated", INSTANCE)), WITH_UNITS, [f"write {TEMPLATE}"]),
        (WITH_UNITS, replace(WANTED, units=(TEMPLATE,)), [f"disable {INSTANCE}"]),
        (Firewall(units=WITH_UNITS.units), None, [f"disable {INSTANCE}", f"delete {TEMPLATE}"]),
        # Killed while it was removed.
        (Firewall((CHAIN,)), None, [REMOVE]),
    ],
)
def test_plan(current: Firewall | None, desired: Firewall | None, steps: list[str]) -> None:
    assert [str(step) for step in plan(current, desired)] == steps


def test_what_is_in_firewalld_is_known_by_its_text() -> None:
    text = rich_rule(Address("192.168.126.1", "192.168.126.0/24"), Ports("udp", 6230, 6232))
    assert text == (
        'rule family="ipv4" destination address="192.168.126.1" port port="6230-6232" protocol="udp" accept'
    )
    opening = Opening("now", "policy=libvirt-to-host", "rich-rule", text)
    assert opening_from(str(opening)) == opening


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"lab": "a b"}, r"lab: must be lower case letters, .* \(got 'a b'\)"),
        ({"bridges": ["x" * 16]}, r"bridges\[0\]: must be at most 15 characters long, the limit of Linux \(got 'x+'\)"),
        (
            {"networks": [{"bridge": "b", "forward": "bridge"}]},
            r"networks\[0\].forward: must be one of .* \(got \'bridge\'\)",
        ),
        (
            {"lab": "A", "networks": [{}], "bridges": ["; reboot"]},
            r"(?s)lab: must be .*networks\[0\].bridge: missing.*networks\[0\].forward: missing.*bridges\[0\]",
        ),
        (
            {"networks": [{"bridge": "b", "forward": "nat", "addresses": [{**V4, "gateway": "10.0.0.1"}]}]},
            r"networks\[0\].addresses\[0\].gateway: must be in 192.168.126.0/24 \(got \'10.0.0.1\'\)",
        ),
        (
            {"networks": [{"bridge": "b", "forward": "nat", "addresses": [{"gateway": "10.0.0.1"}]}]},
            r"networks\[0\].addresses\[0\].cidr: missing; must be a network",
        ),
        (
            {"ports": [{"protocol": "tcp", "port": 0}]},
            r"ports\[0\].port: must be a whole number from 1 to 65535 ",
        ),
    ],
)
def test_bad_input_is_named(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(OperatorError, match=complaint):
        from_dict(Lab, params(**given))
