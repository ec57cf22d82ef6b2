"""The disks of VMs, written to and read from outside."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.stand_in.bmc import BmcFailed

SECTOR = 512


@dataclass(frozen=True)
class Disk:
    path: Path
    format: str
    serial: str = ""

    @property
    def size(self) -> int:
        """Of its file."""
        return self.path.stat().st_size if self.path.exists() else 0


def of(domain: Any) -> Iterator[Disk]:
    """From the XML of a VM: those that are files."""
    for disk in domain.iterfind("devices/disk"):
        source, driver = disk.find("source"), disk.find("driver")
        if disk.get("device") == "disk" and source is not None and source.get("file"):
            form = "raw" if driver is None else str(driver.get("type", "raw"))
            yield Disk(Path(source.get("file")), form, disk.findtext("serial") or "")


def write(disk: Disk, content: bytes) -> None:
    """Its first sector, while nobody else uses it."""
    with tempfile.TemporaryDirectory() as directory:
        pattern = Path(directory) / "pattern"
        pattern.write_bytes(content.ljust(SECTOR, b"\0"))
        done = _io(disk, f"write -s {pattern} 0 {SECTOR}")
    if done.returncode != 0 or re.search("failed|error", done.stdout, re.IGNORECASE):
        raise BmcFailed(f"Image provisioning failed: {(done.stderr or done.stdout).strip()}")


def read(disk: Disk, length: int) -> bytes:
    """What it begins with, whoever uses it; nothing where it cannot be read."""
    shown = _io(disk, f"read -v 0 {SECTOR}", "-U", "-r").stdout
    rows = re.findall("^[0-9a-f]{8}: +((?:[0-9a-f]{2} ){1,16})", shown, re.MULTILINE)
    return bytes.fromhex("".join(rows))[:length]


def _io(disk: Disk, command: str, *options: str) -> subprocess.CompletedProcess[str]:
    whole = ["qemu-io", *options, "-f", disk.format, "-c", command, str(disk.path)]
    return subprocess.run(whole, check=False, capture_output=True, text=True)
