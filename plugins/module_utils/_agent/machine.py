# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guest as a machine: its file systems and drivers, and what hardware it finds."""

from __future__ import annotations

import ctypes
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

FILE_SYSTEMS = (("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/run"), ("tmpfs", "/tmp"))  # noqa: S108 - the guest's own
MODULES = Path("/modules")
CHANNEL = "org.nometal.rehearsal"
FINIT_MODULE = 313  # the system call, on x86-64
READ_ONLY = 1  # MS_RDONLY
SECURE_BOOT = Path("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c")
SETTINGS = {
    # Nobody else has the guest's addresses: no second or two for asking whether somebody has.
    "net/ipv6/conf/default/dad_transmits": "0",
    "net/ipv6/conf/default/router_solicitation_interval": "1",
    "net/ipv6/conf/default/router_solicitations": "-1",
    "net/ipv4/conf/all/arp_notify": "1",
}
_libc = ctypes.CDLL(None, use_errno=True)


def prepare() -> None:
    for kind, place in FILE_SYSTEMS:
        Path(place).mkdir(exist_ok=True)
        mount(kind, kind, place)
    for name, value in SETTINGS.items():
        with suppress(OSError):  # a kernel without IPv6
            Path("/proc/sys", name).write_text(value, encoding="ascii")
    load_drivers()  # cards take the settings that they find


def say(text: str) -> None:
    """On the console: all that a guest has, if it is not heard otherwise."""
    sys.stdout.write(f"rehearsal: {text}\n")
    sys.stdout.flush()


def mount(source: str, kind: str, place: str, flags: int = 0) -> None:
    if _libc.mount(source.encode(), place.encode(), kind.encode(), flags, None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), f"{source} at {place}")


def load_drivers() -> None:
    for name in (MODULES / "order").read_text(encoding="ascii").split():
        file = os.open(MODULES / name, os.O_RDONLY)
        _libc.syscall(FINIT_MODULE, file, b"", 0)  # what a driver lacks shows where its device is missed
        os.close(file)
    with suppress(OSError):
        mount("efivarfs", "efivarfs", "/sys/firmware/efi/efivars", READ_ONLY)


def channel() -> str:
    """The device that leads to the host; empty on a node."""
    for port in Path("/sys/class/virtio-ports").glob("*"):
        if _text(port / "name") == CHANNEL:
            return f"/dev/{port.name}"
    return ""


def command_line() -> dict[str, str]:
    words = Path("/proc/cmdline").read_text(encoding="ascii").split()
    return dict(word.split("=", 1) for word in words if "=" in word)


def set_hostname(name: str) -> None:
    socket.sethostname(name)


def firmware() -> str:
    return "uefi" if Path("/sys/firmware/efi").exists() else "bios"


def secure_boot() -> bool | None:
    """None: this machine cannot tell, as with BIOS."""
    try:
        return SECURE_BOOT.read_bytes()[4] == 1
    except (OSError, IndexError):
        return None


def vcpus() -> int:
    return os.cpu_count() or 0


def memory_mib() -> int:
    """What the kernel was given: some of the VM's memory is the firmware's and the kernel's own."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 1024**2


def uuid() -> str:
    return _text(Path("/sys/class/dmi/id/product_uuid")).lower()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
