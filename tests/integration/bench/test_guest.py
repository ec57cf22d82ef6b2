"""What a guest of the tests promises."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support import guest, private_libvirtd
from support.guest import GuestFailed
from support.waiting import stays

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.guest import Guest
    from support.private_libvirtd import PrivateLibvirtd

ONE, TWO = "52:54:00:00:00:01", "52:54:00:00:00:02"
ROUTES = "0.0.0.0/0,192.168.150.1,10.9.0.0/16,192.168.150.9"
NETWORK = f"""
<network xmlns:dnsmasq='http://libvirt.org/schemas/network/dnsmasq/1.0'>
  <name>lan</name><forward mode='nat'><nat ipv6='yes'/></forward><bridge name='lan0' delay='0'/>
  <domain name='lan.test' localOnly='yes'/>
  <dns>
    <txt name='note.lan.test' value='some words'/>
    <srv service='etcd' protocol='tcp' domain='lan.test' target='one.lan.test' port='2380' priority='0' weight='10'/>
    <host ip='fd00:1::20'><hostname>one.lan.test</hostname></host>
  </dns>
  <ip address='192.168.150.1' prefix='24'><dhcp>
    <range start='192.168.150.100' end='192.168.150.109'/><host mac='{ONE}' name='one' ip='192.168.150.20'/>
  </dhcp></ip>
  <ip family='ipv6' address='fd00:1::1' prefix='64'><dhcp>
    <range start='fd00:1::100' end='fd00:1::1ff'/><host id='00:03:00:01:{ONE}' name='one' ip='fd00:1::20'/>
  </dhcp></ip>
  <dnsmasq:options>
    <dnsmasq:option value='no-ping'/>
    <dnsmasq:option value='dhcp-option=option:classless-static-route,{ROUTES}'/>
    <dnsmasq:option value='dhcp-option=option:ntp-server,192.168.150.7'/>
  </dnsmasq:options>
</network>
"""


@pytest.fixture(scope="module")
def libvirtd() -> Iterator[PrivateLibvirtd]:
    with private_libvirtd.start() as started:
        started.run(["virsh", "net-create", "/dev/stdin"], input=NETWORK)
        yield started


@pytest.fixture(scope="module")
def guests(libvirtd: PrivateLibvirtd) -> Iterator[tuple[Guest, Guest]]:
    with (
        guest.start(libvirtd, name="one", network="lan", mac=ONE) as one,
        guest.start(libvirtd, name="two", bridge="lan0", mac=TWO) as two,
    ):
        yield one, two


def test_it_takes_what_dhcp_gives(guests: tuple[Guest, Guest]) -> None:
    one, two = guests
    assert one.lease4.address == "192.168.150.20"
    assert one.lease4.routes == {"0.0.0.0/0": "192.168.150.1", "10.9.0.0/16": "192.168.150.9"}
    assert one.lease4.ntp_servers == ["192.168.150.7"]
    assert one.lease4.name_servers == ["192.168.150.1"]
    assert "10.9.0.0/16 via 192.168.150.9" in one.routes()
    assert two.lease4.address.startswith("192.168.150.10")
    assert two.lease4.seconds > 0


def test_it_takes_what_dhcpv6_and_router_advertisements_give(guests: tuple[Guest, Guest]) -> None:
    one, two = guests
    assert one.lease6.address == "fd00:1::20"  # known by its DUID
    assert one.lease6.name_servers == ["fd00:1::1"]
    assert one.has_route("default via fe80::")
    assert {two.lease4.address, two.lease6.address} == {*two.addresses()}
    assert one.reaches(two.lease6.address)


def test_it_looks_names_up(guests: tuple[Guest, Guest]) -> None:
    one, _two = guests
    assert one.lease4
    assert one.lease6
    assert one.resolve("one.lan.test") == ["192.168.150.20"]
    assert one.resolve("one.lan.test", "aaaa") == ["fd00:1::20"]
    assert one.resolve("192.168.150.20", "ptr") == ["one.lan.test"]
    assert one.resolve("fd00:1::20", "ptr") == ["one.lan.test"]
    assert one.resolve("_etcd._tcp.lan.test", "srv") == ["0 10 2380 one.lan.test"]
    assert one.resolve("note.lan.test", "txt") == ["some words"]
    assert one.resolve("nobody.lan.test") == []
    assert one.resolve("one.lan.test", server="fd00:1::1") == ["192.168.150.20"]


def test_a_stream_tells_how_long_it_was_interrupted(libvirtd: PrivateLibvirtd, guests: tuple[Guest, Guest]) -> None:
    one, two = guests
    two.echo(7)
    [tap, *_] = libvirtd.run(["virsh", "domiflist", "two"]).stdout.splitlines()[2].split()
    with one.stream(two.lease4.address, 7) as stream:
        stream.assert_goes_on()
        libvirtd.run(["ip", "link", "set", tap, "nomaster"])
        assert not one.reaches(two.lease4.address, seconds=1)
        last = stream.lines()
        stays("nothing comes back", lambda: stream.lines() == last, 0.5)
        libvirtd.run(["ip", "link", "set", tap, "master", "lan0"])
        stream.assert_goes_on()
        assert stream.longest_gap() > 0.5
    assert one.connects(two.lease4.address, 7)
    assert not one.connects(two.lease4.address, 8)
    assert not one.reaches("192.168.150.77", seconds=1)


def test_it_asks_for_its_lease_again(libvirtd: PrivateLibvirtd, guests: tuple[Guest, Guest]) -> None:
    _one, two = guests
    pooled = two.lease4.address
    assert two.renew().address == pooled
    host = f"<host mac='{TWO}' ip='192.168.150.21'/>"
    libvirtd.run(["virsh", "net-update", "lan", "add", "ip-dhcp-host", host, "--parent-index", "0"])
    two.rejoin(asks_every=60)
    assert two.lease4.address == "192.168.150.21"
    assert two.times_asked() == 1
    assert two.lease6.address


def test_what_fails_says_why(guests: tuple[Guest, Guest]) -> None:
    one, _two = guests
    with pytest.raises(GuestFailed, match=r"(?s)cat /nothing.*No such file"):
        one.run("cat /nothing")
    assert one.run("exit 3", check=False).returncode == 3
    assert one.run("echo begun; sleep 60", check=False, timeout=1).stdout.startswith("begun\n")
    assert one.run("echo still there").stdout == "still there\n"


def test_it_is_gone_afterwards_and_tells_of_a_lease_it_did_not_get(libvirtd: PrivateLibvirtd) -> None:
    libvirtd.run(["ip", "link", "add", "lonely", "type", "bridge"])
    libvirtd.run(["ip", "link", "set", "lonely", "up"])
    with guest.start(libvirtd, name="three", bridge="lonely", mac="52:54:00:00:00:03") as three:
        assert not three.has_lease(4)
        with pytest.raises(GuestFailed, match="three got no IPv4 lease in 1 s"):
            three.lease(4, seconds=1)
        assert "three" in libvirtd.run(["virsh", "list", "--name"]).stdout
    assert "three" not in libvirtd.run(["virsh", "list", "--all", "--name"]).stdout
