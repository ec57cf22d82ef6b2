"""The storage_pool module on a real libvirtd: made and removed, each repeated, each first in check mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support import private_libvirtd
from support.modules import run_beside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.private_libvirtd import PrivateLibvirtd

POOL = {
    "name": "nometal-demo",
    "uuid": "0c9a3a5e-5d2c-5d1b-9c39-3a2a4d5f6e70",
    "path": "/var/lib/libvirt/images/nometal-demo",
}
ABSENT = {**POOL, "state": "absent"}
XML = "<pool type='dir'><name>{name}</name><uuid>{uuid}</uuid><target><path>{path}</path></target></pool>"
MAKING = ["define nometal-demo", "build nometal-demo", "start nometal-demo", "autostart nometal-demo"]
REMOVING = ["stop nometal-demo", "delete nometal-demo", "undefine nometal-demo"]


@pytest.fixture(scope="module")
def libvirtd() -> Iterator[PrivateLibvirtd]:
    with private_libvirtd.start() as started:
        yield started


def pool(libvirtd: PrivateLibvirtd, arguments: dict[str, Any], **options: Any) -> dict[str, Any]:
    return run_beside(libvirtd, "storage_pool", arguments, **options)


def pools(libvirtd: PrivateLibvirtd) -> list[str]:
    return libvirtd.run(["virsh", "pool-list", "--all", "--name"]).stdout.split()


def test_acceptance(libvirtd: PrivateLibvirtd) -> None:
    directory = libvirtd.path(POOL["path"])

    foreseen = pool(libvirtd, POOL, check_mode=True)
    assert foreseen["steps"] == MAKING
    assert pools(libvirtd) == []
    assert not directory.exists()

    made = pool(libvirtd, POOL)
    assert made["changed"]
    assert made["steps"] == MAKING
    assert made["shown_diff"] == foreseen["shown_diff"] != ""
    assert pools(libvirtd) == ["nometal-demo"]

    for check_mode in (True, False):
        again = pool(libvirtd, POOL, check_mode=check_mode)
        assert not again["changed"]
        assert again["shown_diff"] == ""

    directory.rmdir()
    assert pool(libvirtd, POOL)["steps"] == ["build nometal-demo"]
    assert directory.stat().st_mode & 0o777 == 0o711

    libvirtd.run(["virsh", "pool-destroy", "nometal-demo"])
    libvirtd.run(["virsh", "pool-autostart", "--disable", "nometal-demo"])
    assert pool(libvirtd, POOL, check_mode=True)["steps"] == ["start nometal-demo", "autostart nometal-demo"]
    assert pool(libvirtd, POOL)["steps"] == ["start nometal-demo", "autostart nometal-demo"]

    libvirtd.run(["virsh", "vol-create-as", "nometal-demo", "disk.qcow2", "1M", "--format", "qcow2"])
    (directory / "cache").mkdir()
    assert pool(libvirtd, ABSENT, check_mode=True)["steps"] == REMOVING
    assert directory.exists()
    assert pool(libvirtd, ABSENT)["steps"] == REMOVING
    assert pools(libvirtd) == []
    assert not directory.exists()
    assert libvirtd.path("/var/lib/libvirt/images").exists()
    for check_mode in (True, False):
        assert not pool(libvirtd, ABSENT, check_mode=check_mode)["changed"]


@pytest.mark.parametrize("steps", range(1, len(MAKING)))
def test_one_that_was_half_made_is_completed_and_can_be_removed(libvirtd: PrivateLibvirtd, steps: int) -> None:
    libvirtd.run(["virsh", "pool-define", "/dev/stdin"], input=XML.format(**POOL))
    for command in ("pool-build", "pool-start")[: steps - 1]:
        libvirtd.run(["virsh", command, "nometal-demo"])
    assert pool(libvirtd, POOL)["steps"] == MAKING[steps:]
    assert not pool(libvirtd, POOL)["changed"]
    pool(libvirtd, ABSENT)
    assert pools(libvirtd) == []


def test_what_is_not_ours_is_refused_and_stays(libvirtd: PrivateLibvirtd) -> None:
    libvirtd.run(["virsh", "pool-define-as", "nometal-demo", "dir", "--target", "/var/lib/libvirt/images/theirs"])
    for arguments in (POOL, ABSENT):
        refused = pool(libvirtd, arguments)
        assert refused["failed"]
        assert "storage pool nometal-demo at /var/lib/libvirt/images/theirs is not this lab's" in refused["msg"]
    libvirtd.run(["virsh", "pool-undefine", "nometal-demo"])


def test_without_libvirt_it_says_what_to_do(libvirtd: PrivateLibvirtd) -> None:
    gone = {**POOL, "libvirt_uri": "qemu:///system?socket=/run/none"}
    assert pool(libvirtd, gone, check_mode=True)["steps"] == MAKING
    refused = pool(libvirtd, gone)
    assert refused["failed"]
    assert "role nometal.ipi.host_prep installs and starts it" in refused["msg"]
