"""The guests' image with an agent of a few lines: it is built for real, and boots in every way there is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import lab_host, modules, rehearsal_image
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.lab_host import LabHost

AGENT = """
import ctypes, json, os, ssl, subprocess, tarfile, time, urllib.request
from pathlib import Path
from .words import PROGRAMS, TOLD

libc = ctypes.CDLL(None)
for kind, place in (("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")):
    libc.mount(kind.encode(), place.encode(), kind.encode(), 0, None)
for name in Path("/modules/order").read_text().split():
    libc.syscall(313, os.open(name, os.O_RDONLY), b"", 0)
libc.mount(b"efivarfs", b"/sys/firmware/efi/efivars", b"efivarfs", 0, None)
secure = Path("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c")
words = dict(word.split("=", 1) for word in Path("/proc/cmdline").read_text().split() if "=" in word)

def said(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout

if Path("/sys/block/sr0").exists():
    while libc.mount(b"/dev/sr0", b"/mnt", b"iso9660", 1, None):
        time.sleep(0.05)
    tarfile.open("/mnt/bootstrap.tar.gz").extractall("/")
print(TOLD, json.dumps({
    "medium": words["rehearsal.medium"],
    "letter": words.get("rehearsal.letter"),
    "mark": Path("/letter").exists() and Path("/letter").read_text().strip(),
    "programs": [Path(name).exists() and said(name, option).split()[0] for name, option in PROGRAMS],
    "served": Path("/extras/tftp/rehearsal/kernel").exists(),
    "firmware": "uefi" if os.path.isdir("/sys/firmware/efi") else "bios",
    "secure": secure.exists() and secure.read_bytes()[-1] == 1,
    "disks": os.listdir("/sys/block"),
    "links": [link["ifname"] for link in json.loads(said("ip", "-json", "link"))],
}), flush=True)
libc.reboot(0x4321FEDC)
"""
WORDS = """
TOLD = "agent:"
PROGRAMS = [("/extras/ipmitool", "-V"), ("/extras/dnsmasq", "--version")]
"""
SOURCES = {"__init__.py": "", "main.py": AGENT, "words.py": WORDS}
BUILD = ["build image"]
MARK = ".nometal-rehearsal"
OVMF = Path("/usr/share/OVMF")
CODES = {"uefi": ("OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"), "secure": ("OVMF_CODE_4M.secboot.fd", "OVMF_VARS_4M.ms.fd")}
DEVICES = {
    "cd": ["-device", "virtio-scsi-pci", "-device", "scsi-cd,drive=medium"],
    "sata": ["-device", "ide-cd,drive=medium"],
    "scsi": ["-device", "virtio-scsi-pci", "-device", "scsi-hd,drive=medium"],
    "nvme": ["-device", "nvme,drive=medium,serial=1"],
}
# Firmware, medium, and what the guest sees as it.
BOOTS = [
    ("bios", "cd", "sr0"),
    ("secure", "cd", "sr0"),
    ("bios", "sata", ""),
    ("secure", "sata", ""),
    ("bios", "nvme", "nvme0n1"),
    ("uefi", "scsi", "sda"),
    ("bios", "boot.ipxe", ""),
    ("secure", "uefi.efi", ""),
]
CDS = ("cd", "sata")
"""The kernel has a driver for the first one only, and the image boots from both."""
BOOT_SECONDS = 400


def given(**changed: Any) -> dict[str, Any]:
    return {**rehearsal_image.arguments(), "sources": SOURCES, "network_boot": True, **changed}


def run(host: LabHost, *, check_mode: bool = False, **changed: Any) -> dict[str, Any]:
    return modules.run_in(host, "rehearsal_image", given(**changed), check_mode=check_mode)


def kept(host: LabHost) -> list[str]:
    return sorted(path.name for path in (host.root / rehearsal_image.IN_HOST).iterdir())


@pytest.fixture(scope="module")
def host() -> Iterator[LabHost]:
    with lab_host.start(mirror=True) as started:
        yield started


@pytest.fixture(scope="module")
def image(host: LabHost) -> dict[str, Any]:
    """Made after a build that was killed in the middle."""
    assert run(host, check_mode=True)["steps"] == BUILD
    assert not (host.root / "var/cache/nometal").exists()
    with ThreadPoolExecutor() as beside:
        building = beside.submit(rehearsal_image.build_in, host, given())
        wait_until("it builds", lambda: any(host.root.glob(f"{rehearsal_image.IN_HOST}/building-*/scratch/*/*")))
        host.run(["pkill", "-KILL", "-f", rehearsal_image.IN_HOST])
        assert "ended with 137" in str(building.exception())
    [mark, unfinished] = kept(host)
    assert (mark, unfinished[:9]) == (MARK, "building-")
    made = run(host)
    assert made["steps"] == BUILD, made
    return made


def test_it_is_made_once(host: LabHost, image: dict[str, Any]) -> None:
    assert kept(host) == [MARK, Path(image["path"]).parent.name]
    assert image["size"] < 40 * 1024 * 1024
    assert image["secure_boot"]
    again = run(host)
    assert (again["changed"], again["steps"], again["shown_diff"]) == (False, [], "")
    assert {name: again[name] for name in ("path", "sha256", "size", "secure_boot")}.items() <= image.items()
    # Nothing was installed, and the host's own lists of packages are as they were.
    assert host.run("ls /boot /lib/modules", check=False).stdout.split() == ["/boot:"]


@pytest.mark.full
def test_it_boots_everywhere(host: LabHost, image: dict[str, Any], tmp_path: Path) -> None:
    iso = host.root / image["path"].lstrip("/")
    with ThreadPoolExecutor(max_workers=3) as several:
        guests = several.map(lambda way: boot(iso, way[0], way[1], tmp_path / "-".join(way[:2])), BOOTS)
    for (firmware, device, disk), told in zip(BOOTS, guests):
        assert (told["firmware"], told["secure"]) == ("bios" if firmware == "bios" else "uefi", firmware == "secure")
        assert told["links"] == ["lo", "eth0"]
        assert not disk or disk in told["disks"]
        from_network = device not in DEVICES
        assert (told["medium"], told["letter"]) == ("network", "7b7d") if from_network else not told["letter"]
        assert told["mark"] == (False if from_network else "NOMETAL-REHEARSAL-LETTER")
        assert (told["medium"] == "hd0") == (device in ("nvme", "scsi"))
        assert (told["programs"], told["served"]) == (
            (["ipmitool", "Dnsmasq"], True) if device == "cd" else ([False, False], False)
        )


def boot(iso: Path, firmware: str, device: str, scratch: Path) -> dict[str, Any]:
    scratch.mkdir()
    network, rom = "user,id=net,restrict=on", "" if firmware == "bios" else ",romfile="  # UEFI has a driver of its own
    medium = []
    if device not in DEVICES:
        network += f",tftp={served(iso, scratch / 'served')},bootfile={device}"
    elif device in CDS:
        medium = ["-drive", f"if=none,id=medium,format=raw,media=cdrom,file={iso}", *DEVICES[device]]
    else:
        shutil.copy(iso, scratch / "disk")
        os.truncate(scratch / "disk", 1024 * 1024 * 1024)
        medium = ["-drive", f"if=none,id=medium,format=raw,file={scratch / 'disk'}", *DEVICES[device]]
    command = [
        *("qemu-system-x86_64", "-machine", "q35,smm=on", "-accel", "tcg", "-display", "none", "-no-reboot"),
        *("-serial", "stdio", "-monitor", "none", "-m", "256" if firmware == "bios" else "320"),
        *(
            "-netdev",
            network,
            "-device",
            f"virtio-net-pci,netdev=net{rom}",
            *medium,
            *firmware_options(firmware, scratch),
        ),
    ]
    limited = ["timeout", str(BOOT_SECONDS), *command]
    done = subprocess.run(
        limited, check=False, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL
    )
    told = [line for line in done.stdout.splitlines() if "agent: {" in line]
    assert told, f"{firmware} from {device}:\n{done.stdout}{done.stderr}"
    facts: dict[str, Any] = json.loads(told[0].partition("agent: ")[2])
    return facts


def served(iso: Path, directory: Path) -> Path:
    """What a bootstrap VM serves, with its letter."""
    command = ["xorriso", "-osirrox", "on", "-indev", str(iso), "-extract", "/", str(directory)]
    subprocess.run(command, check=True, capture_output=True)
    with tarfile.open(directory / "bootstrap.tar.gz") as archive:
        archive.extractall(directory, filter="tar")
    tree = directory / "extras/tftp"
    (tree / "rehearsal").unlink()
    shutil.copytree(directory / "rehearsal", tree / "rehearsal")
    for config in (tree / "boot.ipxe", tree / "grub/grub.cfg"):
        config.write_text(config.read_text().replace("@LETTER@", "7b7d"))
    return tree


def firmware_options(firmware: str, scratch: Path) -> list[str]:
    if firmware == "bios":
        return []
    code, variables = CODES[firmware]
    shutil.copy(OVMF / variables, scratch / "variables")
    return [
        *("-global", "driver=cfi.pflash01,property=secure,value=on"),
        *("-drive", f"if=pflash,unit=0,format=raw,readonly=on,file={OVMF / code}"),
        *("-drive", f"if=pflash,unit=1,format=raw,file={scratch / 'variables'}"),
    ]


def test_without_a_mirror_it_says_what_is_wrong(lab_host: LabHost) -> None:
    before = kept(lab_host)
    refused = run(lab_host)
    assert refused["failed"]
    assert "the host does not reach its package mirror" in refused["msg"]
    assert "apt-get update" in refused["msg"]
    assert kept(lab_host) == before
    ours = rehearsal_image.arguments()
    assert run(lab_host, **ours)["steps"] == []
    assert run(lab_host, state="absent")["steps"] == ["remove images"]
    assert list((lab_host.root / "var/cache/nometal").iterdir()) == []  # it was there before, with the image
    assert run(lab_host, state="absent")["steps"] == []
