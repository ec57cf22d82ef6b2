"""The bootstrap VM of a rehearsal on a real libvirtd: only what is the lab's is removed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.checkout import ROOT
from support.modules import run_beside

if TYPE_CHECKING:
    from support.private_libvirtd import PrivateLibvirtd

NAME = "bootdemo-rehearsal-bootstrap"
IMAGES = "/var/lib/libvirt/openshift-images"
LOGS = "/var/log/libvirt/qemu"
VM = """<domain type='qemu'><name>{}</name><memory unit='MiB'>64</memory><metadata>{}</metadata>
<os><type>hvm</type></os></domain>"""
OF_A_NODE = "<vm xmlns='urn:nometal:ipi' owner='bootdemo'/>"
OF_ANOTHER_LAB = "<rehearsal xmlns='urn:nometal:ipi' owner='another'/>"
START = f"""
import libvirt, pathlib
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session import bootstrap_vm
image = pathlib.Path("/var/lib/libvirt/images/image")
image.write_bytes(bytes(1024**2))
paths = bootstrap_vm.Paths("{NAME}", "bootdemo")
vm = bootstrap_vm.BootstrapVm(paths, "qemu", False, [], [])
bootstrap_vm.start(libvirt.open("qemu:///system"), vm, image)
"""


def rehearsal(libvirtd: PrivateLibvirtd, state: str, *, check_mode: bool = False) -> dict[str, Any]:
    arguments = {"lab": "bootdemo", "state": state, "image": "/var/lib/libvirt/images/image"}
    return run_beside(libvirtd, "rehearsal", arguments, check_mode=check_mode)


def begin(libvirtd: PrivateLibvirtd) -> None:
    libvirtd.run(["env", f"PYTHONPATH={ROOT}/playbooks/collections", sys.executable, "-c", START])


def names(libvirtd: PrivateLibvirtd) -> tuple[list[str], list[str]]:
    vms = libvirtd.run(["virsh", "list", "--all", "--name"]).stdout.split()
    return vms, libvirtd.run(["virsh", "pool-list", "--all", "--name"]).stdout.split()


def entries(libvirtd: PrivateLibvirtd, directory: str) -> list[str]:
    path = libvirtd.path(directory)
    return sorted(entry.name for entry in path.iterdir()) if path.is_dir() else []


@pytest.mark.parametrize("mark", ["", OF_A_NODE, OF_ANOTHER_LAB], ids=["nobody's", "a node's", "another lab's"])
def test_what_others_have_of_its_name_is_refused_and_stays(private_libvirtd: PrivateLibvirtd, mark: str) -> None:
    private_libvirtd.run(["virsh", "define", "/dev/stdin"], input=VM.format(NAME, mark))
    private_libvirtd.run(["virsh", "start", NAME])
    private_libvirtd.run(["mkdir", "-p", f"{IMAGES}/{NAME}"])
    private_libvirtd.run(["virsh", "pool-define-as", NAME, "dir", "--target", f"{IMAGES}/{NAME}"])
    private_libvirtd.run(["virsh", "pool-start", NAME])
    private_libvirtd.run(["virsh", "vol-create-as", NAME, f"{NAME}-scratch", "1M"])
    log = private_libvirtd.path(f"{LOGS}/{NAME}-serial0.log")
    log.write_text("theirs")

    for check_mode in (True, False):
        refused = rehearsal(private_libvirtd, "played", check_mode=check_mode)
        assert refused["failed"]
        assert f"VM {NAME}, storage pool {NAME}, directory {IMAGES}/{NAME}" in refused["msg"]

    removed = rehearsal(private_libvirtd, "absent")
    things = (f"VM {NAME}", f"storage pool {NAME}", f"directory {IMAGES}/{NAME}")
    assert removed["kept"] == [f"{thing} (not made by nometal.ipi)" for thing in things]
    assert f"Left in place: VM {NAME} (not made by nometal.ipi)" in removed["warned"]
    assert names(private_libvirtd) == ([NAME], [NAME])
    assert private_libvirtd.run(["virsh", "domstate", NAME]).stdout.strip() == "running"
    assert private_libvirtd.run(["virsh", "pool-info", NAME]).stdout.count("running") == 1
    assert entries(private_libvirtd, f"{IMAGES}/{NAME}") == [f"{NAME}-scratch"]
    assert log.read_text() == "theirs"


def test_its_own_is_removed_and_only_that(private_libvirtd: PrivateLibvirtd) -> None:
    begin(private_libvirtd)
    assert names(private_libvirtd) == ([NAME], [NAME])
    assert rehearsal(private_libvirtd, "played", check_mode=True)["failed"] is False
    theirs = private_libvirtd.path(f"{IMAGES}/{NAME}/{NAME}-theirs")
    theirs.write_text("theirs")

    removed = rehearsal(private_libvirtd, "absent")
    assert (removed["steps"], removed["kept"]) == (
        ["clear bootdemo"],
        [f"{IMAGES}/{NAME}/{NAME}-theirs (not made by nometal.ipi)"],
    )
    assert names(private_libvirtd) == ([], [])
    assert entries(private_libvirtd, f"{IMAGES}/{NAME}") == [f"{NAME}-theirs"]
    assert [name for name in entries(private_libvirtd, LOGS) if name.startswith(NAME)] == []

    theirs.unlink()
    theirs.parent.rmdir()
    assert rehearsal(private_libvirtd, "absent")["changed"] is False


def test_the_directory_above_goes_when_it_was_made_for_it(private_libvirtd: PrivateLibvirtd) -> None:
    begin(private_libvirtd)
    assert rehearsal(private_libvirtd, "absent")["kept"] == []
    assert not private_libvirtd.path(IMAGES).exists()

    private_libvirtd.path(IMAGES).mkdir()
    begin(private_libvirtd)
    assert rehearsal(private_libvirtd, "absent")["kept"] == []
    assert entries(private_libvirtd, IMAGES) == []
    assert private_libvirtd.path(IMAGES).is_dir()
