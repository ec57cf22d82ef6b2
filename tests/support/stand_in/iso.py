"""The image that nodes boot from. There is no system on it: by BIOS it boots, and says nothing from then on."""

from __future__ import annotations

import struct
import time
from pathlib import Path
from typing import Callable

SECTOR, SIZE = 2048, 1 << 20
DESCRIPTOR, BOOT_RECORD, END, CATALOG, BOOT = range(16, 21)
HALT = b"\xfa\xf4\xeb\xfc"  # cli; hlt; jmp back to cli
BOOTABLE = 0x88
LOOK_SECONDS = 0.05


def image() -> bytes:
    whole = bytearray(SIZE)
    for sector, content in _sectors().items():
        whole[sector * SECTOR : sector * SECTOR + len(content)] = content
    return bytes(whole)


def extract(path: Path, until: Callable[[], bool]) -> None:
    """As `oc image extract` does: in place of what is there, without a lock, and not at once."""
    path.unlink(missing_ok=True)
    whole = image()
    with path.open("wb") as file:
        file.write(whole[: SIZE // 2])
        file.flush()
        while not until():
            time.sleep(LOOK_SECONDS)
        file.write(whole[SIZE // 2 :])


def is_whole(path: Path) -> bool:
    return path.stat().st_size == SIZE


def _sectors() -> dict[int, bytes]:
    """ISO 9660, and El Torito's record, catalog and boot sector."""
    volume = bytearray(b"\x01CD001\x01".ljust(SECTOR, b"\0"))
    struct.pack_into("<L", volume, 80, SIZE // SECTOR)
    struct.pack_into("<H", volume, 128, SECTOR)
    record = struct.pack("<B5sB32s32xL", 0, b"CD001", 1, b"EL TORITO SPECIFICATION", CATALOG)
    validation = struct.pack("<BB26xHH", 1, 0, 0x10000 - 1 - 0xAA55, 0xAA55)  # its words add up to nothing
    entry = struct.pack("<BBHBxHL", BOOTABLE, 0, 0, 0, 1, BOOT)
    return {
        DESCRIPTOR: bytes(volume),
        BOOT_RECORD: record,
        END: b"\xffCD001\x01",
        CATALOG: validation + entry,
        BOOT: HALT,
    }
