"""Which nodes a rehearsal leaves alone, on a real libvirtd."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from support.checkout import ROOT

if TYPE_CHECKING:
    from support.private_libvirtd import PrivateLibvirtd

IMAGES = "/var/lib/libvirt/images"
VM = """<domain type='qemu'><name>demo-{name}</name><memory unit='MiB'>64</memory><os><type>hvm</type></os><devices>
<disk type='file' device='disk'><driver type='qcow2'/><source file='{images}/{name}'/><target dev='vda'/></disk>
</devices></domain>"""
OBSTACLES = """
import libvirt
from pathlib import Path
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import from_dict
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab
from ansible_collections.nometal.ipi.plugins.module_utils._rehearsal.session.session import Places, Stage
some = {
    "uuid": "7e2f9a14-3c5b-4d80-a6e1-58c0d94b7f23", "fqdn": "some", "firmware": "bios", "vcpus": 1, "memory_mib": 64,
    "boot_mac": "52:54:00:00:00:01", "bmc": {"host": "192.0.2.1", "port": 8000},
}
nodes = [{**some, "name": name, "vm_name": f"demo-{name}"} for name in ("one", "two", "three")]
lab = from_dict(Lab, {"lab": "demo", "nodes": nodes})
print(*Stage(lab, Places(Path("/none")), libvirt.open("qemu:///system")).obstacles(), sep="\\n")
"""


def test_a_disk_on_which_an_image_is_based_is_not_written(private_libvirtd: PrivateLibvirtd) -> None:
    for name in ("one", "two"):
        private_libvirtd.run(["qemu-img", "create", "-q", "-f", "qcow2", f"{IMAGES}/{name}", "1M"])
        private_libvirtd.run(["virsh", "define", "/dev/stdin"], input=VM.format(name=name, images=IMAGES))
    private_libvirtd.run(["virsh", "pool-define-as", "mine", "dir", "--target", IMAGES])
    over = ["-b", "two", "-F", "qcow2", f"{IMAGES}/mine"]
    private_libvirtd.run(["qemu-img", "create", "-q", "-f", "qcow2", *over])
    command = ["env", f"PYTHONPATH={ROOT}/playbooks/collections", sys.executable, "-c", OBSTACLES]
    missing, in_use = private_libvirtd.run(command).stdout.splitlines()
    assert missing == "['three has no VM']"
    image = f"{IMAGES}/mine, an image in pool mine that no VM has"
    assert in_use == f"['two has the disk {IMAGES}/two, which is the base of {image}']"


def test_a_disk_that_a_process_has_open_or_an_unreadable_image_may_use_is_not_written(
    private_libvirtd: PrivateLibvirtd,
) -> None:
    for name in ("one", "two", "three"):
        private_libvirtd.run(["qemu-img", "create", "-q", "-f", "qcow2", f"{IMAGES}/{name}", "1M"])
        private_libvirtd.run(["virsh", "define", "/dev/stdin"], input=VM.format(name=name, images=IMAGES))
    private_libvirtd.run(["virsh", "start", "demo-three"])  # it has its own disk open, which is no use by others
    holder = private_libvirtd.command(["sh", "-c", f"exec 3<>{IMAGES}/one; echo open; exec sleep infinity"])
    with subprocess.Popen(holder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "open\n"
        command = ["env", f"PYTHONPATH={ROOT}/playbooks/collections", sys.executable, "-c", OBSTACLES]
        _missing, in_use = private_libvirtd.run(command).stdout.splitlines()
        assert f"one has the disk {IMAGES}/one, which is open in process sleep (" in in_use
        assert "two has" not in in_use
        assert "three has" not in in_use
        process.kill()
    private_libvirtd.run(["virsh", "pool-define-as", "mine", "dir", "--target", "/var/lib/libvirt/mine"])
    private_libvirtd.run(["mkdir", "/var/lib/libvirt/mine"])
    private_libvirtd.path("/var/lib/libvirt/mine/broken").write_bytes(b"QFI\xfb")
    _missing, in_use = private_libvirtd.run(command).stdout.splitlines()
    assert "of the nodes' disks, one may be in use: /var/lib/libvirt/mine/broken, an image in pool mine" in in_use
