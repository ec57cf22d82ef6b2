"""From what failed, and what the host shows, to the cause."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from unit.rehearsal.samples import lab_evidence, lab_of

from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal import causes
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.evidence import Door
from ansible_collections.nometal.ipi.plugins.module_utils._checks.rehearsal.observations import FAILED, HOST, Check
from ansible_collections.nometal.ipi.plugins.module_utils._lab.vm import Start
from ansible_collections.nometal.ipi.plugins.module_utils._observe import packet_filter
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import Link
from ansible_collections.nometal.ipi.plugins.module_utils._observe.packet_filter import Rule

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab

GATEWAY = "192.168.126.1"


def failed(check: str, who: str = "bootstrap", **facts: Any) -> Check:
    return Check(check, who, FAILED, facts=facts)


NO_ADDRESS = failed("address", addresses=[], servers=[])
SILENT_BMC = failed("BMC answers", "worker-0", step="bmc", failure="silent")


def explained(check: Check, /, lab: Lab | None = None, **evidence: Any) -> Check:
    lab = lab or lab_of()
    [found] = causes.explained(lab, replace(lab_evidence(lab), **evidence), [check])
    return found


def advice(check: Check, /, lab: Lab | None = None, **evidence: Any) -> str:
    return explained(check, lab, **evidence).advice


def cause(check: Check, /, lab: Lab | None = None, **evidence: Any) -> tuple[str, dict[str, Any]] | None:
    found = explained(check, lab, **evidence).cause
    return (found.code, dict(found.facts)) if found else None


def link_with(name: str, **values: Any) -> dict[str, Link]:
    links = dict(lab_evidence(lab_of()).links)
    return {**links, name: replace(links[name], **values)}


def test_a_broken_path_is_the_cause_of_whatever_needs_it() -> None:
    without = {name: link for name, link in lab_evidence(lab_of()).links.items() if name != "nmb-rehearsal"}
    for check in (NO_ADDRESS, SILENT_BMC, failed("installer's bridge", HOST)):
        assert "Link nmb-rehearsal is down" in advice(check, links=link_with("nmb-rehearsal", up=False))
        assert "Link nmb-rehearsal is on br9" in advice(check, links=link_with("nmb-rehearsal", master="br9"))
        assert "Link nmb-rehearsal is gone" in advice(check, links=without)
        assert "network nometal-rehearsal is not running" in advice(check, networks={})
        link = {"link": "nmb-rehearsal"}
        assert cause(check, links=link_with("nmb-rehearsal", up=False)) == ("path.link-down", link)
        assert cause(check, links=link_with("nmb-rehearsal", master="br9")) == (
            "path.link-elsewhere",
            {**link, "on": "br9", "bridge": "baremetal"},
        )
        assert cause(check, links=without) == ("path.link-gone", {**link, "bridges": ["nm-rehearsal", "baremetal"]})
        assert cause(check, networks={}) == ("path.network-stopped", {"network": "nometal-rehearsal"})


def test_a_pool_that_is_used_up_is_the_cause_of_no_address() -> None:
    leases = [(f"192.168.126.{number}", f"52:54:00:00:00:{number:02d}") for number in range(10, 18)]
    assert "is used up: its 8 addresses are leased to 52:54:00:00:00:10" in advice(NO_ADDRESS, leases=leases)
    assert "is used up" not in advice(NO_ADDRESS, leases=leases[1:])
    assert cause(NO_ADDRESS, leases=leases) == (
        "dhcp.pool-used-up",
        {"start": "192.168.126.10", "end": "192.168.126.17", "size": 8, "macs": [mac for _address, mac in leases]},
    )


def test_who_filters_the_bmcs_port_is_named() -> None:
    assert "filtered between them (firewalld, zone libvirt)" in advice(SILENT_BMC)
    doors = [Door(GATEWAY, 8000, "Connection refused")]
    assert "service nometal-bmc-rehearsal does not run" in advice(SILENT_BMC, bmc_doors=doors)
    certificate = failed("BMC answers", "worker-0", step="bmc", failure="certificate")
    assert "not of the lab's own CA" in advice(certificate)
    place = {"host": GATEWAY, "port": 8000}
    assert cause(SILENT_BMC) == (
        "bmc.filtered",
        {**place, "bridge": "baremetal", "firewall": "firewalld, zone libvirt"},
    )
    assert cause(SILENT_BMC, bmc_doors=doors) == ("bmc.no-service", {**place, "service": "nometal-bmc-rehearsal"})
    assert cause(certificate) == ("bmc.certificate", {"ca": "/var/lib/nometal/bmc/rehearsal/tls/ca.pem"})
    assert cause(failed("BMC answers", "worker-0", step="bmc", failure="")) is None


def test_a_link_with_a_smaller_mtu_is_named() -> None:
    check = failed("full-size frames")
    assert "MTU of nmn-rehearsal is 1400, that of the lab 1500" in advice(
        check, links=link_with("nmn-rehearsal", mtu=1400)
    )


def test_a_second_server_is_named_with_its_mac() -> None:
    check = failed("DHCP servers", servers=[GATEWAY, "192.168.126.66"])
    neighbours = {"192.168.126.66": "52:54:00:66:66:66"}
    assert "192.168.126.66 (52:54:00:66:66:66)" in advice(check, neighbours=neighbours)
    server = {"address": "192.168.126.66", "mac": "52:54:00:66:66:66", "machine": ""}
    facts = {"server": server, "bridge": "baremetal"}
    assert cause(check, neighbours=neighbours) == ("dhcp.second-server", facts)
    assert cause(failed("DHCP servers", servers=[GATEWAY])) is None


def test_a_host_that_does_not_forward_is_the_cause_of_no_way_out() -> None:
    check = failed("way out")
    assert "does not forward ipv4 packets: `sysctl net.ipv4.ip_forward=1`" in advice(check, forwarding={"ipv4": False})


def test_a_foreign_lease_is_the_second_servers() -> None:
    check = failed("address", addresses=["192.168.126.200"], servers=["192.168.126.66"])
    assert "A second DHCP server, 192.168.126.66, answers on baremetal" in advice(check)
    server = {"address": "192.168.126.66", "mac": "", "machine": ""}
    assert cause(check) == ("dhcp.foreign-lease", {"server": server, "bridge": "baremetal"})


def test_the_ends_of_the_pair_are_named_before_the_bridges_that_follow_them() -> None:
    links = {**link_with("nmb-rehearsal", mtu=1400), "baremetal": Link("baremetal", "bridge", mtu=1400)}
    check = failed("full-size frames")
    assert "MTU of nmb-rehearsal is 1400" in advice(check, links=links)
    port = Link("eth7", mtu=1400, master="baremetal")
    tap = replace(port, name="vnet0", kind="tun")
    of_others = {**link_with("baremetal", mtu=1400), "vnet0": tap, "eth7": port}
    assert "MTU of eth7 is 1400" in advice(check, links=of_others)


def test_addresses_that_are_no_longer_translated_are_named_where_rules_can_be_read() -> None:
    check = failed("way out")
    other = [Rule("table ip nat, chain POSTROUTING", "ip saddr 192.168.200.0/24 masquerade")]
    assert "translate 192.168.126.0/24 are gone" in advice(check, rules=other)
    assert "check its firewall" in advice(check, rules=())
    assert "check its firewall" in advice(check)


def test_a_record_that_libvirt_does_not_have_is_told_from_a_server_that_does_not_know_it() -> None:
    name = "api.rehearsal.lab.example.test"
    wrong = [
        failed("names", names=[name], unanswered=False),
        failed("reverse names", names=[name], unanswered=False),
        failed("names on the host", HOST, names=[name], addresses=[]),
    ]
    for check in wrong:
        assert f"nometal-rehearsal has no DNS record of {name}. " in advice(check, records=set())
        assert "no DNS record" not in advice(check)
        assert "it does not run" in advice(check, name_server="no answer")
        facts = {"network": "nometal-rehearsal", "names": [name]}
        assert cause(check, records=set()) == ("dns.record-missing", facts)
        assert cause(check, name_server="no answer") == ("dns.server-silent", {"server": GATEWAY})
    assert "The host's resolver does not ask" in advice(wrong[2])


def test_who_filters_the_name_server_is_named() -> None:
    rule = Rule("table inet mine, chain input", "udp dport 53 drop")
    check = failed("names", names=["api"], unanswered=True)
    assert cause(check, rules=[rule]) == ("dns.filtered", {"server": GATEWAY, "rule": str(rule)})
    assert cause(failed("names", names=["api"], unanswered=False), rules=[rule]) is None
    assert "answers the host, but not the lab: the packet filter has `udp dport 53 drop`" in advice(check, rules=[rule])


def test_who_has_a_virtual_address_is_named_as_far_as_it_is_known() -> None:
    check = failed("virtual addresses free", addresses=["192.168.126.5"])
    mac = "52:54:00:77:77:77"
    neighbours = {"192.168.126.5": mac}
    assert "Choose other machine_network.vips" in advice(check)
    assert f"Already used: 192.168.126.5 ({mac}). " in advice(check, neighbours=neighbours)
    known = advice(check, neighbours=neighbours, machines={mac: "VM other-bootstrap"})
    assert f"Already used: 192.168.126.5 ({mac}, VM other-bootstrap of this host). " in known
    holder = {"address": "192.168.126.5", "mac": mac, "machine": ""}
    assert cause(check, neighbours=neighbours) == ("vip.held", {"holders": [holder]})


BMC_RULE = Rule("table ip filter, chain INPUT", 'iifname "nm-rehearsal" tcp dport { 443, 8000 } drop')
HTTP_RULE = Rule("table ip filter, chain OUTPUT", "ip daddr 192.168.126.5 tcp dport 6180 drop")


def test_the_rule_that_filters_is_named() -> None:
    assert f"it is filtered between them, by {BMC_RULE}" in advice(SILENT_BMC, rules=[BMC_RULE])
    for check in (
        failed("power and media", "worker-0", step="insert", failure=""),
        failed("virtual addresses", HOST, urls=["http://192.168.126.5:6180"]),
    ):
        assert str(HTTP_RULE) in advice(check, rules=[BMC_RULE, HTTP_RULE])
        assert "chain" not in advice(check, rules=[BMC_RULE])
    assert cause(failed("power and media", "worker-0", step="power on", failure=""), rules=[HTTP_RULE]) is None


FROM_MEDIUM, FROM_DISK = "boots from its medium", "boots from its disk"
RIGHT = Start(order=["cdrom", "disk", "interface"], medium="/a.iso", unplugged=[], read_only=[])
WRONG = "vm.wrong-start"
STARTS: dict[str, tuple[str, Start | None, str, str]] = {
    "off": (FROM_MEDIUM, None, "The VM was off", "vm.off"),
    "unplugged": (
        FROM_MEDIUM,
        replace(RIGHT, unplugged=["52:54:00:00:00:01"]),
        "52:54:00:00:00:01 is unplugged",
        "vm.unplugged",
    ),
    "empty drive": (FROM_MEDIUM, replace(RIGHT, medium=""), "an empty drive, although its BMC had inserted", WRONG),
    "disk first": (
        FROM_MEDIUM,
        replace(RIGHT, order=["disk"]),
        "boot order disk, although its BMC was told cdrom",
        WRONG,
    ),
    "as it should": (FROM_MEDIUM, RIGHT, "Its console shows how far it came", ""),
    "not ejected": (
        FROM_DISK,
        RIGHT,
        "/a.iso in its drive, although its BMC had ejected it, and with the boot order cdrom",
        WRONG,
    ),
    "no order": (FROM_DISK, replace(RIGHT, medium="", order=[]), "of nothing, although its BMC was told disk", WRONG),
}


@pytest.mark.parametrize(("check", "start", "told", "code"), STARTS.values(), ids=STARTS)
def test_how_libvirt_started_the_vm_is_told_where_it_is_not_as_the_bmc_was_told(
    check: str, start: Start | None, told: str, code: str
) -> None:
    found = explained(failed(check, "worker-0"), starts={("worker-0", check): start})
    assert told in found.advice
    assert (found.cause.code if found.cause else "") == code


@pytest.mark.parametrize(
    ("order", "told"),
    [
        (["interface", "disk"], "Its console shows how far it came"),
        (["disk"], "boot order disk, although its BMC was told interface"),
    ],
)
def test_who_boots_by_network_is_told_to_begin_there(order: list[str], told: str) -> None:
    lab = lab_of(bmc={"protocol": "ipmi"}, provisioning_network={"mode": "managed", "cidr": "172.22.0.0/24"})
    starts = {("worker-0", FROM_MEDIUM): replace(RIGHT, order=order, medium="")}
    assert told in advice(failed(FROM_MEDIUM, "worker-0"), lab, starts=starts)


def test_a_disk_that_libvirt_gives_read_only_is_told_from_one_that_is_so_by_itself() -> None:
    check = failed("disk written", "worker-0", device="/dev/sda", is_read_only=True)
    starts = {("worker-0", FROM_MEDIUM): replace(RIGHT, read_only=["sda"])}
    assert "take <readonly/> out with `virsh edit rehearsal-worker-0`" in advice(check, starts=starts)
    assert "see where its file lies" in advice(check)
    facts = {"vm": "rehearsal-worker-0", "disk": "sda"}
    assert cause(check, starts=starts) == ("disk.given-read-only", facts)
    assert cause(check) == ("disk.read-only", {})
    assert cause(failed("disk written", "worker-0", device="/dev/sda", is_read_only=False), starts=starts) is None


def test_where_nothing_can_reach_anything_is_known_at_a_glance() -> None:
    lab = lab_of()
    assert causes.no_path(lab, lab_evidence(lab)) == ""
    broken = replace(lab_evidence(lab), links=link_with("nmb-rehearsal", up=False))
    assert causes.no_path(lab, broken) == "Link nmb-rehearsal is down"


NFT = """
table ip filter {
	chain INPUT {
		type filter hook input priority filter; policy accept;
		iifname "nm-demo" tcp dport 8000 counter packets 3 bytes 180 drop
	}
}
table inet mine {
	set there {
		type ipv4_addr
	}
	chain one {
		ip saddr 192.168.126.0/24 masquerade
	}
}"""
IPTABLES = """
*filter
:INPUT ACCEPT [0:0]
-A INPUT -i nm-demo -p tcp -m tcp --dport 8000 -j DROP
COMMIT
*nat
-A POSTROUTING -s 192.168.126.0/24 -j MASQUERADE
COMMIT"""


REFUSING = """
table ip filter {
	chain INPUT {
		type filter hook input priority filter; policy accept;
		counter packets 1 bytes 60 jump %s
		counter packets 3 bytes 180 reject with icmp port-unreachable
	}
	chain FORWARD {
		type filter hook forward priority filter; policy drop;
	}
}"""
REFUSING_LEGACY = "*filter\n:INPUT DROP [0:0]\n:FORWARD ACCEPT [0:0]\n:mine - [0:0]\n-A INPUT -i lo -j ACCEPT\nCOMMIT"


def test_what_refuses_all_is_the_cause_unless_the_lab_is_let_through_before() -> None:
    silent = [failed(name) for name in ("address", "DHCP servers", "gateway", "names")]
    ways = [failed(name) for name in ("way out", "other nodes")]
    legacy = packet_filter.of_iptables(REFUSING_LEGACY)
    alone, beside = (packet_filter.of_nft(REFUSING % jump) for jump in ("mine", "nm-rehearsal-in"))
    masking = Rule("table ip nat, chain x", "ip saddr 192.168.126.0/24 masquerade")
    for check in silent:
        assert "by `policy DROP` in table legacy filter, chain INPUT" in advice(check, rules=legacy)
        assert "by `reject with icmp port-unreachable` in table ip filter, chain INPUT" in advice(check, rules=alone)
        assert "packet filter refuses" not in advice(check, rules=beside)
        assert "network nometal-rehearsal are gone from the packet filter (iptables filter INPUT)" in advice(
            check, lost_rules=["iptables filter INPUT"]
        )
    for check in ways:
        assert "by `policy drop` in table ip filter, chain FORWARD" in advice(check, rules=[*alone, masking])
        assert "packet filter refuses" not in advice(check, rules=[*legacy, masking])


def test_rules_are_read_as_nft_and_the_old_iptables_show_them() -> None:
    assert packet_filter.of_nft(NFT) == [
        Rule("table ip filter, chain INPUT", 'iifname "nm-demo" tcp dport 8000 drop'),
        Rule("table inet mine, chain one", "ip saddr 192.168.126.0/24 masquerade"),
    ]
    for rules in (packet_filter.of_nft(NFT), packet_filter.of_iptables(IPTABLES)):
        assert [rule.refuses and rule.is_about(8000) for rule in rules] == [True, False]
        assert not rules[0].is_about(800)


def test_a_lab_without_a_veth_pair_lacks_none() -> None:
    lab = lab_of(machine_network={"cidr": "192.168.126.0/24", "topology": "direct"})
    assert "gone" not in advice(NO_ADDRESS, lab)


def test_a_full_host_is_no_filtered_one() -> None:
    check = failed("power and media", "worker-0", step="insert", failure="no-room")
    assert "no room for the image in libvirt's pool nometal-rehearsal-media" in advice(check)
    assert cause(check) == ("medium.no-room", {"pool": "nometal-rehearsal-media"})


def test_a_time_server_that_is_the_host_itself_is_named_as_such() -> None:
    told = advice(failed("time", silent_servers=[GATEWAY]))
    assert f"{GATEWAY} is this host, on which nothing tells the time" in told
    assert "this host" not in advice(failed("time", silent_servers=["192.0.2.1"]))


def test_every_row_is_there_once_and_for_checks_that_there_are() -> None:
    codes = [row.code for row in causes.CAUSES]
    assert len(codes) == len(set(codes)) > 25
    assert {check for row in causes.CAUSES for check in row.checks} <= {
        *causes.ADVICE,
        "BMC answers",
        "address from its disk",
    }
