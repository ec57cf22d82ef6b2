# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's disks: what they are, which of them the installer's hints mean, and writing a system to it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from .letter import LABEL, LABEL_AT

if TYPE_CHECKING:
    from collections.abc import Mapping

BLOCK = Path("/sys/block")
KINDS = ("sd", "vd", "nvme", "hd")
GIB = 1024**3
CHUNK = 1024 * 1024
FIRST = 128 * 1024
"""By what is in here, an image is known for a rehearsal's: it is on the disk before anything else."""
CD = "cd"
FIRST_CD_OF_BIOS = 0xE0 - 0x80  # whose numbers of disks begin with 80h
DEVICE_SECONDS = 10
SYNCS = 60
SYNC_BYTES = 4096


def all_disks() -> list[dict[str, Any]]:
    return [_disk(path) for path in sorted(BLOCK.iterdir()) if path.name.startswith(KINDS) and _sectors(path)]


def meant(disks: list[dict[str, Any]], hints: Mapping[str, Any]) -> str:
    """The device that the hints pick; empty when there is none. Without hints it is the first, as metal3 takes it."""
    fitting = [disk["device"] for disk in disks if all(_fits(disk, name, value) for name, value in hints.items())]
    return fitting[0] if fitting else ""


def _fits(disk: Mapping[str, Any], name: str, wanted: Any) -> bool:
    if name in ("model", "vendor"):
        return str(wanted).lower() in disk[name].lower()
    if name == "minSizeGigabytes":
        return disk["size_bytes"] >= wanted * GIB
    key = {"serialNumber": "serial", "deviceName": "device"}.get(name, name)
    if name == "deviceName" and str(wanted).startswith("/dev/disk/"):
        return os.path.realpath(str(wanted)) == disk["device"]
    return disk.get(key) == wanted


def _disk(path: Path) -> dict[str, Any]:
    device = path / "device"
    return {
        "device": f"/dev/{path.name}",
        "size_bytes": _sectors(path) * 512,
        "serial": _serial(path),
        "model": _text(device / "model"),
        "vendor": _text(device / "vendor"),
        "wwn": _text(device / "wwid").replace("naa.", "0x") if path.name.startswith("sd") else _text(path / "wwid"),
        "hctl": device.resolve().name if path.name.startswith("sd") else "",
        "rotational": _text(path / "queue/rotational") == "1",
        "read_only": _text(path / "ro") == "1",
    }


def _serial(path: Path) -> str:
    """Of SCSI and SATA disks it stands in page 80h of their own data, behind a header of 4 bytes."""
    try:
        return (path / "device/vpd_pg80").read_bytes()[4:].decode(errors="replace").strip("\0 ")
    except OSError:
        return _text(path / "serial") or _text(path / "device/serial")


def _sectors(path: Path) -> int:
    return int(_text(path / "size") or 0)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def write(device: str, source: BinaryIO) -> int:
    """Returns the number of bytes. A disk that holds any of them holds the first of them."""
    written = 0
    target = os.open(device, os.O_WRONLY)
    try:
        while block := source.read(FIRST if not written else CHUNK):
            view = memoryview(block)
            while view:
                view = view[os.write(target, view) :]
            if not written:
                os.fsync(target)
            written += len(block)
        os.fsync(target)
    finally:
        os.close(target)
    return written


def sync_milliseconds(device: str, behind: int) -> list[float]:
    """How long single small writes take to be on the disk, sorted; as etcd writes them, behind what is there."""
    target = os.open(device, os.O_WRONLY)
    taken = []
    try:
        os.lseek(target, behind - behind % SYNC_BYTES + SYNC_BYTES, os.SEEK_SET)
        for _write in range(SYNCS):
            started = time.monotonic()
            os.write(target, bytes(SYNC_BYTES))
            os.fdatasync(target)
            taken.append((time.monotonic() - started) * 1000)
    finally:
        os.close(target)
    return sorted(round(each, 2) for each in taken)


def started_from(root: str) -> str:
    """The device, by the name that the boot loader has for it. Linux may not know the drive of a CD, and need not."""
    is_disk = root.startswith("hd") and int(root[len("hd") :]) < FIRST_CD_OF_BIOS
    return _with_image() if is_disk else CD


def _with_image() -> str:
    """Waited for a while, as drivers may still be looking for disks; empty: there is none."""
    deadline = time.monotonic() + DEVICE_SECONDS
    while time.monotonic() < deadline:
        found = next((disk["device"] for disk in all_disks() if _holds_image(disk["device"])), "")
        if found:
            return found
        time.sleep(0.05)
    return ""


def _holds_image(device: str) -> bool:
    try:
        with open(device, "rb") as file:  # noqa: PTH123 - a device
            file.seek(LABEL_AT)
            return file.read(len(LABEL)) == LABEL
    except OSError:
        return False
