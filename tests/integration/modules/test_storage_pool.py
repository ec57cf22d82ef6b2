"""The storage_pool module on a real libvirtd: made and removed, each repeated, each first in check mode."""

from __future__ import annotations

import os
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


def test_disks_of_others_keep_their_pool(libvirtd: PrivateLibvirtd) -> None:
    """Also with a VM that is based on one, and with a disk that a VM of another lab can be made around again."""
    pool(libvirtd, POOL)
    for name in ("mine", "base", "noted", "demos"):
        libvirtd.run(["virsh", "vol-create-as", POOL["name"], name, "1M"])
    libvirtd.run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", f"{POOL['path']}/base", "-F", "raw", "/srv/over"])
    sources = {
        "stranger": f"<source file='{POOL['path']}/mine'/>",
        "other-0": f"<source file='/srv/over'/><backingStore type='file'><source file='{POOL['path']}/base'/>"
        "<format type='raw'/></backingStore>",
        "by-pool": f"<source pool='{POOL['name']}' volume='mine'/>",
        "demo-0": f"<source file='{POOL['path']}/demos'/>",
    }
    for name, source in sources.items():
        libvirtd.run(["virsh", "define", "/dev/stdin"], input=vm_with(name, source))
    for name, vm in {"noted": "other 1-2", "demos": "demo 3-4"}.items():
        os.setxattr(libvirtd.path(f"{POOL['path']}/{name}"), "trusted.nometal.ipi.vm", vm.encode())

    for check_mode in (True, False):
        refused = pool(libvirtd, {**ABSENT, "owner": "demo"}, check_mode=check_mode)
        assert refused["failed"]
        for told in (
            "volume mine of pool nometal-demo is a disk of VM by-pool (no lab)",
            "volume mine of pool nometal-demo is a disk of VM stranger (no lab)",
            "volume base of pool nometal-demo is a disk of VM other-0 (lab other)",
            "volume noted of pool nometal-demo was made for a VM of lab other, 1-2",
        ):
            assert told in refused["msg"]
        assert "demos" not in refused["msg"]
    assert "volume demos of pool nometal-demo is a disk of VM demo-0 (lab demo)" in pool(libvirtd, ABSENT)["msg"]
    assert pools(libvirtd) == ["nometal-demo"]

    for name in sources.keys() - {"demo-0"}:
        libvirtd.run(["virsh", "undefine", name])
    libvirtd.run(["virsh", "vol-delete", "--pool", POOL["name"], "noted"])
    assert pool(libvirtd, {**ABSENT, "owner": "demo"})["steps"] == REMOVING
    libvirtd.run(["virsh", "undefine", "demo-0"])


def vm_with(name: str, source: str) -> str:
    lab = name.partition("-")[0]
    mark = f"<metadata><nometal:vm xmlns:nometal='urn:nometal:ipi' owner='{lab}'/></metadata>" if "-0" in name else ""
    image, kind = "qcow2" if "over" in source else "raw", "volume" if "pool=" in source else "file"
    return (
        f"<domain type='qemu'><name>{name}</name><memory unit='MiB'>64</memory>{mark}"
        "<os><type arch='x86_64'>hvm</type></os><devices>"
        f"<disk type='{kind}'><driver name='qemu' type='{image}'/>{source}<target dev='vda' bus='virtio'/></disk>"
        "</devices></domain>"
    )


def test_what_is_not_ours_is_refused_and_stays(libvirtd: PrivateLibvirtd) -> None:
    libvirtd.run(["virsh", "pool-define-as", "nometal-demo", "dir", "--target", "/var/lib/libvirt/images/theirs"])
    told = "storage pool nometal-demo at /var/lib/libvirt/images/theirs is not this lab's"
    refused = pool(libvirtd, POOL)
    assert refused["failed"]
    assert told in refused["msg"]
    left = pool(libvirtd, ABSENT)
    assert not left["changed"]
    assert left["warnings"] == [f"{told}: it stays."]
    assert pools(libvirtd) == ["nometal-demo"]
    libvirtd.run(["virsh", "pool-undefine", "nometal-demo"])


def test_without_libvirt_it_says_what_to_do(libvirtd: PrivateLibvirtd) -> None:
    gone = {**POOL, "libvirt_uri": "qemu:///system?socket=/run/none"}
    assert pool(libvirtd, gone, check_mode=True)["steps"] == MAKING
    refused = pool(libvirtd, gone)
    assert refused["failed"]
    assert "role nometal.ipi.host_prep installs and starts it" in refused["msg"]
