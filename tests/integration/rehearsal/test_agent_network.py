"""How the rehearsal's guests join networks and ask questions, against real dnsmasq, kernels and bridges."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from support import private_libvirtd, rehearsal_card

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.private_libvirtd import PrivateLibvirtd
    from support.rehearsal_card import Card

MAC = "52:54:00:00:00:01"
NETWORK = f"""
<network xmlns:dnsmasq='http://libvirt.org/schemas/network/dnsmasq/1.0'>
  <name>demo</name><bridge name='nm-demo' stp='off'/><domain name='demo.test' localOnly='yes'/>
  <dns>
    <host ip='192.168.150.5'><hostname>api.demo.test</hostname></host>
    <host ip='fd00:150::5'><hostname>api.demo.test</hostname></host>
  </dns>
  <ip address='192.168.150.1' netmask='255.255.255.0'>
    <dhcp>
      <range start='192.168.150.100' end='192.168.150.120'/>
      <host mac='{MAC}' name='one' ip='192.168.150.31'/>
    </dhcp>
  </ip>
  <ip family='ipv6' address='fd00:150::1' prefix='64'>
    <dhcp>
      <range start='fd00:150::100' end='fd00:150::120'/><host id='00:03:00:01:{MAC}' name='one' ip='fd00:150::31'/>
    </dhcp>
  </ip>
  <dnsmasq:options>
    <dnsmasq:option value='dhcp-option=121,10.0.0.0/19,192.168.150.9,0.0.0.0/0,192.168.150.1'/>
  </dnsmasq:options>
</network>"""
SERVERS = ["192.168.150.1", "fd00:150::1"]
ROGUE = [
    *(
        "dnsmasq",
        "--keep-in-foreground",
        "--conf-file=/dev/null",
        "--user=root",
        "--port=0",
        "--pid-file=",
        "--no-ping",
    ),
    *("--interface=rogue", "--bind-interfaces", "--dhcp-leasefile=/run/rogue.leases"),
    "--dhcp-range=192.168.150.200,192.168.150.210",
]


@pytest.fixture(scope="module")
def libvirtd() -> Iterator[PrivateLibvirtd]:
    with private_libvirtd.start() as started:
        started.run(["virsh", "net-create", "/dev/stdin"], input=NETWORK)
        yield started


@pytest.fixture(scope="module")
def card(libvirtd: PrivateLibvirtd) -> Iterator[Card]:
    with rehearsal_card.start(libvirtd, bridge="nm-demo", mac=MAC) as started:
        yield started


@pytest.fixture(scope="module")
def joined(card: Card) -> dict[str, Any]:
    [told] = card.run("told = network.join(['ipv4', 'ipv6'], 1.0)")
    return told


def test_reservations_of_both_families_are_taken(card: Card, joined: dict[str, Any]) -> None:
    assert joined["dhcp4"]["address"] == "192.168.150.31"
    assert joined["dhcp6"]["address"] == "fd00:150::31"
    assert joined["router_advertised"]
    assert joined["dhcp4"]["hostname"] == "one"
    assert joined["dhcp6"]["hostname"] == "one.demo.test"
    assert {"192.168.150.31", "fd00:150::31"} <= set(card.run("told = links.addresses('eth0')"))


def test_classless_routes_count(card: Card, joined: dict[str, Any]) -> None:
    routes = card.run("told = links.routes()")
    assert ["10.0.0.0/19", "192.168.150.9"] in routes
    assert ["default", "192.168.150.1"] in routes
    assert joined["servers4"] == ["192.168.150.1"]
    assert len(joined["servers6"]) == 1


def test_a_card_that_is_known_by_its_prefix_only_gets_an_address_of_the_pool(libvirtd: PrivateLibvirtd) -> None:
    with rehearsal_card.start(libvirtd, bridge="nm-demo", mac="52:54:00:00:00:02") as other:
        [told] = other.run("told = network.join(['ipv4'])")
    assert 100 <= int(told["dhcp4"]["address"].rpartition(".")[2]) <= 120


@pytest.mark.parametrize("server", SERVERS)
def test_names_are_asked_both_ways(card: Card, joined: dict[str, Any], server: str) -> None:
    asked = f"""
told = [lookups.addresses_of('api.demo.test', {server!r}), lookups.addresses_of('nobody.demo.test', {server!r}),
        lookups.names_of('192.168.150.5', {server!r}), lookups.names_of('fd00:150::5', {server!r})]"""
    api = ["192.168.150.5", "fd00:150::5"]
    assert card.run(asked) == [
        [api, ""],
        [[], "no such name"],
        [["api.demo.test"], ""],
        [["api.demo.test"], ""],
    ]


@pytest.mark.parametrize("server", SERVERS)
def test_full_size_frames_pass_and_larger_ones_do_not(card: Card, joined: dict[str, Any], server: str) -> None:
    asked = f"told = [pings.ping({server!r}, 2, size).trouble for size in (0, 1500, 1600)]"
    assert card.run(asked) == ["", "", "Message too long"]


def test_what_is_not_there_is_told_as_such(card: Card, joined: dict[str, Any]) -> None:
    asked = """
told = [pings.ping('192.168.150.77', 0.5).trouble, lookups.addresses_of('api.demo.test', '192.168.150.77', 0.2),
        lookups.clock_of('192.168.150.1', 0.2)]"""
    assert card.run(asked) == ["no answer", [[], "no answer"], None]


def test_a_taken_address_is_announced_so_that_neighbours_that_knew_another_holder_follow(
    libvirtd: PrivateLibvirtd, card: Card, joined: dict[str, Any]
) -> None:
    for address, prefix in (("192.168.150.5", 32), ("fd00:150::5", 128)):
        stale = ["lladdr", "52:54:00:00:00:99", "dev", "nm-demo", "nud", "stale"]
        libvirtd.run(["ip", "neigh", "replace", address, *stale])
        take = f"links.add_address('eth0', {address!r}, {prefix}); pings.announce('eth0', {MAC!r}, {address!r})"
        card.run(f"{take}; told = 0")
        known = libvirtd.run(["ip", "neigh", "show", address]).stdout
        assert f"lladdr {MAC}" in known, known


def test_a_second_dhcp_server_is_heard(libvirtd: PrivateLibvirtd) -> None:
    make = (
        "ip link add rogue type veth peer name rogue-port; ip link set rogue-port master nm-demo up; "
        "ip link set rogue up; ip address add 192.168.150.66/24 dev rogue noprefixroute"
    )
    libvirtd.run(["sh", "-ec", make])
    server = subprocess.Popen(libvirtd.command(ROGUE))
    try:
        with rehearsal_card.start(libvirtd, bridge="nm-demo", mac="52:54:00:00:00:03") as third:
            [told] = third.run("told = network.join(['ipv4'], 3.0)")
        assert "192.168.150.66" in told["servers4"]
    finally:
        server.terminate()
        server.wait()
        libvirtd.run(["ip", "link", "delete", "rogue"])
