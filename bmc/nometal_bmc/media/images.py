# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a file looks like from its beginning: an image that a drive can hold, or something else by its name."""

from __future__ import annotations

import re
import struct

__all__ = ["HEAD", "NotAnImage", "recognise"]

HEAD = 64 * 1024  # how much of the beginning a judgement needs; the volume descriptors begin at 32 KiB
SECTOR = 2048
VOLUME_DESCRIPTORS = range(16, 24)
UDF_MARKS = (b"NSR02", b"NSR03")
BOOT_SIGNATURE = b"\x55\xaa"

# These go first, since they can look like a disk image as well.
MISLEADING = (
    (0, b"QFI\xfb", "a qcow2 image"),
    (0, b"KDMV", "a VMDK image"),
    (0, b"# Disk DescriptorFile", "a VMDK image"),
    (0, b"vhdxfile", "a VHDX image"),
    (0, b"conectix", "a VHD image"),
    (64, b"\x7f\x10\xda\xbe", "a VDI image"),
    (0x202, b"HdrS", "a Linux kernel"),
)
OTHERS = (
    (0, b"\x1f\x8b", "a gzip archive"),
    (0, b"\xfd7zXZ\x00", "an xz archive"),
    (0, b"BZh", "a bzip2 archive"),
    (0, b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (0, b"PK\x03\x04", "a zip archive"),
    (257, b"ustar", "a tar archive"),
    (0, b"0707", "a cpio archive (an initramfs?)"),
    (0, b"hsqs", "a squashfs image (a root file system, not a disk)"),
    (0, b"\x7fELF", "an ELF program"),
    (0, b"MZ", "an EFI or Windows program"),
    (0, b"%PDF", "a PDF document"),
    (0, b"\x89PNG", "a PNG picture"),
)
TEXTS = (
    (rb"<title>\s*(index of|directory listing)", "a directory listing"),
    (rb"<(!doctype html|html|head|body)\b", "an HTML page"),
    (rb"\A\s*<(\?xml|[a-z])", "an XML document"),
    (rb"\A\s*[{\[]", "a JSON document"),
)


class NotAnImage(Exception):  # noqa: N818 - reads as a sentence
    """What was fetched is nothing that a drive can hold; says what it looks like instead."""


def recognise(head: bytes, size: int) -> str:
    """The kind of image that a file of this size with this beginning (HEAD bytes, or all of it) is."""
    if not size:
        raise NotAnImage("it is empty")
    if misleading := _marked(head, MISLEADING):
        raise NotAnImage(f"it looks like {misleading}; only ISO 9660, UDF and raw disk images can be inserted")
    kind = _optical(head, size) or _disk(head)
    if kind is None:
        looks = _marked(head, OTHERS) or _text(head) or "nothing known"
        raise NotAnImage(f"it looks like {looks}; only ISO 9660, UDF and raw disk images can be inserted")
    return kind


def _marked(head: bytes, marks: tuple[tuple[int, bytes, str], ...]) -> str | None:
    return next((name for offset, mark, name in marks if head.startswith(mark, offset)), None)


def _optical(head: bytes, size: int) -> str | None:
    marks = {head[number * SECTOR + 1 : number * SECTOR + 6]: number for number in reversed(VOLUME_DESCRIPTORS)}
    if b"CD001" in marks:
        _whole(head[marks[b"CD001"] * SECTOR :], size)
        return "ISO 9660 image"
    return "UDF image" if any(mark in marks for mark in UDF_MARKS) else None


def _whole(descriptor: bytes, size: int) -> None:
    """Refuse an ISO image that is shorter than it says: its server has only a part of it, for example so far."""
    primary = descriptor[0] == 1 and len(descriptor) >= SECTOR
    if not primary:
        return
    (blocks,) = struct.unpack_from("<L", descriptor, 80)
    (block_size,) = struct.unpack_from("<H", descriptor, 128)
    if blocks * block_size > size:
        raise NotAnImage(f"it is cut short: an ISO 9660 image of {blocks * block_size} bytes of which {size} are there")


def _disk(head: bytes) -> str | None:
    """A raw disk: GPT, MBR, or one FAT file system without a partition table."""
    if head.startswith(b"EFI PART", 512) or head.startswith(b"EFI PART", 4096):
        return "disk image with a GPT"
    if head[510:512] != BOOT_SIGNATURE:
        return None
    if head[0] in {0xEB, 0xE9} and (head[54:57] == b"FAT" or head[82:85] == b"FAT"):
        return "FAT image"
    partitions = [head[offset : offset + 16] for offset in range(446, 510, 16)]
    valid = all(entry[0] in {0x00, 0x80} for entry in partitions)
    return "disk image with an MBR" if valid and any(_used(entry) for entry in partitions) else None


def _used(partition: bytes) -> bool:
    return partition[4] != 0 and any(partition[12:16])


def _text(head: bytes) -> str | None:
    beginning = head[:4096]
    if b"\x00" in beginning:
        return None
    for pattern, name in TEXTS:
        if re.search(pattern, beginning, re.IGNORECASE):
            return name
    return "a text file" if re.fullmatch(rb"[^\x00-\x08\x0e-\x1f\x7f]+", beginning) else None
