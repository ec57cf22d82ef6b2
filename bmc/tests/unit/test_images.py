from __future__ import annotations

import struct
from contextlib import suppress

import pytest

from nometal_bmc.media.images import HEAD, NotAnImage, recognise

SIZE = 1 << 20


def at(*pieces: tuple[int, bytes], size: int = HEAD) -> bytes:
    content = bytearray(size)
    for offset, piece in pieces:
        content[offset : offset + len(piece)] = piece
    return bytes(content)


def iso(blocks: int = 100, *pieces: tuple[int, bytes]) -> bytes:
    sizes = [(0x8000 + 80, struct.pack("<L", blocks)), (0x8000 + 128, struct.pack("<H", 2048))]
    return at((0x8000, b"\x01CD001\x01"), *sizes, *pieces)


def partition(kind: int = 0x83, *, status: int = 0x80, sectors: int = 2048) -> bytes:
    return struct.pack("<B3sB3sLL", status, b"\0\0\0", kind, b"\0\0\0", 2048, sectors)


def mbr(entry: bytes) -> bytes:
    return at((446, entry), (510, b"\x55\xaa"))


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (iso(), "ISO 9660 image"),
        (iso(100, (446, partition()), (510, b"\x55\xaa")), "ISO 9660 image"),  # isohybrid
        (iso(SIZE // 2048), "ISO 9660 image"),
        (at((0x8001, b"BEA01"), (0x8801, b"NSR03"), (0x9001, b"TEA01")), "UDF image"),
        (at((510, b"\x55\xaa"), (512, b"EFI PART")), "disk image with a GPT"),
        (at((4096, b"EFI PART")), "disk image with a GPT"),  # sectors of 4 KiB
        (mbr(partition()), "disk image with an MBR"),
        (mbr(partition(0xEF, status=0)), "disk image with an MBR"),
        (at((0, b"\xeb\x3c\x90"), (54, b"FAT16   "), (510, b"\x55\xaa")), "FAT image"),
        (at((0, b"\xeb\x58\x90"), (82, b"FAT32   "), (510, b"\x55\xaa")), "FAT image"),
    ],
)
def test_what_a_drive_can_hold(head: bytes, kind: str) -> None:
    assert recognise(head, SIZE) == kind


@pytest.mark.parametrize(
    ("head", "looks_like"),
    [
        (b"", "empty"),
        (at((0, b"QFI\xfb")), "qcow2"),
        (at((0, b"QFI\xfb"), (0x8001, b"CD001")), "qcow2"),
        (at((0, b"KDMV")), "VMDK"),
        (at((0, b"vhdxfile")), "VHDX"),
        (at((0, b"MZ"), (446, partition()), (510, b"\x55\xaa"), (0x202, b"HdrS")), "Linux kernel"),
        (b"\x1f\x8b\x08" + bytes(100), "gzip"),
        (b"\xfd7zXZ\x00" + bytes(100), "xz"),
        (b"07070100000000", "initramfs"),
        (at((257, b"ustar")), "tar archive"),
        (b"<!DOCTYPE HTML>\n<html><head><title>Directory listing for /</title>", "directory listing"),
        (b"<html>\n<head><title>Index of /images/</title></head>", "directory listing"),
        (b"\n<!doctype html>\n<p>Please log in</p>", "HTML page"),
        (b'<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>', "XML"),
        (b'{"error": "not found"}', "JSON"),
        (b"once upon a time\n", "text file"),
        (bytes(HEAD), "nothing known"),
        (b"\x01\x02\x03", "nothing known"),
        (mbr(b""), "nothing known"),  # a signature with no partition
        (mbr(partition(0)), "nothing known"),
        (mbr(partition(status=0x17)), "nothing known"),
        (mbr(partition(sectors=0)), "nothing known"),
        (iso(SIZE // 2048 + 1), f"of {SIZE + 2048} bytes of which {SIZE} are there"),
    ],
)
def test_anything_else_is_refused_by_its_name(head: bytes, looks_like: str) -> None:
    with pytest.raises(NotAnImage, match=looks_like):
        recognise(head, SIZE if head else 0)


@pytest.mark.parametrize("length", [1, 511, 512, 0x8001, 0x8006, 0x8800])
def test_no_beginning_is_too_short_to_be_judged(length: int) -> None:
    for whole in (iso(), mbr(partition()), bytes(HEAD), b"<html" * 9999):
        with suppress(NotAnImage):  # either is right, another exception is not
            assert recognise(whole[:length], length)
