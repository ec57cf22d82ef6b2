"""What on a host needs it to forward packets, and what has done without."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core.host_baseline import HostMemory
from ansible_collections.nometal.ipi.plugins.module_utils._observe.forwarding import Host, nat_rules
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import Link
from ansible_collections.nometal.ipi.plugins.module_utils._resources.forwarding import forwarding as host_forwarding

IPV4, IPV6 = "net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"
NETWORK = "<!-- generated -->\n<networkstatus><network><name>x</name>{}</network></networkstatus>"


@pytest.fixture
def host(tmp_path: Path) -> Host:
    for switch in (IPV4, IPV6):
        (tmp_path / "proc/sys" / switch).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "proc/sys" / switch).write_text("0\n")
    return Host(tmp_path, dict)


def put(host: Host, path: str, text: str = "") -> None:
    (host.root / path).parent.mkdir(parents=True, exist_ok=True)
    (host.root / path).write_text(text)


STATUS, SYSCTLS = "run/libvirt/network/default.xml", "etc/sysctl.conf"
NETWORKD, MANAGER = "etc/systemd/network/up.network", "etc/NetworkManager/system-connections/hotspot"
IS_RUNNING = "libvirt network default is running"


@pytest.mark.parametrize(
    ("path", "text", "need"),
    [
        (STATUS, NETWORK.format("<forward mode='nat'/>"), IS_RUNNING),
        (STATUS, NETWORK.format("<forward/>"), IS_RUNNING),
        (STATUS, NETWORK.format(""), ""),
        (STATUS, NETWORK.format("<forward mode='bridge'/>"), ""),
        (STATUS, "", ""),
        ("etc/sysctl.d/a.conf", "# router\nnet.ipv4.ip_forward = 1\n", "/etc/sysctl.d/a.conf sets net/ipv4/ip_forward"),
        (SYSCTLS, "-net/ipv4/conf/*/forwarding=1", "/etc/sysctl.conf sets net/ipv4/ip_forward"),
        (SYSCTLS, "#net.ipv4.ip_forward=1\nnet.ipv6.conf.all.forwarding=1", ""),
        (SYSCTLS, "net.ipv4.ip_forward=1\nnet.ipv4.ip_forward=0", ""),
        ("etc/sysctl.d/60-nometal.conf", "net.ipv4.ip_forward=1", ""),
        (NETWORKD, "[Network]\nIPMasquerade=ipv4\n", f"/{NETWORKD} asks for it"),
        (NETWORKD, "[Network]\nIPForward=no\n", ""),
        (MANAGER, "[ipv4]\nmethod=shared\n", f"/{MANAGER} asks for it"),
    ],
)
def test_needs(host: Host, path: str, text: str, need: str) -> None:
    put(host, path, text)
    assert [found.replace(str(host.root), "") for found in host.needs(IPV4)] == ([need] if need else [])


@pytest.mark.parametrize(
    ("name", "kind", "need"),
    [
        ("br0", "bridge", ""),
        ("docker0", "bridge", "there is docker0, as of Docker"),
        ("br-0123456789ab", "bridge", "there is br-0123456789ab, as of Docker"),
        ("br-office", "bridge", ""),
        ("home", "wireguard", "there is home, as of WireGuard"),
    ],
)
def test_needs_of_links(host: Host, name: str, kind: str, need: str) -> None:
    there = replace(host, links=lambda: {name: Link(name, kind)})
    assert there.needs(IPV4) == ([need] if need else [])


def test_a_sysctl_file_of_the_same_name_hides_the_later_one(host: Host) -> None:
    put(host, "usr/lib/sysctl.d/50-router.conf", "net.ipv4.ip_forward=1")
    assert host.needs(IPV4) != []
    put(host, "etc/sysctl.d/50-router.conf")
    assert host.needs(IPV4) == []


def test_address_translation_is_known_by_its_rules() -> None:
    shown = """\
table ip nat {
    chain POSTROUTING { # handle 1
        ip saddr 172.17.0.0/16 oifname != "docker0" counter masquerade
        counter comment "no masquerade here"
    }
}
table inet filter {
    chain input { tcp dport 22 accept }
}
"""
    assert list(nat_rules("nft", shown)) == ["table ip nat has rules for network address translation (nft)"]
    saved = "*nat\n-A POSTROUTING -s 10.0.0.0/8 -j MASQUERADE\nCOMMIT\n"
    [found] = nat_rules("iptables-legacy-save", saved)
    assert found == "table nat has rules for network address translation (iptables-legacy-save)"


def test_it_is_put_back_unless_something_new_needs_it(host: Host, tmp_path: Path) -> None:
    memory = HostMemory(tmp_path / "host.json")
    # There before the labs, without need of it.
    links = {"docker0": Link("docker0", "bridge")}
    host = replace(host, links=lambda: links)
    foreseen = host_forwarding.note(host, memory, check_mode=True)
    assert memory.recall() == {}
    assert host_forwarding.note(host, memory, check_mode=False) == foreseen
    assert foreseen["steps"] == [f"note {IPV4}=0", f"note {IPV6}=0"]
    for switch in (IPV4, IPV6):
        host.switch(switch, "1")
    links["podman0"] = Link("podman0", "bridge")
    assert not host_forwarding.note(host, memory, check_mode=False)["changed"]

    kept = host_forwarding.restore(host, memory, check_mode=False)
    assert kept["kept_for"] == {each: ["there is podman0, as of Podman"] for each in (IPV4, IPV6)}
    assert (kept["changed"], host.value(IPV4)) == (False, "1")
    del links["podman0"]
    foreseen = host_forwarding.restore(host, memory, check_mode=True)
    assert host.value(IPV4) == "1"
    assert host_forwarding.restore(host, memory, check_mode=False) == foreseen
    assert foreseen["steps"] == [f"set {IPV4} to 0", f"set {IPV6} to 0"]
    assert [host.value(switch) for switch in (IPV4, IPV6)] == ["0", "0"]
    assert not host_forwarding.restore(host, memory, check_mode=False)["changed"]


def test_what_was_switched_off_beside_a_lab_is_off_again_after_it(host: Host, tmp_path: Path) -> None:
    """A run has it switched on again for its network, and notes before that what the administrator wants."""
    memory, network = HostMemory(tmp_path / "host.json"), "run/libvirt/network/nometal-demo.xml"
    host.switch(IPV4, "1")
    host.switch(IPV6, "1")
    assert not host_forwarding.note(host, memory, check_mode=False)["changed"]
    put(host, network, NETWORK.format("<forward mode='nat'/>"))
    host.switch(IPV4, "0")
    assert host_forwarding.note(host, memory, check_mode=False)["steps"] == [f"note {IPV4}=0"]
    host.switch(IPV4, "1")
    (host.root / network).unlink()
    assert host_forwarding.restore(host, memory, check_mode=False)["steps"] == [f"set {IPV4} to 0"]
    assert (host.value(IPV4), host.value(IPV6)) == ("0", "1")


def test_a_kernel_without_ipv6(host: Host, tmp_path: Path) -> None:
    (host.root / "proc/sys" / IPV6).unlink()
    memory = HostMemory(tmp_path / "host.json")
    assert host_forwarding.note(host, memory, check_mode=False)["steps"] == [f"note {IPV4}=0"]
