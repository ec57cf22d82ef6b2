"""Systems of one sector for BIOS: one shuts down when its power button is pressed, the other one does not hear it.

The button sets a bit of the ACPI PM1 status register, if that event is enabled; a value in the control register
switches the machine off. SeaBIOS puts these registers of a q35 machine at port 0x600.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.lab_host import LabHost

# From 0000:7c00: write what ds:si points to, up to a zero, to the first serial port.
PRINT = "31c08ed8 be{text} baf803 ac84c07403eeebf8"
LISTEN = "ba0206 b80001ef fb f4 ba0006 ed f6c401 74f6 ba0406 b80020ef f4"
HALT = "fbf4ebfd"
SECTOR, ORIGIN = 512, 0x7C00


def hearing(text: str) -> bytes:
    return _sector(LISTEN, text)


def deaf(text: str) -> bytes:
    return _sector(HALT, text)


def put(host: LabHost, disk: str, sector: bytes) -> None:
    """At the beginning of a qcow2 disk, which is otherwise as it was."""
    host.run(["sh", "-c", f"printf '{_octal(sector)}' >/tmp/sector"])
    host.run(["qemu-io", "-f", "qcow2", "-c", f"write -s /tmp/sector 0 {SECTOR}", disk])


def _sector(rest: str, text: str) -> bytes:
    length = len(bytes.fromhex(PRINT.format(text="0000") + rest))
    where = (ORIGIN + length).to_bytes(2, "little").hex()
    code = bytes.fromhex(PRINT.format(text=where) + rest)
    return (code + text.encode() + b"\r\n\0").ljust(SECTOR - 2, b"\0") + b"\x55\xaa"


def _octal(data: bytes) -> str:
    return "".join(f"\\{byte:03o}" for byte in data)
