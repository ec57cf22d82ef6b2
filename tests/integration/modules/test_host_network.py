"""router_advertisements and host_forwarding in a network namespace, with files of the test's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support import private_libvirtd
from support.modules import run_beside

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.private_libvirtd import PrivateLibvirtd

# A device that has learnt a route, and one that has none.
SETUP = """
ip link add ra type bridge && ip link add other type bridge && ip link set ra up
echo 1 >/proc/sys/net/ipv6/conf/ra/accept_ra
ip -6 route add fd00:99::/64 dev ra proto ra
"""
TABLES = "cat /proc/net/ip_tables_names /proc/net/ip6_tables_names 2>/dev/null || true"
FORWARDING = "net/ipv4/ip_forward"


@pytest.fixture
def libvirtd() -> Iterator[PrivateLibvirtd]:
    with private_libvirtd.start() as started:
        yield started


def test_a_host_goes_on_listening_to_router_advertisements(libvirtd: PrivateLibvirtd, tmp_path: Path) -> None:
    file = tmp_path / "sysctl.d/60-nometal.conf"

    def listening(state: str = "present", **options: Any) -> list[str]:
        arguments = {"file": str(file), "memory": str(tmp_path / "host.json"), "state": state}
        return run_beside(libvirtd, "router_advertisements", arguments, **options)["steps"]

    def accept_ra() -> str:
        return libvirtd.run(["cat", "/proc/sys/net/ipv6/conf/ra/accept_ra"]).stdout.strip()

    libvirtd.run(["sh", "-ec", SETUP])
    steps = ["write file", "set ra=2"]
    assert listening(check_mode=True) == steps
    assert (accept_ra(), file.exists()) == ("1", False)
    assert listening() == steps
    assert accept_ra() == "2"
    assert "net/ipv6/conf/ra/accept_ra = 2\n" in file.read_text()
    assert listening() == []

    # What is in the file is looked at as well as what holds.
    libvirtd.run(["sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/ra/accept_ra; ip -6 route del fd00:99::/64"])
    file.chmod(0o666)
    assert listening() == ["write file", "set ra=2"]
    assert file.stat().st_mode & 0o777 == 0o644

    steps = ["remove file", "set ra=1"]
    assert listening("restored", check_mode=True) == steps
    assert listening("restored") == steps
    assert (accept_ra(), file.exists()) == ("1", False)
    assert listening("restored") == []


def test_forwarding_goes_off_unless_a_network_of_others_has_come_to_need_it(
    libvirtd: PrivateLibvirtd, tmp_path: Path
) -> None:
    def forwarding(state: str, **options: Any) -> dict[str, Any]:
        arguments = {"memory": str(tmp_path / "host.json"), "state": state}
        return run_beside(libvirtd, "host_forwarding", arguments, **options)

    def value() -> str:
        return libvirtd.run(["cat", f"/proc/sys/{FORWARDING}"]).stdout.strip()

    libvirtd.run(["sh", "-c", f"echo 0 >/proc/sys/{FORWARDING}; ip link add theirs type bridge"])
    tables = libvirtd.run(["sh", "-c", TABLES]).stdout
    assert f"note {FORWARDING}=0" in forwarding("noted")["steps"]
    network = "<network><name>mine</name><forward mode='nat'/><ip address='10.9.0.1' prefix='24'/></network>"
    libvirtd.run(["virsh", "net-create", "/dev/stdin"], input=network)
    assert value() == "1"
    kept = forwarding("restored")
    assert "libvirt network mine is running" in kept["kept_for"][FORWARDING]
    assert value() == "1"

    libvirtd.run(["virsh", "net-destroy", "mine"])
    foreseen = forwarding("restored", check_mode=True)
    assert value() == "1"
    assert forwarding("restored")["steps"] == foreseen["steps"] == [f"set {FORWARDING} to 0"]
    assert value() == "0"
    assert not forwarding("restored")["changed"]
    assert libvirtd.run(["sh", "-c", TABLES]).stdout == tables  # which the older iptables makes when it looks
