"""The first process of a private libvirtd's sandbox: fresh directories, then virtlogd and libvirtd."""

from __future__ import annotations

import grp
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

# All of /run: without the machine's D-Bus there is no way to its firewalld, and modules of two tests have locks there.
FRESH = ("/etc/libvirt", "/var/lib/libvirt", "/var/log/libvirt", "/var/cache/libvirt", "/run")
# Control groups are not libvirt's here, and the machine's own security module knows nothing of this libvirtd.
QEMU_CONF = 'cgroup_controllers = []\nsecurity_driver = "none"\n'
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "net/tun")


def run(*command: str) -> None:
    subprocess.run(command, check=True)


def fresh_directories() -> None:
    for directory in FRESH:
        Path(directory).mkdir(parents=True, exist_ok=True)
        run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", directory)
    for directory in (
        "/run/lock",
        "/run/libvirt",
        "/var/lib/libvirt/images",
        "/var/lib/libvirt/qemu",
        "/var/log/libvirt/qemu",
    ):
        Path(directory).mkdir()
    Path("/etc/libvirt/qemu.conf").write_text(QEMU_CONF)


def own_sysfs() -> None:
    """/sys/class/net shows the network namespace of whoever mounts it."""
    run("mount", "-t", "sysfs", "sysfs", "/sys")
    run("mount", "-t", "cgroup2", "cgroup2", "/sys/fs/cgroup")
    run("ip", "link", "set", "lo", "up")


def own_devices(kvm: str) -> None:
    """A /dev without /dev/kvm, or with one as udev would make it."""
    new = Path("/run/libvirt")  # a place that is ours; the mount moves on at once
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(new))
    (new / "net").mkdir()
    for name in DEVICES:
        os.mknod(new / name, 0o20666, Path(f"/dev/{name}").stat().st_rdev)
        (new / name).chmod(0o666)
    for name, target in {
        "fd": "/proc/self/fd",
        "stdin": "fd/0",
        "stdout": "fd/1",
        "stderr": "fd/2",
        "ptmx": "pts/ptmx",
    }.items():
        (new / name).symlink_to(target)
    if kvm == "machine":
        os.mknod(new / "kvm", 0o20660, Path("/dev/kvm").stat().st_rdev)
        (new / "kvm").chmod(0o660)
        os.chown(new / "kvm", 0, grp.getgrnam("kvm").gr_gid)
    for name in ("pts", "shm"):
        (new / name).mkdir()
    run("mount", "-t", "devpts", "-o", "newinstance,ptmxmode=0666,mode=0620,gid=5", "devpts", str(new / "pts"))
    run("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", str(new / "shm"))
    # Not merely covered: libvirt moves whatever is listed as mounted below /dev into the guest's namespace.
    run("umount", "--recursive", "--lazy", "/dev")
    run("mount", "--move", str(new), "/dev")


def main() -> None:
    facts = json.loads(sys.argv[1])
    own_sysfs()
    fresh_directories()
    own_devices(facts["kvm"])
    for daemon in ("virtlogd", "libvirtd"):
        run(daemon, "--daemon", "--pid-file", f"/run/libvirt/{daemon}.pid")
    os.write(int(os.environ["READY_FD"]), b"1")
    while True:  # orphans come here: as the first process of the namespace we reap them, and nobody else lives forever
        with suppress(ChildProcessError):
            os.wait()
        time.sleep(0.05)


if __name__ == "__main__":
    main()
