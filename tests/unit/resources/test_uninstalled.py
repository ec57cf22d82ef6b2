"""What libvirt has left after it was uninstalled: by its files, what is the lab's goes and all else stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.network_hook import HookEntry
from ansible_collections.nometal.ipi.plugins.module_utils._lab.identity import Identity
from ansible_collections.nometal.ipi.plugins.module_utils._labs import leftovers as uninstalled
from ansible_collections.nometal.ipi.plugins.module_utils._labs.leftovers import LabLeftovers, UninstalledLibvirt
from ansible_collections.nometal.ipi.plugins.module_utils._observe import open_files
from ansible_collections.nometal.ipi.plugins.module_utils._resources.storage_pool import directory as pool_directory
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm import leftovers as vm_leftovers

MARK = "<metadata><n:{kind} xmlns:n='urn:nometal:ipi' owner='{lab}' pool='nometal-{lab}'>{disks}</n:{kind}></metadata>"


class Host:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.pools = root / "images"

    def define(self, kind: str, name: str, text: str) -> None:
        directory = self.root / kind
        (directory / "autostart").mkdir(parents=True, exist_ok=True)
        (directory / f"{name}.xml").write_text(text, encoding="utf-8")
        (directory / "autostart" / f"{name}.xml").symlink_to(directory / f"{name}.xml")

    def vm(self, name: str, lab: str = "") -> None:
        disks = f"<n:disk name='{name}.qcow2'/>"
        mark = MARK.format(kind="vm", lab=lab, disks=disks) if lab else ""
        self.define("VM", name, f"<domain><name>{name}</name>{mark}</domain>")

    def network(self, name: str, lab: str) -> None:
        mark = MARK.format(kind="network", lab=lab, disks="")
        self.define("network", name, f"<network><name>{name}</name>{mark}<bridge name='nm-{lab}'/></network>")

    def pool(self, lab: str, uuid: str = "") -> Path:
        directory = self.pools / f"nometal-{lab}"
        directory.mkdir(parents=True)
        given = uuid or Identity(lab).uuid_of("storage-pool")
        target = f"<target><path>{directory}</path></target>"
        self.define(
            "pool", f"nometal-{lab}", f"<pool type='dir'><name>nometal-{lab}</name><uuid>{given}</uuid>{target}</pool>"
        )
        return directory

    def pool_at(self, name: str, directory: Path) -> None:
        directory.mkdir()
        target = f"<target><path>{directory}</path></target>"
        self.define("pool", name, f"<pool type='dir'><name>{name}</name><uuid/>{target}</pool>")

    def files(self) -> set[str]:
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*") if not path.is_dir()}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host(tmp_path / "host")
    monkeypatch.setattr(uninstalled, "DEFINITIONS", {kind: made.root / kind for kind in ("VM", "network", "pool")})
    monkeypatch.setattr(pool_directory, "POOL_DIRECTORY", str(made.pools))
    monkeypatch.setattr(uninstalled, "PROGRAMS", (str(tmp_path / "libvirtd"),))
    for name in ("DNSMASQ", "RUNNING_NETWORKS"):
        monkeypatch.setattr(uninstalled, name, tmp_path / name)
    for module in (uninstalled, open_files):
        monkeypatch.setattr(module, "PROCESSES", tmp_path / "no processes")
    monkeypatch.setattr(vm_leftovers, "forget_logs", lambda _name: None)
    monkeypatch.setattr(vm_leftovers, "forget_nvram", lambda _name: None)
    monkeypatch.setattr(HookEntry, "remove", lambda _self: None)
    return made


def remove(lab: str) -> list[str]:
    before = LabLeftovers.run({"lab": lab}, check_mode=True)
    done = LabLeftovers.run({"lab": lab}, check_mode=False)
    assert before == done
    assert not LabLeftovers.run({"lab": lab}, check_mode=False)["changed"]
    kept = done["kept"]
    assert isinstance(kept, list)
    return kept


def test_all_of_a_lab_goes(host: Host) -> None:
    disks = host.pool("demo")
    (disks / "demo-0.qcow2").touch()
    host.vm("demo-0", "demo")
    host.network("nometal-demo", "demo")
    assert remove("demo") == []
    assert host.files() == set()
    assert not disks.exists()


def test_what_is_others_stays(host: Host) -> None:
    """Another lab's, a stranger's, and a pool of our name that has another UUID."""
    host.vm("mine")
    host.vm("other-0", "other")
    host.network("nometal-other", "other")
    (host.pool("demo", uuid="0c9a3a5e-5d2c-5d1b-9c39-3a2a4d5f6e70") / "mine.qcow2").touch()
    before = host.files()
    assert remove("demo") == []
    assert host.files() == before


def test_disks_stay_if_others_may_use_them_and_so_does_what_is_not_marked(host: Host, tmp_path: Path) -> None:
    disks = host.pool("demo")
    (disks / "demo-0.qcow2").touch()
    host.vm("demo-0", "demo")
    host.vm("mine")
    kept = [f"{disks}/demo-0.qcow2, which another VM may use"]
    assert remove("demo") == kept
    (host.root / "VM/mine.xml").unlink()
    (host.root / "VM/autostart/mine.xml").unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "canary").touch()
    (disks / "notes.txt").touch()
    (disks / "link.qcow2").symlink_to(elsewhere / "canary")
    (disks / "directory").mkdir()
    (disks / "directory/canary").touch()
    names = ("directory", "link.qcow2", "notes.txt")
    assert remove("demo") == [f"{disks}/{name}, which is not marked as the lab's" for name in names]
    assert not (disks / "demo-0.qcow2").exists()
    assert (elsewhere / "canary").exists()
    assert {"images/nometal-demo/notes.txt", "images/nometal-demo/directory/canary"} <= host.files()


def test_a_disk_on_which_an_image_in_any_pool_is_based_stays(host: Host, tmp_path: Path) -> None:
    """Or may be: what cannot be read counts as in use."""
    disks, theirs = host.pool("demo"), tmp_path / "theirs"
    image(disks / "demo-0.qcow2")
    host.vm("demo-0", "demo")
    host.pool_at("mine", theirs)
    image(theirs / "overlay", backing=disks / "demo-0.qcow2")
    by = f"{theirs}/overlay, an image in pool mine that no VM has"
    kept = [f"{disks}/demo-0.qcow2, which is the base of {by}"]
    assert remove("demo") == kept
    (theirs / "overlay").write_bytes(b"QFI\xfb cut off")
    [reason] = remove("demo")
    assert f"{theirs}/overlay, an image in pool mine that no VM has, may be based on one of them" in reason
    (theirs / "overlay").unlink()
    (host.root / "pool/mine.xml").write_text("<pool")
    [reason] = remove("demo")
    assert f"{host.root}/pool/mine.xml, which may tell of a user, is damaged" in reason
    (host.root / "pool/mine.xml").unlink()
    (host.root / "pool/autostart/mine.xml").unlink()
    image(disks / "overlay", backing=disks / "demo-0.qcow2")  # not marked, so that it stays with its base
    assert f"{disks}/demo-0.qcow2, which is the base of {disks}/overlay" in remove("demo")[1]
    (disks / "overlay").unlink()
    assert remove("demo") == []
    assert not disks.exists()


def image(path: Path, backing: Path | None = None) -> None:
    """The header of a qcow2 image is enough."""
    name = os.fsencode(backing) if backing else b""
    at = 104 if name else 0
    head = b"QFI\xfb" + (3).to_bytes(4, "big") + at.to_bytes(8, "big") + len(name).to_bytes(4, "big")
    path.write_bytes(head.ljust(100, b"\0") + (104).to_bytes(4, "big") + name)


def test_one_that_runs_on_stays(host: Host, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    host.vm("demo-0", "demo")
    process = tmp_path / "proc/4711"
    (process / "fd").mkdir(parents=True)
    (process / "cmdline").write_bytes(b"/usr/bin/qemu-system-x86_64\0-name\0guest=demo-0,debug-threads=on\0")
    for module in (uninstalled, open_files):
        monkeypatch.setattr(module, "PROCESSES", tmp_path / "proc")
    disks = host.pool("demo")
    (disks / "demo-0.qcow2").touch()
    os.symlink(disks / "demo-0.qcow2", process / "fd/3")  # noqa: PTH211 - as the kernel shows it
    assert UninstalledLibvirt("demo").steps() == []
    left = UninstalledLibvirt("demo")
    left.steps()
    assert left.kept[0] == "VM demo-0 runs on: end its process qemu-system first"


def test_where_libvirt_is_installed_it_is_refused(host: Host, tmp_path: Path) -> None:
    host.vm("demo-0", "demo")
    (tmp_path / "libvirtd").touch()
    with pytest.raises(OperatorError, match="is installed: what libvirt has is removed by libvirt itself"):
        LabLeftovers.run({"lab": "demo"}, check_mode=False)
    with pytest.raises(OperatorError, match="is not the name of a lab"):
        LabLeftovers.run({"lab": "../demo"}, check_mode=False)
