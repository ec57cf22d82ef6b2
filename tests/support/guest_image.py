"""The kernel and the initramfs of the tests' guests, made of Debian's packages once and kept in the cache."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from support.cache import cache_dir, made_once

HERE = Path(__file__).parent
SCRIPTS = {"init": "guest_init.sh", "bin/join": "guest_join.sh", "bin/lease": "guest_lease.sh"}
KERNEL = "linux-image-cloud-amd64"
PROGRAMS = ("busybox-static", "isc-dhcp-client", "libc6")
# Each after those that it needs.
MODULES = (
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci",
    "net/core/failover",
    "drivers/net/net_failover",
    "drivers/net/virtio_net",
    "drivers/char/virtio_console",
    "drivers/block/virtio_blk",
)
FILES = {
    "bin/busybox": "bin/busybox",
    "bin/dhclient": "sbin/dhclient",
    "lib/x86_64-linux-gnu/libc.so.6": "lib/x86_64-linux-gnu/libc.so.6",
    "lib64/ld-linux-x86-64.so.2": "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
}
DIRECTORIES = (
    "dev",
    "proc",
    "sys",
    "etc",
    "tmp",
    "run",
    "var",
    "var/lib",
    "bin",
    "lib",
    "lib/x86_64-linux-gnu",
    "lib64",
    "modules",
)


def image() -> Path:
    """The directory with the files `kernel` and `initramfs`, made first if need be."""
    recipe = [Path(__file__), *(HERE / name for name in SCRIPTS.values())]
    key = hashlib.sha256(b"\0".join(path.read_bytes() for path in recipe)).hexdigest()[:12]
    path = cache_dir() / "guests" / key
    return made_once(path, "guest-image", lambda: _build(path))


def _build(path: Path) -> None:
    unfinished = path.with_name("building")  # the lock is ours: what a killed build left is removed here
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        unpacked = _unpacked(Path(scratch))
        [kernel] = (unpacked / "boot").glob("vmlinuz-*")
        shutil.copy(kernel, unfinished / "kernel")
        (unfinished / "initramfs").write_bytes(_initramfs(unpacked))
    unfinished.rename(path)


def _unpacked(scratch: Path) -> Path:
    """One directory with the contents of all packages."""
    _run(["apt-get", "-q", "update"], scratch)  # a new machine may have no lists of packages
    needs = _run(["apt-cache", "depends", KERNEL], scratch)
    [kernel] = re.findall(r"Depends: (linux-image-\S+)", needs)
    _run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", kernel, *PROGRAMS], scratch)
    for package in scratch.glob("*.deb"):
        _run(["dpkg-deb", "--extract", package.name, "all"], scratch)
    return scratch / "all"


def _run(command: list[str], directory: Path) -> str:
    done = subprocess.run(command, cwd=directory, check=False, text=True, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(f"The guests' image: {' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _initramfs(unpacked: Path) -> bytes:
    [kernel] = (unpacked / "lib/modules").glob("*/kernel")
    entries = [_entry(name, 0o040755) for name in DIRECTORIES]
    entries += [_entry(name, 0o100755, (unpacked / source).read_bytes()) for name, source in FILES.items()]
    entries += [_entry(name, 0o100755, (HERE / source).read_bytes()) for name, source in SCRIPTS.items()]
    for module in MODULES:
        content = (kernel / f"{module}.ko").read_bytes()
        entries.append(_entry(f"modules/{Path(module).name}.ko", 0o100644, content))
    order = "".join(f"{Path(module).name}\n" for module in MODULES)
    entries += [_entry("modules/order", 0o100644, order.encode()), _entry("TRAILER!!!", 0)]
    return b"".join(entries)


def _entry(name: str, mode: int, content: bytes = b"") -> bytes:
    """A file in the format newc of cpio, which the kernel reads."""
    path = name.encode() + b"\0"
    fields = [0, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(path), 0]
    header = b"070701" + b"".join(b"%08x" % field for field in fields) + path
    return _padded(header) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
