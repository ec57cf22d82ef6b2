"""The installer_bridges module on a real libvirtd and kernel: the two ways in which the installer finds a bridge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support import private_libvirtd
from support.modules import run_beside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.private_libvirtd import PrivateLibvirtd

DIRECT = "<network><name>direct</name><bridge name='direct'/></network>"
OTHERWISE = "<network><name>otherwise</name><bridge name='nm-other'/></network>"


@pytest.fixture(scope="module")
def libvirtd() -> Iterator[PrivateLibvirtd]:
    with private_libvirtd.start() as started:
        for xml in (DIRECT, OTHERWISE):
            started.run(["virsh", "net-create", "/dev/stdin"], input=xml)
        started.run(["ip", "link", "add", "baremetal", "up", "type", "bridge"])
        yield started


def bridges(libvirtd: PrivateLibvirtd, *names: str) -> dict[str, Any]:
    return run_beside(libvirtd, "installer_bridges", {"bridges": names})


def test_a_network_called_like_its_bridge_is_found_without_carrier(libvirtd: PrivateLibvirtd) -> None:
    result = bridges(libvirtd, "direct")
    assert result["found"] == {"direct": "libvirt network direct on a bridge of the same name"}
    assert not result["changed"]


def test_a_plain_bridge_is_found_once_it_has_carrier(libvirtd: PrivateLibvirtd) -> None:
    without = bridges(libvirtd, "direct", "baremetal")
    assert without["failed"]
    assert "The installer would not find bridge baremetal. libvirt has these active interfaces: " in without["msg"]
    assert "networks called like their bridge: direct." in without["msg"]

    libvirtd.run(["ip", "link", "add", "one", "up", "master", "baremetal", "type", "veth", "peer", "name", "other"])
    libvirtd.run(["ip", "link", "set", "other", "up"])
    assert bridges(libvirtd, "baremetal")["found"] == {"baremetal": "interface baremetal, which is up and has carrier"}


def test_the_name_of_a_network_is_no_bridge(libvirtd: PrivateLibvirtd) -> None:
    assert "not find bridge otherwise" in bridges(libvirtd, "otherwise")["msg"]
