"""Small images that boot and say so on the serial console: for tests of what a BMC's virtual media and boot order do.

redfish_images.cd("one")                 an ISO; prints `booted from CD: one`
redfish_images.disk("one")               a disk; prints `booted from disk: one`
redfish_images.cd("one", signed=True)    an ISO that enforced secure boot accepts; it refuses the others

The unsigned ones boot under UEFI and BIOS: a program of a hundred bytes that prints and halts, so that the guest
stays switched on and costs no processor time. It hears no ACPI: only a hard power off ends it. The signed ones are
Debian's shim and GRUB (UEFI only). All are made once and kept in the cache; copy before you change one.
"""

from __future__ import annotations

import hashlib
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from support.cache import cache_dir, locked

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1024 * 1024
SECTOR = 512
BIOS_ORIGIN = 0x7C00  # where a BIOS puts the first sector of a disk, and the boot image of a CD
ESP_START = 2048  # in sectors
ESP_TYPE = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"
EFI_PROGRAM = "EFI/BOOT/BOOTX64.EFI"  # what UEFI starts on a medium that no boot entry names
SIGNED = ("shim-signed", "grub-efi-amd64-signed")
GRUB_CONFIG = """\
serial --unit=0 --speed=115200
terminal_output serial
echo "{text}"
while true; do sleep 3600; done
"""


def cd(word: str, *, signed: bool = False) -> Path:
    """An ISO whose guest prints `booted from CD: <word>`."""
    return _cached(_make_cd, f"booted from CD: {word}", "iso", signed=signed)


def disk(word: str, *, signed: bool = False) -> Path:
    """A raw disk image with a GPT whose guest prints `booted from disk: <word>`; sparse, 64 MiB."""
    return _cached(_make_disk, f"booted from disk: {word}", "img", signed=signed)


def qcow2(source: Path, target: Path, size: str) -> None:
    """A disk for a VM: a qcow2 of this size (as qemu-img writes it: 1G) that begins with an image's content."""
    _run("qemu-img", "convert", "-O", "qcow2", source, target)
    _run("qemu-img", "resize", "-q", target, size)


def _cached(make: Callable[[Path, str, bool], None], text: str, suffix: str, *, signed: bool) -> Path:
    key = hashlib.sha256(Path(__file__).read_bytes() + f"{text}{suffix}{signed}".encode()).hexdigest()[:16]
    directory = cache_dir() / "redfish-images"
    path = directory / f"{key}.{suffix}"
    if not path.exists():
        directory.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory) as scratch:
            made = Path(scratch) / "image"
            make(made, text, signed)
            made.rename(path)  # whole or not at all; a second one that makes it too makes the same
    return path


def _make_cd(path: Path, text: str, signed: bool) -> None:
    tree = path.with_name("tree")  # with EFI itself beside its image: GRUB reads its configuration from the ISO
    efi_system = _efi_system(tree, text, signed=signed)
    (tree / "bios.bin").write_bytes(_bios_program(text).ljust(4 * SECTOR, b"\0"))
    bios = ["-b", "bios.bin", "-no-emul-boot", "-boot-load-size", "4"]
    efi = ["-eltorito-alt-boot", "-e", efi_system.name, "-no-emul-boot", "-isohybrid-gpt-basdat"]
    _run("xorriso", "-as", "mkisofs", "-quiet", "-V", "NOMETAL", "-o", path, *bios, *efi, tree)


def _make_disk(path: Path, text: str, signed: bool) -> None:
    efi_system = _efi_system(path.with_name("tree"), text, signed=signed)
    with path.open("wb") as file:
        file.truncate(64 * MIB)
    table = f"label: gpt\nstart={ESP_START}, size={efi_system.stat().st_size // SECTOR}, type={ESP_TYPE}\n"
    _run("sfdisk", "--quiet", path, text=table)
    with path.open("r+b") as file:
        file.write(_bios_program(text))
        file.seek(ESP_START * SECTOR)
        file.write(efi_system.read_bytes())


def _efi_system(tree: Path, text: str, *, signed: bool) -> Path:
    """Put what UEFI starts below a directory, and make a FAT file system of it."""
    for name, content in (_signed_files(text) if signed else {EFI_PROGRAM: _efi_program(text)}).items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(content)
    image = tree / "efi.img"
    _run("mformat", "-C", "-i", image, "-T", (8 if signed else 2) * MIB // SECTOR, "-h", 2, "-s", 32, "::")
    _run("mcopy", "-s", "-i", image, tree / "EFI", "::")
    return image


def _signed_files(text: str) -> dict[str, bytes]:
    packages = _signed_packages()
    config = GRUB_CONFIG.format(text=text).encode()
    return {
        EFI_PROGRAM: (packages / "usr/lib/shim/shimx64.efi.signed").read_bytes(),
        "EFI/BOOT/grubx64.efi": (packages / "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed").read_bytes(),
        "EFI/debian/grub.cfg": config,  # where Debian's GRUB has been told to look
    }


def _signed_packages() -> Path:
    """The contents of Debian's packages, not installed: they would set up this machine's boot loader."""
    path = cache_dir() / "redfish-images" / "signed"
    with locked("redfish-images"):
        if not path.exists():
            with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
                _run("apt-get", "-q", "update")  # a new machine may have no lists of packages
                _run("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", *SIGNED, cwd=scratch)
                for package in Path(scratch).glob("*.deb"):
                    _run("dpkg-deb", "--extract", package, Path(scratch) / "all")
                (Path(scratch) / "all").rename(path)
    return path


def _bios_program(text: str) -> bytes:
    """For real mode: code and text that fit into the part of the first sector that is a boot loader's."""
    start = (
        bytes.fromhex("31c0 8ed8 ea")  # xor ax,ax; mov ds,ax; jmp 0:<next>
        + struct.pack("<HH", BIOS_ORIGIN + 9, 0)
        + b"\xbe"  # mov si,<text>
    )
    body = _print_and_halt("<H")
    program = start + struct.pack("<H", BIOS_ORIGIN + len(start) + 2 + len(body)) + body + _line(text)
    if len(program) > 440:
        raise ValueError(f"Too long for a boot sector: {text}")
    return program


def _efi_program(text: str) -> bytes:
    """For UEFI: code and text in the smallest PE file that firmware loads."""
    body = _print_and_halt("<I")
    code = bytes.fromhex("488d35") + struct.pack("<i", len(body)) + body + _line(text)  # lea rsi,[rip+<body>]
    return _pe_file(code)


def _print_and_halt(port: str) -> bytes:
    """The same instructions for 16 and 64 bits but for the width of a port's number: print [si], stop the processor."""
    ready = b"\xba" + struct.pack(port, 0x3FD) + bytes.fromhex("ec a820 74fb")  # mov dx,0x3fd; in al,dx; test; jz -5
    send = bytes.fromhex("88e0 ba") + struct.pack(port, 0x3F8) + b"\xee"  # mov al,ah; mov dx,0x3f8; out dx,al
    each = bytes.fromhex("88c4") + ready + send  # mov ah,al
    first = bytes.fromhex("ac 84c0 74") + bytes([len(each) + 2])  # lodsb; test al,al; jz <halt>
    again = b"\xeb" + struct.pack("b", -(len(first) + len(each) + 2))
    return bytes.fromhex("fa fc") + first + each + again + bytes.fromhex("f4 ebfd")  # cli; cld; ...; hlt; jmp -3


def _line(text: str) -> bytes:
    return f"\r\n{text}\r\n".encode() + b"\0"


def _pe_file(code: bytes) -> bytes:
    headers, page = 512, 4096
    content = code.ljust(-len(code) % 512 + len(code), b"\0")
    dos = b"MZ".ljust(60, b"\0") + struct.pack("<I", 64)
    # x86-64, one section, executable
    file = b"PE\0\0" + struct.pack("<HHIIIHH", 0x8664, 1, 0, 0, 0, 112 + 16 * 8, 0x0022)
    optional = struct.pack(
        "<HBBIIIII QIIHHHHHHIIIIHHQQQQII",
        *(0x20B, 0, 0, len(content), 0, 0, page, page),  # PE32+; sizes; entry point; base of code
        *(0, page, 512, 0, 0, 0, 0, 0, 0, 0, 2 * page, headers, 0),
        *(10, 0),  # an EFI application
        *(0, 0, 0, 0, 0, 16),
    )
    section = b".text".ljust(8, b"\0") + struct.pack(
        "<IIIIIIHHI", len(content), page, len(content), headers, 0, 0, 0, 0, 0x60000020
    )
    return (dos + file + optional + bytes(16 * 8) + section).ljust(headers, b"\0") + content


def _run(*command: object, text: str | None = None, cwd: str | None = None) -> None:
    words = [str(word) for word in command]
    done = subprocess.run(words, check=False, text=True, capture_output=True, input=text, cwd=cwd)
    if done.returncode != 0:
        raise RuntimeError(f"A boot image: {' '.join(words)} failed:\n{done.stdout}{done.stderr}")
