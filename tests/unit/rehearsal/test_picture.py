"""What the picture of a lab says of its links, and what of that is wrong."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_interface
from typing import Any, Callable

import pytest
from unit.rehearsal import reports

from ansible_collections.nometal.ipi.plugins.module_utils._observe import picture_links
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import Address, Link
from ansible_collections.nometal.ipi.plugins.plugin_utils.rehearsal_report import findings

VETH = Link("nmb-demo", "veth", master="baremetal", peer="nmn-demo", mac="52:54:00:00:00:01")
LINK_LOCAL = Address("nmb-demo", ip_interface("fe80::1/64"))
OWN, OF_ANOTHER = (Address(name, ip_interface("fd00:126::1/64")) for name in ("nmb-demo", "nmn-demo"))


def test_a_veth_is_told_with_its_other_end() -> None:
    assert picture_links.link_of(VETH, [LINK_LOCAL, OF_ANOTHER]) == {
        "kind": "veth",
        "mac": "52:54:00:00:00:01",
        "mtu": 1500,
        "up": True,
        "carrier": True,
        "master": "baremetal",
        "peer": "nmn-demo",
        "addresses": [],
    }
    assert picture_links.link_of(VETH, [LINK_LOCAL, OWN])["addresses"] == ["fd00:126::1/64"]


def test_a_name_in_another_namespace_is_no_peer() -> None:
    assert picture_links.link_of(replace(VETH, peer=None))["peer"] is None
    assert picture_links.link_of(replace(VETH, kind="vlan"))["peer"] is None


@pytest.mark.parametrize(
    ("link", "kind"),
    [
        (Link("eth0"), "physical"),
        (Link("lo", hardware="loopback"), "loopback"),
        (Link("vnet0", "tun", tap=True), "tap"),
        (Link("baremetal", "bridge", forward_delay=0), "bridge"),
    ],
)
def test_kinds(link: Link, kind: str) -> None:
    assert picture_links.link_of(link)["kind"] == kind


def test_only_what_concerns_the_lab_is_kept() -> None:
    links = {
        "baremetal": reports.link("bridge"),
        "stranger": reports.link("tap", "baremetal"),
        "astray": reports.link("tap", "virbr0"),
        "virbr0": reports.link("bridge"),
        "eth1": reports.link("physical"),
    }
    assert set(picture_links.concerning(links, {"baremetal", "astray"})) == set(links) - {"eth1"}


def test_nothing_is_wrong_with_a_lab_that_is_well() -> None:
    assert findings.in_picture(reports.picture()) == []


def changed(name: str, **values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda picture: picture["links"][name].update(values)


def gone(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda picture: picture["links"].pop(name)


def of_vm(who: str, **values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda picture: picture["vms"][who].update(values)


def of_nic(who: str, **values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda picture: picture["vms"][who]["nics"][0].update(values)


def of_network(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda picture: picture["networks"][0].update(values)


@pytest.mark.parametrize(
    ("spoil", "place", "told"),
    [
        (changed("nmb-demo", up=False), "link nmb-demo", "nmb-demo is down"),
        (changed("nmb-demo", carrier=False), "link nmb-demo", "nmb-demo has no carrier"),
        (changed("nmb-demo", master=None), "link nmb-demo", "nmb-demo is on no bridge, not on baremetal"),
        (changed("nmn-demo", mtu=1400), "link nmn-demo", "nmn-demo has MTU 1400, not 1500"),
        (changed("nmn-demo", peer=None), "link nmn-demo", "nmn-demo leads to elsewhere, not to nmb-demo"),
        (gone("nmn-demo"), "link nmn-demo", "nmn-demo is not there"),
        (gone("baremetal"), "bridge baremetal", "baremetal is not there"),
        (changed("baremetal", carrier=False), "bridge baremetal", "baremetal has no carrier"),
        (changed("baremetal", kind="dummy"), "bridge baremetal", "baremetal must be a bridge, is dummy"),
        (gone("nm-demo"), "network nometal-demo", "libvirt network nometal-demo has lost its bridge nm-demo"),
        (of_network(state="inactive"), "network nometal-demo", "libvirt network nometal-demo is not active"),
        (
            of_network(dnsmasq=False),
            "network nometal-demo",
            "libvirt network nometal-demo has no dnsmasq: no DHCP, no DNS",
        ),
        (gone("vnet4"), "nic worker-0", "worker-0: tap vnet4 is missing"),
        (changed("vnet4", up=False), "nic worker-0", "worker-0: tap vnet4 is down"),
        (changed("vnet4", master="virbr0"), "nic worker-0", "worker-0: tap vnet4 is on virbr0, not on baremetal"),
        (changed("vnet4", mtu=9000), "nic worker-0", "worker-0: tap vnet4 has MTU 9000, its bridge 1500"),
        (
            of_nic("worker-0", unplugged=True),
            "nic worker-0",
            "worker-0: 52:54:00:00:00:04 is unplugged (link state down)",
        ),
        (of_vm("worker-0", state="missing", nics=[]), "vm worker-0", "worker-0 is not there: libvirt has no such VM"),
        (of_vm("worker-0", state="crashed", nics=[]), "vm worker-0", "worker-0 is crashed"),
    ],
)
def test_what_is_wrong_is_told_where_it_is(spoil: Callable[[dict[str, Any]], None], place: str, told: str) -> None:
    picture = reports.picture()
    spoil(picture)
    assert [(each.place, str(each)) for each in findings.in_picture(picture)] == [(place, told)]


def test_an_end_that_is_down_does_not_blame_the_other() -> None:
    picture = reports.picture()
    picture["links"]["nmb-demo"].update(up=False, carrier=False)
    picture["links"]["nmn-demo"].update(carrier=False)
    assert [str(each) for each in findings.in_picture(picture)] == ["nmb-demo is down"]


def test_a_vm_that_is_off_needs_no_tap_and_the_bootstrap_vm_may_be_gone() -> None:
    picture = reports.picture()
    picture["vms"]["worker-0"].update(state="off", nics=[reports.nic(4, tap=None)])
    picture["vms"]["bootstrap"].update(state="missing", nics=[])
    assert findings.in_picture(picture) == []


def test_what_is_wrong_with_one_vm_does_not_depend_on_others() -> None:
    picture = reports.picture()
    del picture["links"]["vnet1"]
    picture["vms"]["worker-0"].update(state="off", nics=[reports.nic(4, tap=None)])
    assert [str(each) for each in findings.in_picture(picture)] == ["control-plane-0: tap vnet1 is missing"]


def test_a_bmc_to_which_nobody_listens() -> None:
    picture = reports.picture()
    silent = {"address": "fd00::1", "port": 8000, "protocol": "tcp", "listening": False, "by": []}
    picture["bmc"] += [silent, {**silent, "port": 8001, "listening": None}]
    assert [str(each) for each in findings.in_picture(picture)] == [
        "BMC service: nothing listens on [fd00::1]:8000/tcp"
    ]


def test_failed_checks_have_their_place_in_the_picture() -> None:
    report = reports.report()
    reports.fail(report, "installer's bridge", "host")
    reports.fail(report, "names on the host", "host")
    reports.fail(report, "way out", "bootstrap")
    reports.fail(report, "names", "bootstrap", "worker-0")
    reports.fail(report, "BMC login", "worker-0", "control-plane-0")
    assert findings.in_checks(report["picture"], report["checks"]) == {
        "bridge baremetal": ["installer's bridge"],
        "host": ["names on the host"],
        "uplink": ["way out"],
        "vm bootstrap": ["names"],
        "vm worker-0": ["names"],
        "bmc": ["BMC login: control-plane-0 and worker-0"],
    }
