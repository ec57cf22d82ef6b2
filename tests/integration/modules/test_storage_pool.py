"""The storage_pool module on a real libvirtd: made and removed, each repeated, each first in check mode."""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_DNS, uuid5

import pytest
from support import private_libvirtd
from support.modules import run_beside

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.private_libvirtd import PrivateLibvirtd

POOL = {
    "name": "nometal-demo",
    "uuid": "0c9a3a5e-5d2c-5d1b-9c39-3a2a4d5f6e70",
    "path": "/var/lib/libvirt/images/nometal-demo",
}
ABSENT = {**POOL, "owner": "demo", "state": "absent"}
XML = "<pool type='dir'><name>{name}</name><uuid>{uuid}</uuid><target><path>{path}</path></target></pool>"
MAKING = ["define nometal-demo", "build nometal-demo", "start nometal-demo", "autostart nometal-demo"]
REMOVING = ["stop nometal-demo", "delete nometal-demo", "undefine nometal-demo"]


@pytest.fixture(scope="module")
def libvirtd() -> Iterator[PrivateLibvirtd]:
    with private_libvirtd.start() as started:
        yield started


def pool(libvirtd: PrivateLibvirtd, arguments: dict[str, Any], **options: Any) -> dict[str, Any]:
    return run_beside(libvirtd, "storage_pool", arguments, **options)


def volume(libvirtd: PrivateLibvirtd, name: str, mark: str = "", path: str = POOL["path"], kind: str = "raw") -> Path:
    """With the mark of the VM for which it was made."""
    file = libvirtd.path(f"{path}/{name}")
    libvirtd.run(["qemu-img", "create", "-q", "-f", kind, f"{path}/{name}", "1M"])
    if mark:
        os.setxattr(file, "trusted.nometal.ipi.vm", mark.encode())
    return file


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

    shutil.rmtree(directory)
    assert pool(libvirtd, POOL)["steps"] == ["build nometal-demo"]
    assert directory.stat().st_mode & 0o777 == 0o711

    libvirtd.run(["virsh", "pool-destroy", "nometal-demo"])
    libvirtd.run(["virsh", "pool-autostart", "--disable", "nometal-demo"])
    assert pool(libvirtd, POOL, check_mode=True)["steps"] == ["start nometal-demo", "autostart nometal-demo"]
    assert pool(libvirtd, POOL)["steps"] == ["start nometal-demo", "autostart nometal-demo"]

    volume(libvirtd, "disk.qcow2", "demo 1-2", kind="qcow2")
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
    for name, mark in {"mine": "", "base": "", "noted": "other 1-2", "demos": "demo 3-4"}.items():
        volume(libvirtd, name, mark)
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

    for check_mode in (True, False):
        refused = pool(libvirtd, ABSENT, check_mode=check_mode)
        assert refused["failed"]
        for told in (
            "volume mine of pool nometal-demo is a disk of VM by-pool (no lab)",
            "volume mine of pool nometal-demo is a disk of VM stranger (no lab)",
            "volume base of pool nometal-demo is a disk of VM other-0 (lab other)",
            "volume noted of pool nometal-demo was made for a VM of lab other, 1-2",
        ):
            assert told in refused["msg"]
        assert "demos" not in refused["msg"]
    unowned = pool(libvirtd, {**POOL, "state": "absent"})
    assert "volume demos of pool nometal-demo is a disk of VM demo-0 (lab demo)" in unowned["msg"]
    assert pools(libvirtd) == ["nometal-demo"]

    for name in sources.keys() - {"demo-0"}:
        libvirtd.run(["virsh", "undefine", name])
    libvirtd.run(["rm", f"{POOL['path']}/noted"])
    removed = pool(libvirtd, ABSENT)
    assert removed["steps"] == REMOVING
    assert removed["kept"] == [f"{POOL['path']}/{name} (not made by nometal.ipi)" for name in ("base", "mine")]
    libvirtd.run(["virsh", "undefine", "demo-0"])
    libvirtd.run(["rm", "-r", POOL["path"], "/srv/over"])


THEIRS = "/var/lib/libvirt/theirs"
BASE = f"{POOL['path']}/base"
# Images of others, by name: what each is based on, and in which format it says that this is.
BASED = {
    "plain": (BASE, "raw"),
    "second": ("plain.qcow2", "qcow2"),
    "third": ("second.qcow2", "qcow2"),
    "relative": ("../images/nometal-demo/base", "raw"),
    "by-protocol": (f"file:{BASE}", "raw"),
    "json": (f'json:{{"driver":"raw","file":{{"driver":"file","filename":"{BASE}"}}}}', "raw"),
    "dotted": (f'json:{{"driver":"raw","file.filename":"{BASE}"}}', "raw"),
    "lost": (f"{THEIRS}/gone.qcow2", "qcow2"),
    "innocent": (f"{THEIRS}/own.raw", "raw"),
}


def test_what_images_are_based_on_counts_although_their_vms_are_off(libvirtd: PrivateLibvirtd) -> None:
    """libvirt tells of running VMs only. An image that no VM has counts as well, and one that cannot be read."""
    pool(libvirtd, POOL)
    base = volume(libvirtd, "base", "demo 1-2")
    libvirtd.run(["mkdir", THEIRS, f"{THEIRS}/alone"])
    libvirtd.run(["virsh", "pool-define-as", "theirs", "dir", "--target", f"{THEIRS}/alone"])
    volume(libvirtd, "own.raw", path=THEIRS)
    for name, (backing, kind) in BASED.items():
        image = ["-b", backing, "-F", kind, f"{THEIRS}/{name}.qcow2", "1M"]
        libvirtd.run(["qemu-img", "create", "-q", "-u", "-f", "qcow2", *image])
        define(libvirtd, name, f"<source file='{THEIRS}/{name}.qcow2'/>", "qcow2")
    based = ["-f", "qed", "-b", f"{THEIRS}/third.qcow2", "-F", "qcow2"]
    for name, image in {
        "no-vm": based,
        "with-data": ["-f", "qcow2", "-o", f"data_file={BASE},data_file_raw=on"],
    }.items():
        libvirtd.run(["qemu-img", "create", "-q", *image, f"{THEIRS}/alone/{name}", "1M"])
    define(libvirtd, "demo-0", f"<source file='{BASE}'/>", "raw")
    define(libvirtd, "raw", f"<source file='{THEIRS}/no-longer-here.iso'/>", "raw")

    refused = pool(libvirtd, ABSENT)["msg"]
    for name in BASED.keys() - {"lost", "innocent"}:
        told = f"volume base of pool nometal-demo is the base of {THEIRS}/{name}.qcow2, a disk of VM {name} (no lab)"
        assert told in refused
    assert (
        f"pool nometal-demo has disks, and {THEIRS}/gone.qcow2, the base of {THEIRS}/lost.qcow2, a disk of VM lost "
        "(no lab), may be based on one of them, for it is missing"
    ) in refused
    for name in ("no-vm", "with-data"):
        assert f"is the base of {THEIRS}/alone/{name}, an image in pool theirs that no VM has" in refused
    assert "innocent" not in refused
    assert "no-longer-here" not in refused

    for name in [*BASED, "raw"]:
        libvirtd.run(["virsh", "undefine", name])
    libvirtd.run(["virsh", "pool-undefine", "theirs"])
    over = ["qemu-img", "create", "-q", "-f", "qcow2", "-b", "base", "-F", "raw", f"{POOL['path']}/over.qcow2"]
    libvirtd.run(over)
    told = f"base of {POOL['path']}/over.qcow2, an image in pool nometal-demo that no VM has"
    assert told in pool(libvirtd, ABSENT)["msg"]
    # One that somebody has put between a disk and its VM is the VM's, not another's.
    define(libvirtd, "demo-0", f"<source file='{POOL['path']}/over.qcow2'/>", "qcow2")
    assert pool(libvirtd, ABSENT, check_mode=True)["steps"] == REMOVING
    libvirtd.run(["virsh", "undefine", "demo-0"])
    base.unlink()
    assert pool(libvirtd, ABSENT)["kept"] == [f"{POOL['path']}/over.qcow2 (not made by nometal.ipi)"]
    libvirtd.run(["rm", "-r", POOL["path"], THEIRS])


def define(libvirtd: PrivateLibvirtd, name: str, source: str, kind: str) -> None:
    uuid = str(uuid5(NAMESPACE_DNS, name))
    text = vm_with(name, source).replace("<memory", f"<uuid>{uuid}</uuid><memory")
    libvirtd.run(["virsh", "define", "/dev/stdin"], input=re.sub(r"type='(raw|qcow2)'", f"type='{kind}'", text))


def test_what_is_not_ours_in_the_directory_stays_and_is_named(libvirtd: PrivateLibvirtd) -> None:
    """Files, directories, and what is mounted there: another file system, and directories and files of the same one."""
    path = "/var/lib/libvirt/labs/deep/demo"
    at = {**POOL, "path": path}
    pool(libvirtd, at)
    for name, mark in {"old.qcow2": "demo 1-2", "bound": "demo 3-4", "other-labs": ""}.items():
        volume(libvirtd, name, mark, path)
    libvirtd.run(["sh", "-ec", MOUNTS.format(path=path)])
    kept = dict.fromkeys(("bind", "bound", "memory"), "a mount point, with what lies under it")
    kept |= dict.fromkeys(("link", "notes.txt", "other-labs", "sub"), "not made by nometal.ipi")
    stays = [f"{path}/{name} ({kept[name]})" for name in sorted(kept)]

    absent = {**at, "owner": "demo", "state": "absent"}
    assert pool(libvirtd, absent, check_mode=True)["kept"] == stays
    removed = pool(libvirtd, absent)
    assert removed["steps"] == REMOVING
    assert removed["kept"] == stays
    assert pools(libvirtd) == []
    found = libvirtd.run(["sh", "-ec", f"cd {path}; find * -type f -o -type l"]).stdout.split()
    assert sorted(found) == sorted({*kept, "bind/canary", "memory/canary", "sub/canary"} - {"bind", "memory", "sub"})
    again = pool(libvirtd, absent)
    assert (again["changed"], again["kept"]) == (False, [])
    assert "exists and is not an empty directory" in pool(libvirtd, at)["msg"]
    libvirtd.run(["sh", "-ec", f"umount {path}/memory {path}/bind {path}/bound; rm -r /var/lib/libvirt/labs"])


MOUNTS = """
mkdir {path}/memory {path}/bind {path}/sub /var/lib/libvirt/theirs
mount -t tmpfs tmpfs {path}/memory
mount --bind /var/lib/libvirt/theirs {path}/bind
touch {path}/notes.txt {path}/memory/canary {path}/bind/canary {path}/sub/canary
mount --bind /var/lib/libvirt/theirs/canary {path}/bound
ln -s /var/lib/libvirt/theirs {path}/link
"""


def test_directories_that_were_made_for_it_go_and_others_stay_as_they_were(libvirtd: PrivateLibvirtd) -> None:
    alice = libvirtd.path("/var/lib/libvirt/alice")
    alice.mkdir(mode=0o750)
    os.chown(alice, 1234, 2345)
    labs = alice / "new/labs"
    one, two = ({**POOL, "name": f"nometal-{lab}", "uuid": str(uuid5(NAMESPACE_DNS, lab))} for lab in ("one", "two"))
    one["path"], two["path"] = ("/var/lib/libvirt/alice/new/labs/one", "/var/lib/libvirt/alice/new/labs/two")
    for each in (one, two):
        # As libvirt may be started by whoever has an odd umask, so may the module.
        assert not pool(libvirtd, each)["failed"]
    assert [path.stat().st_mode & 0o777 for path in (labs.parent, labs, labs / "one")] == [0o755, 0o755, 0o711]
    for each in (one, two):
        assert labs.is_dir()
        assert not pool(libvirtd, {**each, "state": "absent"})["failed"]
    assert list(alice.iterdir()) == []

    whole = {**POOL, "path": "/var/lib/libvirt/alice"}
    assert pool(libvirtd, whole)["steps"] == MAKING
    assert not pool(libvirtd, whole)["changed"]
    volume(libvirtd, "disk.qcow2", "demo 1-2", whole["path"])
    alice.chmod(0o711)
    os.chown(alice, 0, 0)
    assert pool(libvirtd, {**whole, "owner": "demo", "state": "absent"})["steps"] == REMOVING
    status = alice.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (1234, 2345, 0o750)
    assert list(alice.iterdir()) == []
    alice.rmdir()


def test_a_file_system_of_its_own_is_emptied_of_what_is_ours_and_stays(libvirtd: PrivateLibvirtd) -> None:
    """Of two kinds: one knows extended attributes, the other has a mark beside each disk."""
    for kind in ("tmpfs", "ramfs"):
        libvirtd.run(["sh", "-ec", f"mkdir {POOL['path']}; mount -t {kind} {kind} {POOL['path']}"])
        assert not pool(libvirtd, POOL)["failed"]
        for name in ("disk", "lost"):
            file = volume(libvirtd, name)
            if kind == "ramfs":
                file.with_name(f".{name}.nometal-vm").write_text("demo 1-2")
            else:
                os.setxattr(file, "trusted.nometal.ipi.vm", b"demo 1-2")
        file.unlink()
        assert pool(libvirtd, ABSENT)["steps"] == REMOVING
        assert list(libvirtd.path(POOL["path"]).iterdir()) == []
        libvirtd.run(["sh", "-ec", f"umount {POOL['path']}; rmdir {POOL['path']}"])


def test_one_whose_definition_is_lost_or_was_never_made_is_completed_or_removed(libvirtd: PrivateLibvirtd) -> None:
    for wanted, steps in ((POOL, ["define", "start", "autostart"]), (ABSENT, ["delete"])):
        pool(libvirtd, POOL)
        libvirtd.run(["virsh", "pool-destroy", "nometal-demo"])
        libvirtd.run(["virsh", "pool-undefine", "nometal-demo"])
        assert pool(libvirtd, wanted)["steps"] == [f"{step} nometal-demo" for step in steps]
    assert not libvirtd.path(POOL["path"]).exists()


@pytest.mark.parametrize("path", ["/home", "/var/lib/nometal/demo", "/var/lib/libvirt/to-etc/x"])
def test_directories_of_the_system_are_refused(libvirtd: PrivateLibvirtd, path: str) -> None:
    link = libvirtd.path("/var/lib/libvirt/to-etc")
    link.symlink_to("/etc")
    refused = pool(libvirtd, {**POOL, "path": path})
    link.unlink()
    assert refused["failed"]
    assert "lab_spec.storage_pool.path" in refused["msg"]
    assert pools(libvirtd) == []


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
    assert f"{told}: it stays." in left["warned"]
    assert pools(libvirtd) == ["nometal-demo"]
    libvirtd.run(["virsh", "pool-undefine", "nometal-demo"])


def test_without_libvirt_it_says_what_to_do(libvirtd: PrivateLibvirtd) -> None:
    gone = {**POOL, "libvirt_uri": "qemu:///system?socket=/run/none"}
    assert pool(libvirtd, gone, check_mode=True)["steps"] == MAKING
    refused = pool(libvirtd, gone)
    assert refused["failed"]
    assert "role nometal.ipi.host_prep installs and starts it" in refused["msg"]
