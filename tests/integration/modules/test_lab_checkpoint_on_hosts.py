"""Checkpoints with the newest libvirt and QEMU that are supported: of a VM that runs, with UEFI and a TPM."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support import lab_host
from support.modules import run_in

if TYPE_CHECKING:
    from support.lab_host import LabHost

POOL, VM = "nometal-demo", "demo-1"
DIRECTORY = f"/var/lib/libvirt/images/{POOL}"
DISK = f"{DIRECTORY}/demo-1-0.qcow2"
UUID = "0c9a3a5e-5d2c-5d1b-9c39-3a2a4d5f6e01"
PREPARATION = f"""
systemctl start virtlogd
virsh pool-define-as {POOL} dir --target {DIRECTORY} && virsh pool-build {POOL} && virsh pool-start {POOL}
ip link add baremetal type bridge && ip link set baremetal up
"""
INSTALL = "apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qqy --no-install-recommends install"
INSTALL_SECONDS = 600
NODE = {
    "name": "node-1",
    "vm_name": VM,
    "uuid": UUID,
    "vcpus": 1,
    "memory_mib": 256,
    "firmware": "uefi",
    "tpm": True,
    "disks": [{"name": "demo-1-0.qcow2", "size_bytes": 64 * 1024**2}],
    "nics": [{"mac": "52:54:00:00:00:01", "bridge": "baremetal", "boot_order": 1}],
}


def make(host: LabHost) -> dict[str, Any]:
    made = run_in(host, "bmh_vm", {"owner": "demo", "pool": POOL, "vms": [NODE]})
    assert not made["failed"], made["msg"]
    return made


def checkpoint(host: LabHost, **others: Any) -> list[str]:
    done = run_in(host, "lab_checkpoint", {"lab": "demo", "name": "x", **others})
    assert not done["failed"], done["msg"]
    return list(done["steps"])


def snapshots(host: LabHost) -> list[str]:
    info = json.loads(host.run(["qemu-img", "info", "-U", "--output=json", DISK]).stdout)
    return [snapshot["name"] for snapshot in info.get("snapshots", [])]


def is_on(host: LabHost) -> bool:
    return host.run(["virsh", "domstate", VM]).stdout.strip() == "running"


def test_a_checkpoint_of_a_running_vm_is_taken_restored_and_removed() -> None:
    with lab_host.start(suite="trixie", layer="prepared", mirror=True) as host:
        host.run(f"{INSTALL} swtpm swtpm-tools", timeout=INSTALL_SECONDS)
        host.run(PREPARATION)
        make(host)
        host.run(["qemu-io", "-c", "write -P 1 0 1M", DISK])
        host.run(["virsh", "start", VM])
        tpm = f"/var/lib/libvirt/swtpm/{UUID}/tpm2/tpm2-00.permall"
        owner = host.run(["stat", "-c", "%U:%G %a", tpm]).stdout
        assert f"pause {VM}" in checkpoint(host, running=True)
        assert is_on(host)
        assert snapshots(host) == ["nometal-x"]
        assert not make(host)["changed"]

        host.run(["virsh", "destroy", VM])
        host.run(["qemu-io", "-c", "write -P 9 0 1M", DISK])
        host.run(f"echo other >{tpm}; rm /var/lib/libvirt/qemu/nvram/{VM}_VARS.fd")
        checkpoint(host, state="restored")
        assert is_on(host)  # as it was; with another state of its TPM, swtpm would not have started
        assert host.run(["stat", "-c", "%U:%G %a", tpm]).stdout == owner
        host.run(["virsh", "destroy", VM])
        assert "verification failed" not in host.run(["qemu-io", "-r", "-c", "read -P 1 0 1M", DISK]).stdout
        assert not make(host)["changed"]

        host.run(["virsh", "start", VM])
        checkpoint(host, state="absent")
        assert snapshots(host) == []
        assert host.run("ls /var/lib/nometal/labs/demo").stdout == ""
